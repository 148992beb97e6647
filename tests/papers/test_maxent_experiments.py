"""The experiments of Huang et al. 2010: contexts, beam search, small runs, and verdicts on claims."""

from __future__ import annotations

import copy
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp

from papers import Chart, Claim, Table, run
from papers import maxent_contexts as contexts_module
from papers import maxent_rows as rows_module
from papers.catalogue import get
from papers.maxent_contexts import CUTOFF, Contexts, chunk_text, plain_tag, pos_text
from papers.maxent_runs import METHODS, PERMUTED, REFERENCE, VARIANTS, Runs
from papers.maxent_statistics import TABLE_3

NAMES = ("maxent-statistics", "maxent-text", "maxent-documents", "maxent-line-search")


def sentences(n=120, seed=0):
    """Make sentences of words, parts of speech that depend on the words, and chunks."""
    rng = np.random.default_rng(seed)
    pool = ["a", "of", "The", "run", "runs-in", "Xx1", "walked", "9", "b-c"]
    words = [[pool[k] for k in rng.integers(len(pool), size=rng.integers(1, 6))] for _ in range(n)]
    words[3][0] = words[7][0] = "zq"  # twice, so that pre=zq (k = 2, 3, 4) occurs six times
    pool.append("zq")
    pos = [[f"T{pool.index(w) % 3}" if rng.random() < 0.9 else "T0" for w in sentence] for sentence in words]
    chunks = [["B-NP" if tag == "T1" else "O" for tag in sentence] for sentence in pos]
    return words, pos, chunks


def pos_names(words, tags, i):
    """Return the named attributes of a position as OpenNLP makes them, repetitions included."""
    w, n = words[i], len(words)
    names = ["always", f"w={w}", *(f"suf={w[max(len(w) - k, 0) :]}" for k in range(1, 5))]
    names += [f"pre={w[:k]}" for k in range(1, 5)]
    kinds = {"hyphen": "-" in w, "capital": any(c.isupper() for c in w), "digit": any(c.isdigit() for c in w)}
    names += [kind for kind, there in kinds.items() if there]
    names.append(f"p={words[i - 1] if i else 'begin'}")
    if i >= 1:
        names += [f"pp={words[i - 2] if i > 1 else 'begin'}", f"t={tags[i - 1]}"]
    if i >= 2:
        names.append(f"t2={tags[i - 2]},{tags[i - 1]}")
    names.append(f"n={words[i + 1] if i + 1 < n else 'end'}")
    if i + 1 < n:
        names.append(f"nn={words[i + 2] if i + 2 < n else 'end'}")
    return names


def chunk_names(words, pos, tags, i):
    w, t = ({k: x[i + k] if 0 <= i + k < len(x) else "out" for k in range(-2, 3)} for x in (words, pos))
    p = {k: tags[i - k] if i >= k else "begin" for k in (1, 2)}
    own = [f"w{k}={w[k]}" for k in w] + [f"w{k}w{k + 1}={w[k]},{w[k + 1]}" for k in (-1, 0)]
    own += [f"t{k}={t[k]}" for k in t] + [f"t{k}t={t[k]},{t[k + 1]}" for k in range(-2, 2)]
    own += [f"t{k}tt={t[k]},{t[k + 1]},{t[k + 2]}" for k in (-2, -1, 0)]
    return [*own, f"p2={p[2]}", f"p1={p[1]}", f"p2p1={p[2]},{p[1]}", *(f"p1={p[1]},{name}" for name in own)]


def transcribed(rows, labels):
    """Compute the columns of Table 3 (X, Y, n and #nz) from named attributes."""
    counts: dict[str, int] = {}
    for row in rows:
        for name in row:
            counts[name] = counts.get(name, 0) + 1
    kept = [frozenset(name for name in row if counts[name] >= CUTOFF) for row in rows]
    pairs = {(name, label) for row, label in zip(kept, labels, strict=True) for name in row}
    per: dict[str, int] = {}
    for name, _ in pairs:
        per[name] = per.get(name, 0) + 1
    merged = set(zip(kept, labels, strict=True))
    nonzeros = sum(per[name] for row, _ in merged for name in row)
    return {"positions": len(rows), "X": len(merged), "Y": len(set(labels)), "n": len(pairs), "nz": nonzeros}


