"""What does it cost to label a sentence, by input type and way of calling? python-crfsuite and partwise, same model.

CoNLL-2000's sentences as items with the usual features of words. Both systems get the same objects in the same process,
in turn, on one core; times are CPU seconds, medians over the runs, per sentence. Where python-crfsuite has no call for
many sentences it is called in a loop, as in sklearn-crfsuite. Inputs that it does not accept have our time only.

The GIL: the time of two threads, half the sentences each, over that of one thread. 1.0 means that a call holds the GIL
all the time, 0.5 that it never does (with two idle processors).
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import click
import numpy as np

from benchmarks.measure import run_apart
from benchmarks.report import machine, print_table, save

Call = Callable[[], Any]


def item(words: list[tuple[str, str]], t: int) -> dict[str, Any]:
    """Return the features of a word and its neighbours, as programs with sklearn-crfsuite make them."""
    word, tag = words[t]
    found: dict[str, Any] = {
        "bias": 1.0, "word.lower()": word.lower(), "word[-3:]": word[-3:], "word[-2:]": word[-2:],
        "word.isupper()": word.isupper(), "word.istitle()": word.istitle(), "word.isdigit()": word.isdigit(),
        "postag": tag, "postag[:2]": tag[:2],
    }  # fmt: skip
    for step, name, end in ((-1, "-1:", "BOS"), (1, "+1:", "EOS")):
        if not 0 <= t + step < len(words):
            found[end] = True
            continue
        other, its = words[t + step]
        found |= {
            f"{name}word.lower()": other.lower(), f"{name}word.istitle()": other.istitle(),
            f"{name}word.isupper()": other.isupper(), f"{name}postag": its, f"{name}postag[:2]": its[:2],
        }  # fmt: skip
    return found


def nested(flat: dict[str, Any]) -> dict[str, Any]:
    """Move the attributes of neighbouring words into dicts within the dict."""
    out: dict[str, Any] = {}
    for name, value in flat.items():
        side, colon, rest = name.partition(":")
        if colon:
            out.setdefault(side, {})[rest] = value
        else:
            out[name] = value
    return out


def names(flat: dict[str, Any]) -> list[str]:
    """Convert the attributes of a dict to strings."""
    return [f"{name}:{value}" if isinstance(value, str) else name for name, value in flat.items() if value]


def read(data: str | None, n_train: int, n_test: int) -> tuple[Any, Any, Any]:
    """Return items to train on, their labels, and sentences to label."""
    from partwise.datasets import data_file
    from partwise.io import read_columns

    parts = []
    for name, n in (("train", n_train), ("test", n_test)):
        table = read_columns(data_file("conll2000", f"{name}.txt", data))
        parts.append([table[i] for i in range(min(n, len(table)))])
    train, test = parts
    sentences = [[(word, tag) for word, tag, _ in sentence] for sentence in train]
    items = [[item(words, t) for t in range(len(words))] for words in sentences]
    labels = [[label for _, _, label in sentence] for sentence in train]
    return items, labels, [[(word, tag) for word, tag, _ in sentence] for sentence in test]


def calls(model: str, test: Any) -> list[tuple[str, str, Call, Call | None]]:
    """List the calls to compare: (input type, way of calling, ours, theirs)."""
    import pycrfsuite

    import partwise
    from partwise.compat import pycrfsuite as ours_like
    from partwise.compat import sklearn_crfsuite as ours_sklearn

    theirs, tagger, like = pycrfsuite.Tagger(), partwise.load(model), ours_like.Tagger()
    theirs.open(model)
    like.open(model)
    estimator = ours_sklearn.CRF(model_filename=model)
    labels = theirs.labels()
    dicts = [[item(words, t) for t in range(len(words))] for words in test]
    deep = [[nested(each) for each in sentence] for sentence in dicts]
    lists = [[names(each) for each in sentence] for sentence in dicts]
    values = [[{name: 0.5 + k % 3 for k, name in enumerate(each)} for each in sentence] for sentence in lists]
    found: list[tuple[str, str, Call, Call | None]] = []
    for form, X in (("dicts", dicts), ("nested dicts", deep), ("lists of names", lists), ("names and values", values)):
        loop = lambda X=X: [theirs.tag(x) for x in X]  # noqa: E731
        found += [
            (form, "SequenceTagger.predict", lambda X=X: tagger.predict(X), loop),
            (form, "SequenceTagger.predict_single", lambda X=X: [tagger.predict_single(x) for x in X], loop),
            (form, "CRF.predict", lambda X=X: estimator.predict(X), loop),
            (form, "CRF.predict_single", lambda X=X: [estimator.predict_single(x) for x in X], loop),
            (form, "Tagger.tag", lambda X=X: [like.tag(x) for x in X], loop),
        ]
    own = {module: [module.ItemSequence(x) for x in dicts] for module in (pycrfsuite, ours_like)}

    def marginals(system: Any, X: Any) -> Any:
        out = []
        for x in X:
            system.set(x)
            out.append([{label: system.marginal(label, t) for label in labels} for t in range(len(x))])
        return out

    def set_tag(system: Any) -> Any:
        out = []
        for x in dicts:
            system.set(x)
            out.append(system.tag())
        return out

    def one_each(system: Any, answers: Any) -> Any:
        out = []
        for x, y in zip(dicts, answers, strict=True):
            system.set(x)
            out.append([system.marginal(label, t) for t, label in enumerate(y)])
        return out

    def probabilities(system: Any, answers: Any) -> Any:
        out = []
        for x, y in zip(dicts, answers, strict=True):
            system.set(x)
            out.append(system.probability(y))
        return out

    best = tagger.predict(dicts)
    both: list[tuple[str, str, Callable[[Any, Any], Any]]] = [
        ("ItemSequence", "Tagger.tag", lambda m, s: [s.tag(x) for x in own[m]]),
        ("dicts", "ItemSequence, Tagger.tag", lambda m, s: [s.tag(m.ItemSequence(x)) for x in dicts]),
        ("dicts", "Tagger.set, tag", lambda m, s: set_tag(s)),
        ("dicts", "Tagger.set, probability", lambda m, s: probabilities(s, best)),
        ("dicts", "Tagger.set, marginal per item", lambda m, s: one_each(s, best)),
        ("dicts", "Tagger.set, marginal of all labels", lambda m, s: marginals(s, dicts)),
    ]
    found += [(form, way, lambda f=f: f(ours_like, like), lambda f=f: f(pycrfsuite, theirs)) for form, way, f in both]
    slow = lambda: marginals(theirs, dicts)  # noqa: E731
    found += [
        ("dicts", "SequenceTagger.predict_marginals", lambda: tagger.predict_marginals(dicts), slow),
        ("dicts", "predict_marginals_single", lambda: [tagger.predict_marginals_single(x) for x in dicts], slow),
        ("dicts", "CRF.predict_marginals", lambda: estimator.predict_marginals(dicts), slow),
        ("dicts", "CRF.predict_marginals_single", lambda: [estimator.predict_marginals_single(x) for x in dicts], slow),
    ]
    return found + _own_forms(test, best)


def _own_forms(test: Any, y: Any) -> list[tuple[str, str, Call, Call | None]]:
    """List calls with rows of numbers and columns of strings, which CRFsuite does not accept."""
    from scipy import sparse

    from partwise import SequenceTagger

    rng = np.random.default_rng(0)
    dense = [rng.normal(size=(len(words), 32)) for words in test]
    thin = [sparse.random(len(words), 2000, density=0.01, format="csr", random_state=rng) for words in test]
    forms = (
        ("NumPy rows, 32 columns", dense, None),
        ("sparse rows, 20 of 2000", thin, None),
        ("columns", test, "chunk"),
    )
    found: list[tuple[str, str, Call, Call | None]] = []
    for form, X, template in forms:
        some = min(len(X), 300)
        tagger = SequenceTagger(template=template, tol=0.1, max_passes=5).fit(X[:some], y[:some])
        found += [
            (form, "SequenceTagger.predict", lambda X=X, s=tagger: s.predict(X), None),
            (form, "SequenceTagger.predict_single", lambda X=X, s=tagger: [s.predict_single(x) for x in X], None),
        ]
    return found


def alike(ours: Any, theirs: Any) -> bool:
    """Return whether two answers are equal, numbers to within 1e-9."""
    if isinstance(ours, dict):
        return set(ours) == set(theirs) and all(alike(value, theirs[key]) for key, value in ours.items())
    if isinstance(ours, list | np.ndarray):
        return len(ours) == len(theirs) and all(map(alike, ours, theirs))
    return abs(ours - theirs) < 1e-9 if isinstance(ours, float) else bool(ours == theirs)


def measure(data: str | None, train: int, test: int, repeat: int) -> dict[str, Any]:
    """Time every way of calling, ours and theirs in turn."""
    import warnings

    import pycrfsuite

    from partwise import ConvergenceWarning

    items, labels, sentences = read(data, train, test)
    trainer = pycrfsuite.Trainer(verbose=False, params={"c2": 0.1, "max_iterations": 20})
    for x, y in zip(items, labels, strict=True):
        trainer.append(x, y)
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model.crfsuite")
        trainer.train(model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the answers need not be accurate
            ways = calls(model, sentences)
        records = []
        for form, way, ours, theirs in ways:
            times: dict[str, list[float]] = {"ours": [], "theirs": []}
            same = None if theirs is None else alike(ours(), theirs())
            for _ in range(repeat):
                for name, call in (("ours", ours), ("theirs", theirs)):
                    if call is not None:
                        times[name].append(_cpu(call) / len(sentences))
            record = {"form": form, "way": way, "same": same, "ours": median(times["ours"])}
            record["theirs"] = median(times["theirs"]) if times["theirs"] else None
            records.append(record)
        return {"records": records, "threads": _threads(model, sentences, repeat)}


def _threads(model: str, test: Any, repeat: int) -> dict[str, float]:
    """Return, by system, the wall time of two threads over that of one, for a loop of single calls."""
    import pycrfsuite

    import partwise

    tagger, theirs = partwise.load(model), pycrfsuite.Tagger()
    theirs.open(model)
    X = [[item(words, t) for t in range(len(words))] for words in test]

    def loop(ask: Callable[[Any], Any], part: Any) -> None:
        for x in part:
            ask(x)

    def two(ask: Callable[[Any], Any]) -> None:
        threads = [threading.Thread(target=loop, args=(ask, X[k::2])) for k in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    asks: dict[str, Callable[[Any], Any]] = {"predict_single": tagger.predict_single}
    asks["predict_marginals_single"] = lambda x: tagger.predict_marginals_single(x, output="array")
    found = {}
    for name, ask in asks.items():
        pairs = []
        for _ in range(repeat):
            start = time.perf_counter()
            loop(ask, X)
            middle = time.perf_counter()
            two(ask)
            pairs.append((time.perf_counter() - middle) / (middle - start))
        found[name] = median(pairs)
    return found


def _cpu(call: Call) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


@click.command("predict")
@click.option("--data", type=click.Path(exists=True, file_okay=False), help="Data folder [PARTWISE_DATA].")
@click.option("--train", default=2000, show_default=True, type=click.IntRange(min=1), help="Sentences of the model.")
@click.option("--test", default=500, show_default=True, type=click.IntRange(min=1), help="Sentences to label.")
@click.option("--repeat", default=5, show_default=True, type=click.IntRange(min=1), help="Runs of each, in turn.")
@click.option("--quick", is_flag=True, help="A small part of the data, to see that all runs.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write records as JSON lines.")
def command(data: str | None, train: int, test: int, repeat: int, quick: bool, json_file: str | None) -> None:
    """What does it cost to label a sentence, by input type and way of calling?"""
    if quick:
        train, test, repeat = 100, 20, 1
    found = run_apart("benchmarks.predict:measure", 1, data=data, train=train, test=test, repeat=repeat)
    rows = []
    for record in found["records"]:
        record["ratio"] = None if record["theirs"] is None else record["ours"] / record["theirs"]
        theirs = ["", "", ""]
        if record["theirs"] is not None:
            theirs = [f"{1e6 * record['theirs']:.0f}", f"{record['ratio']:.2f}", "yes" if record["same"] else "NO"]
        rows.append([record["form"], record["way"], f"{1e6 * record['ours']:.0f}", *theirs])
    headings = ["items", "call", "partwise, us per sentence", "python-crfsuite", "ratio", "same answers"]
    print_table("Labels for sentences", headings, rows)
    threads = [[name, f"{ratio:.2f}"] for name, ratio in found["threads"].items()]
    print_table("Two threads, wall time over that of one", ["call", "ratio"], threads)
    save(json_file, [{"question": "predict", **record, **machine()} for record in found["records"]])