@pytest.mark.parametrize("kind", ["pos", "chunks"])
def test_contexts_are_opennlps(kind):
    words, pos, chunks = sentences()
    n_train = 100
    if kind == "pos":
        found, tags = Contexts(pos_text(words, pos, n_train)), pos
        rows = [pos_names(w, t, i) for w, t in zip(words[:n_train], pos, strict=False) for i in range(len(w))]
    else:
        found, tags = Contexts(chunk_text(words, pos, chunks, n_train)), chunks
        given = zip(words[:n_train], pos, chunks, strict=False)
        rows = [chunk_names(w, t, c, i) for w, t, c in given for i in range(len(w))]
    expected = transcribed(rows, [tag for sentence in tags[:n_train] for tag in sentence])
    assert found.statistics() == expected
    assert expected["X"] < expected["positions"]


@pytest.mark.parametrize(
    ("tag", "plain"),
    [
        ("nn", "nn"), ("nn-tl-hl", "nn"), ("fw-in+at-tl", "in+at"), ("in+at-t", "in+at"), ("--", "--"),
        ("---hl", "--"), (",-hl", ","), ("pp$-nc", "pp$"),
    ],
)  # fmt: skip
def test_modifiers_of_brown_tags(tag, plain):
    assert plain_tag(tag) == plain


@pytest.fixture(params=["pos", "chunks"])
def small(request):
    """Return contexts with random weights and a scoring function; some test sentences repeat training sentences."""
    words, pos, chunks = sentences(120)
    again = [k for k, sentence in enumerate(words) if len(sentence) >= 4][:8]
    words, pos, chunks = ([*column, *(column[k] for k in again)] for column in (words, pos, chunks))
    text = pos_text(words, pos, 120) if request.param == "pos" else chunk_text(words, pos, chunks, 120)
    found = Contexts(text)
    ptr, labels = found.layout.pairs()
    owner = np.repeat(np.arange(found.n_attributes), np.diff(ptr))
    # small weights: the beginnings of sequences have similar scores
    values = 0.1 * np.random.default_rng(1).normal(size=len(owner))
    k = text.templates.index(("p2", "p1"))
    values[(owner >= found._begin[k]) & (owner < found._begin[k] + len(found._kept[k]))] *= 15.0
    weights = found.layout.pack(values)
    dense = np.zeros((found.n_attributes + 1, found.n_labels))
    dense[owner, labels] = values
    own, after, local = found._scores(dense)

    def log_probabilities(position, two, one):
        edge = found.n_labels + 1
        one, two = (edge if tag is None else tag for tag in (one, two))
        scores = own[position] + after[two, one] + (0 if local is None else local[position, one])
        return scores - logsumexp(scores)

    return found, weights, log_probabilities


def test_beam_search_uses_the_scores_of_training_rows(small):
    """The beam search, given gold tags, uses the same scores as the problem has for these training rows."""
    found, weights, log_probabilities = small
    text = found.text
    columns = {name: column[: text.split] for name, column in (text.columns | text.tags_before()).items()}
    rows = np.stack([found.numbers(k, text.keys(t, columns)) for k, t in enumerate(text.templates)], axis=1)
    dense = np.zeros((found.n_attributes + 1, found.n_labels))
    ptr, labels = found.layout.pairs()
    dense[np.repeat(np.arange(found.n_attributes), np.diff(ptr)), labels] = found.layout.unpack(weights)
    scores = dense[rows].sum(axis=1)
    scores -= logsumexp(scores, axis=1, keepdims=True)
    problem = found.problem(0.3)
    losses = -scores[np.arange(len(scores)), text.y[: text.split]]
    assert problem.value(weights) == pytest.approx(losses.sum() + 0.15 * problem.norm2(weights), rel=1e-12)
    begins = np.cumsum(text.lengths) - text.lengths
    again = [k for k in range(text.n_train) if text.lengths[k] >= 4][:8]
    position = 0
    for k in again:
        tags = text.y[begins[k] : begins[k] + text.lengths[k]].tolist()
        for i in range(len(tags)):
            found_there = log_probabilities(position, tags[i - 2] if i > 1 else None, tags[i - 1] if i else None)
            np.testing.assert_allclose(found_there, scores[begins[k] + i], atol=1e-12)
            position += 1


@pytest.mark.parametrize("beam", [1, 1000])
def test_beam_search(small, beam):
    """A beam that holds all sequences finds the best one; a beam of one takes the best label at each position."""
    found, weights, log_probabilities = small
    found.text = replace(found.text, beam=beam)
    guesses = found.predict(weights)
    position = 0
    for sentence, guess in zip(found.gold(), guesses, strict=True):
        n = len(sentence)

        def value(tags, begin=position):
            steps = [
                log_probabilities(begin + i, tags[i - 2] if i > 1 else None, tags[i - 1] if i else None)[tag]
                for i, tag in enumerate(tags)
            ]
            return sum(steps)

        if beam == 1:
            best: tuple[int, ...] = ()
            for _ in range(n):
                best = max(((*best, tag) for tag in range(found.n_labels)), key=value)
        else:
            best = max(product(range(found.n_labels), repeat=n), key=value)
        assert guess == [found.text.labels[tag] for tag in best]
        position += n


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write small files of all data sets."""
    root = tmp_path_factory.mktemp("data")
    words, pos, chunks = sentences(150)
    for name in ("conll2000", "brown", "20news", "libsvm"):
        (root / name).mkdir()
    for name, part in (("train", slice(0, 110)), ("test", slice(110, None))):
        lines = []
        for rows in zip(words[part], pos[part], chunks[part], strict=True):
            lines += [" ".join(row) for row in zip(*rows, strict=True)] + [""]
        (root / "conll2000" / f"{name}.txt").write_text("\n".join(lines))
    lines = []
    for k, (w, t) in enumerate(zip(words, pos, strict=True)):
        lines += [f"# a{k}"] if k % 8 == 0 else []
        lines.append(" ".join(f"{a}/{b}-tl" for a, b in zip(w, t, strict=True)))
    (root / "brown" / "brown.txt").write_text("\n".join(lines))
    rng = np.random.default_rng(3)

    def svmlight(n, labels, n_columns):
        rows = []
        for _ in range(n):
            y = labels[rng.integers(len(labels))]
            on = rng.random(n_columns) < (0.3 if y > labels[0] else 0.15)
            rows.append(" ".join([str(y), *(f"{c + 1}:1" for c in np.flatnonzero(on))]))
        return "\n".join(rows) + "\n"

    (root / "20news" / "classes.txt").write_text("")
    (root / "20news" / "20news_bydate_counts.train.libsvm").write_text(svmlight(60, range(20), 20))
    (root / "20news" / "20news_bydate_counts.test.libsvm").write_text(svmlight(20, range(20), 20))
    for name, size in (("a9a", 123), ("a9a.t", 123), ("w8a", 300)):
        (root / "libsvm" / name).write_text(svmlight(50, (-1, 1), size))
    return str(root)


@pytest.mark.parametrize("name", NAMES)
def test_experiments_run(name, folder, tmp_path):
    """Every experiment runs all its cells, briefly, on small random data."""
    contexts_module.contexts.cache_clear()
    rows_module.rows.cache_clear()
    experiment = get(name)

    def cells(quick):
        brief = {"max_seconds": 0.01}
        return [
            replace(cell, options={**cell.options, **brief} if "max_seconds" in cell.options else cell.options)
            for cell in experiment.cells(quick)
        ]

    shown = run([replace(experiment, cells=cells)], tmp_path, folder, quick=True, say=lambda line: None)[name]
    contexts_module.contexts.cache_clear()
    rows_module.rows.cache_clear()
    assert shown.tables
    assert all(claim.holds is None for claim in shown.claims)  # the data are too few for a verdict
    for table in shown.tables:
        assert all(len(row) == len(table.headings) for row in table.rows)
    assert (tmp_path / "index.html").stat().st_size > 1000
    for chart in shown.charts:
        assert all(curve.points(False, panel.y_scale == "log") for panel in chart.panels for curve in panel.curves)


def trace(times, primal, passes=None, score=0.9):
    n = len(primal)
    return {
        "cpu_seconds": times, "passes": passes or list(range(n)), "primal": primal, "dual": [0.0] * n,
        "gap": [1.0] * n, "gradient": [1.0] * n, "score": [score] * n,
    }  # fmt: skip


def test_times_to_a_common_difference():
    records = {
        "d: CD": {"trace": trace([0.0, 1.0, 2.0, 3.0], [400.0, 150.0, 110.0, 104.0])},
        "d: GIS": {"trace": trace([0.0, 1.0, 4.0], [400.0, 300.0, 120.0])},
        "d: reference": {"trace": trace([0.0, 9.0], [400.0, 100.0]) | {"dual": [0.0, 99.0]}},
        "dd: CD": {"trace": trace([0.0], [1.0])},
    }
    runs = Runs("d", records)
    assert set(runs.by_method) == {"CD", "GIS", "reference"}
    assert runs.optimum == 100.0
    assert runs.slack == pytest.approx(0.01)
    assert runs.level("CD", "GIS") == pytest.approx(0.2)
    first, ratio, line = runs.faster("CD", "GIS")
    assert first
    assert ratio == 2.0
    assert line == "d, to 0.2: CD 2 s, GIS 4 s"
    assert runs.faster("GIS", "CD")[0] is False
    assert runs.faster("CD", "CD")[0] is None
    assert runs.ahead("CD", "GIS") == (True, "d, to 1, 0.1: CD 1 s, 3 s; GIS 4 s, not reached")
    assert runs.ahead("GIS", "CD")[0] is False
    records["d: CD"]["trace"]["gradient"] = [9.0, 4.0, 1.0, 0.01]
    assert runs.tail("CD", 0.2) == pytest.approx(np.log10(4.0 / 0.01) / 2)
    assert runs.tail("GIS", 0.1) is None
    assert runs.seconds("CD", 0.01) == np.inf
    assert runs.at("CD", 2.5) == pytest.approx(0.1)
    assert runs.row("GIS", (1.0, 0.3, 0.1))[2:5] == [4.0, 4.0, None]


@pytest.fixture
def text_records():
    """Make records that agree with the paper: one curve per method and data set."""
    from papers.maxent_text import DATA

    times = [0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]
    slow = [3, 0.5, 0.1, 0.05, 0.04, 0.03, 0.02, 0.016, 0.015, 0.0149]
    falls = {
        "CD": slow, "SCGIS": [3, 1.1, 0.5, 0.3, 0.25, 0.2, 0.15, 0.12, 0.11, 0.1],
        "GIS": [3, 1.5, 1.2, 1.1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4],
        "LBFGS": [3, 2.5, 1.8, 1.2, 0.5, 0.05, 0.0014, 9e-4, 9e-5, 8e-5],
        "TRON": [3, 2.9, 2.5, 2, 1.5, 1, 0.012, 0.0015, 9e-4, 1e-8], PERMUTED: slow,
        REFERENCE: [3, 0.1, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 0.0],
    }  # fmt: skip
    falls[next(name for name in VARIANTS if name != PERMUTED)] = falls["CD"]
    records = {}
    for name in DATA:
        for method, fall in falls.items():
            found = trace(times, [100.0 * (1 + d) for d in fall])
            found["score"] = [0.95 - 0.01 * min(d, 1) for d in fall]
            found["dual"] = [100.0 - 1e-9] * len(fall)
            found["gradient"] = [np.sqrt(d) for d in fall]
            records[f"{name}: {method}"] = {"trace": found, "n_examples": 197_979}
    return records


def test_claims_about_text(text_records):
    from papers.maxent_text import show

    def verdicts(records):
        items = show(records)
        assert any(isinstance(item, Chart) for item in items)
        assert any(isinstance(item, Table) for item in items)
        return {item.text: item.holds for item in items if isinstance(item, Claim)}

    found = verdicts(text_records)
    assert {text for text, holds in found.items() if not holds} == set()
    assert len(found) >= 10

    def changed(one, other):
        """Swap two methods in all records, and return the claims that fail."""
        records = copy.deepcopy(text_records)
        for name in text_records:
            if name.endswith(f": {one}"):
                partner = name.removesuffix(one) + other
                records[name], records[partner] = text_records[partner], text_records[name]
        return {text for text, holds in verdicts(records).items() if not holds}

    assert "CD is faster than SCGIS" in changed("CD", "SCGIS")
    assert "SCGIS is faster than GIS" in changed("SCGIS", "GIS")
    assert "LBFGS outperforms TRON on 0/1 features" in changed("LBFGS", "TRON")
    assert "LBFGS has faster final convergence than the IS/CD methods" in changed("LBFGS", "CD")
    assert "CD reaches the final test score sooner than LBFGS and TRON" in changed("LBFGS", "CD")
    assert "with and without permutation CD is about as fast" in changed(PERMUTED, "GIS")
    assert "with longer training, TRON's final convergence is the fastest" in changed("TRON", "LBFGS")
    small = {name: record | {"n_examples": 10} for name, record in text_records.items()}
    assert set(verdicts(small).values()) == {None}
    assert set(METHODS) == {"CD", "SCGIS", "GIS", "LBFGS", "TRON"}


@pytest.mark.parametrize("of", ["CoNLL2000-P", pytest.param("CoNLL2000-C", marks=pytest.mark.slow)])
def test_table_3(of, data_dir):
    """Contexts, labels, features and nonzeros are as many as in Table 3 of Huang et al. 2010."""
    found = contexts_module.contexts(of, str(data_dir), None, 1).statistics()
    contexts_module.contexts.cache_clear()
    assert [found[name] for name in ("X", "Y", "n", "nz")] == list(TABLE_3[of])
