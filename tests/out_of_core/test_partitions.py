"""Training on a partition equals training on the data from which it was written."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import partwise
from helpers.partition_cases import CASES, TEMPLATE, names, words
from partwise import ConstituencyParser, DependencyParser, MaxentClassifier, SequenceTagger
from partwise.features import NameCounts, Template, Vocabulary
from partwise.models import NotAvailable
from partwise.out_of_core import block_walks, partitions
from partwise.out_of_core.partitions.executor import Plan, dual_bytes, opened_bytes, plan
from partwise.solvers.working_sets.kept_labellings import KeptLabellings
from partwise.support.memory import TooLarge


def parts_of(path) -> tuple[dict, dict]:
    from partwise.model_files import container

    metadata, found = container.read(path)
    settings = container.parse_json(metadata["settings"])
    timed = ("result", "history", "label_result", "label_history")
    return {name: settings[name] for name in settings if name not in timed}, found


@pytest.mark.filterwarnings("ignore:.*all examples with")
@pytest.mark.parametrize("name", CASES)
def test_one_batch_gives_the_bits_of_memory(name, tmp_path):
    case = CASES[name]
    found = partitions.write(tmp_path / "dir", case.make(), case.blocks())
    assert found.n_batches == 1
    expected, fitted = case.fitted(), case.make().fit(found)
    if name == "trees-skip":  # in the partition skipped sentences have weight 0: sums are grouped differently
        np.testing.assert_allclose(fitted.result_.weights, expected.result_.weights, atol=1e-12)
        return
    np.testing.assert_array_equal(fitted.result_.weights, expected.result_.weights)
    assert fitted.result_.gap == expected.result_.gap
    expected.save(tmp_path / "expected.pw")
    fitted.save(tmp_path / "fitted.pw")
    (settings, arrays), (own_settings, own) = parts_of(tmp_path / "expected.pw"), parts_of(tmp_path / "fitted.pw")
    assert own_settings == settings
    assert own.keys() == arrays.keys()
    for key, array in arrays.items():
        np.testing.assert_array_equal(own[key], array)
    again = found.estimator(solver="lbfgs", tol=1e-6).fit(found)
    np.testing.assert_array_equal(again.result_.weights, expected.result_.weights)


SEVERAL = (
    "template", "names-weights", "names-edges", "arrays", "rows", "rows-sparse", "order-2-min", "maxent", "items-min",
    "segments-min", "trees", "trees-skip", "brackets-min", "graphs-types", "graphs-edges",
)  # fmt: skip


@pytest.mark.parametrize("name", SEVERAL)
def test_several_batches_have_the_same_optimum(name, tmp_path):
    case = CASES[name]
    found = partitions.write(tmp_path / "dir", case.make(), case.blocks(), batch_size=2000)
    assert found.n_batches > 3
    weight = np.ones(60) if case.weight is None else case.weight
    assert found.n_examples == np.count_nonzero(weight)
    expected, fitted = case.fitted(), case.make().fit(found)
    assert fitted.result_.status == "converged"
    assert abs(fitted.result_.primal - expected.result_.primal) <= max(fitted.result_.gap, expected.result_.gap)
    np.testing.assert_allclose(fitted.result_.weights, expected.result_.weights, atol=1e-2)
    loaded = partitions.open(tmp_path / "dir")
    batches = loaded.batches()
    assert [batch.open().n_slots for batch in batches] == [batch.n_slots for batch in batches]


def test_batches_are_of_about_one_size_whatever_the_blocks(tmp_path):
    case, limit = CASES["names"], 4000
    for size in (1, 7, 60):
        found = partitions.write(tmp_path / f"dir{size}", case.make(), case.blocks(size), batch_size=limit)
        sizes = [opened_bytes(*found.manifest.sizes[k][:3], valued=False) for k in range(found.n_batches)]
        assert max(sizes) <= limit
        assert min(sizes[:-1]) > limit / 2
    found = partitions.write(tmp_path / "single", case.make(), case.blocks(), batch_size=1)
    assert found.n_batches == found.n_examples


@pytest.mark.parametrize("edges", [False, True])
def test_batches_of_graphs_of_numbers_are_of_the_size_that_was_asked_for(edges, tmp_path):
    rng, ring = np.random.default_rng(0), [(0, 1), (1, 2), (2, 0)]
    X = [(rng.normal(size=(3, 500)), ring, *([rng.normal(size=(3, 40))] if edges else [])) for _ in range(40)]
    blocks = [(X[:20], [["a", "b", "a"]] * 20), (X[20:], [["b", "b", "a"]] * 20)]
    found = partitions.write(tmp_path / "dir", partwise.GraphLabeler(), blocks, batch_size=200_000)
    files = [path.stat().st_size for path in (tmp_path / "dir").glob("batch*")]
    assert len(files) == found.n_batches > 3
    assert max(files) <= max(batch.opened_bytes for batch in found.batches()) <= 200_000
    assert all(found.manifest.sizes[k].valued for k in range(found.n_batches))
    found.check()


@pytest.mark.parametrize("name", ["names", "segments", "maxent-tagger", "graphs", "trees", "brackets"])
def test_labels_of_all_blocks_count(name, tmp_path, monkeypatch):
    """The limit on labels counts the labels of all blocks together."""
    monkeypatch.setattr("partwise.models.labels.MOST_LABELS", 12)
    blocks: list = []
    for own in ([f"B-x{k}" for k in range(a, a + 8)] for a in (0, 8)):
        if name == "brackets":
            blocks.append(([("S", (label, "the"), ("V", "sat")) for label in own], None))
        elif name == "trees":
            blocks.append(([[("a", "N"), ("b", "V")]] * 8, [[(0, "top"), (1, label)] for label in own]))
        elif name == "graphs":
            blocks.append(([([["a"]], [])] * 8, [[label] for label in own]))
        else:
            blocks.append(([[["a"]]] * 8, [[label] for label in own]))
    make = {
        "names": SequenceTagger, "segments": partwise.SegmentTagger, "graphs": partwise.GraphLabeler,
        "maxent-tagger": lambda: SequenceTagger(model="maxent"), "trees": DependencyParser,
        "brackets": ConstituencyParser,
    }[name]  # fmt: skip
    what = "names of arcs" if name == "trees" else "labels"
    with pytest.raises(ValueError, match=f"y has more than 12 different {what}: tables of them would be too large"):
        partitions.write(tmp_path / "dir", make(), blocks)
    assert not any(tmp_path.iterdir())
    monkeypatch.setattr("partwise.models.labels.MOST_LABELS", 20)
    partitions.write(tmp_path / "dir", make(), blocks)


@pytest.mark.parametrize("estimator", [SequenceTagger(order=2), MaxentClassifier()])
def test_tables_of_labels_that_do_not_fit_are_refused_as_in_memory(estimator, tmp_path, monkeypatch):
    monkeypatch.setattr("partwise.support.memory.LITTLE", 0)
    monkeypatch.setattr("partwise.support.memory.available", lambda: 1e5)
    X, y = [[["a"]] * 40], [[f"x{k}" for k in range(40)]]
    if isinstance(estimator, MaxentClassifier):
        X, y = np.ones((400, 199)), np.arange(400) % 40
    with pytest.raises(TooLarge, match=r"labels with their neighbours|200 features, 40 classes"):
        estimator.fit(X, y)
    with pytest.raises(TooLarge, match=r"labels with their neighbours|200 features, 40 classes"):
        partitions.write(tmp_path / "dir", estimator, [(X, y)])


def some_kept(monkeypatch, kept=(0,)) -> None:
    monkeypatch.setattr("partwise.out_of_core.partitions.folder.plan", lambda *_: Plan(frozenset(kept), False))


@pytest.mark.filterwarnings("ignore::partwise.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["lbfgs", "newton", "eg-batch", "eg-primal", "bmrm", "gis"])
def test_reading_batches_again_changes_no_bit(solver, tmp_path, monkeypatch):
    case = CASES["maxent" if solver == "gis" else "names-weights"]
    few = {"solver": solver, "tol": 1e-2, "max_passes": 8 if solver == "gis" else None}
    found = partitions.write(tmp_path / "dir", case.make(), case.blocks(), batch_size=3000)
    expected = case.make(**few).fit(found)
    for kept in ((), (0, 1)):
        some_kept(monkeypatch, kept)
        fitted = case.make(**few).fit(found)
        np.testing.assert_array_equal(fitted.result_.weights, expected.result_.weights)


@pytest.mark.filterwarnings("ignore::partwise.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:.*all examples with")
@pytest.mark.parametrize("name", ["maxent", "maxent-min", "items", "items-min"])
def test_gis_makes_the_passes_of_memory(name, tmp_path, monkeypatch):
    """gis needs f#, counts and expectations of all examples, although each batch knows only its own features."""
    case, few = CASES[name], {"solver": "gis", "tol": 0.0, "max_passes": 8}
    found = partitions.write(tmp_path / "dir", case.make(), case.blocks(), batch_size=2000)
    assert found.n_batches > 3
    some_kept(monkeypatch)
    result, expected = case.make(**few).fit(found).result_, case.fitted(**few).result_
    assert (result.solver, result.passes) == ("gis", expected.passes)
    np.testing.assert_allclose(result.weights, expected.weights, rtol=1e-9, atol=1e-12)
    for mine, theirs in ((result.primal, expected.primal), (result.dual, expected.dual), (result.gap, expected.gap)):
        assert mine == pytest.approx(theirs, rel=1e-10)


def test_access_by_features_counts(tmp_path):
    """Access by column counts in the memory of an open batch: it takes space for every weight."""
    for name, more in (("items-min", True), ("maxent", True), ("names", False)):
        found = partitions.write(tmp_path / name, CASES[name].make(), CASES[name].blocks(), batch_size=3000)
        for plain, by_features in zip(found.batches(), found.batches(True), strict=True):
            extra = by_features.opened_bytes - plain.opened_bytes
            assert extra == more * (64 * found.n_weights + 16 * plain.size.n_entries)
            assert ("column access" in by_features.open().batch.features.capabilities()) == more


def test_auto_takes_what_the_batches_allow(tmp_path, monkeypatch):
    for case in (CASES["names"], CASES["rows"]):
        found = partitions.write(tmp_path / case.cls.__name__, case.make(), case.blocks(), batch_size=3000)
        with monkeypatch.context() as patched:
            some_kept(patched)
            fitted = case.make(solver="auto", tol=1e-2).fit(found)
            assert (fitted.result_.status, fitted.result_.solver) == ("converged", "lbfgs")
            fitted = case.make(solver="auto", loss="hinge", tol=1e-1).fit(found)
            assert (fitted.result_.status, fitted.result_.solver) == ("converged", "block-dual")
            patched.setattr("partwise.out_of_core.partitions.folder.plan", lambda *_: Plan(frozenset(), False, False))
            with pytest.raises(ValueError, match="needs batches in memory"):
                case.make(solver="eg").fit(found)
            fitted = case.make(solver="auto", loss="hinge", tol=1e-1).fit(found)
            assert (fitted.result_.status, fitted.result_.solver) == ("converged", "excessive-gap")
            with patched.context() as large:
                some_kept(large)
                large.setattr("partwise.solvers.engine.auto.TINY", 0.0)
                fitted = case.make(solver="auto", tol=1e-1, C=0.03).fit(found)
                assert (fitted.result_.status, fitted.result_.solver) == ("converged", "block-dual")
        for solver, loss in (("eg", "log"), ("bcfw", "hinge")):
            assert case.make(solver=solver, loss=loss, tol=1e-1).fit(found).result_.status == "converged"


def test_references_can_be_pickled(tmp_path):
    case = CASES["names"]
    found = partitions.write(tmp_path / "dir", case.make(), case.blocks(), batch_size=3000)
    sent = pickle.dumps(found.batches()[1])
    assert len(sent) < 1000
    assert pickle.loads(sent) == found.batches()[1]
    program = "import pickle, sys; print(pickle.load(sys.stdin.buffer).open().n_slots)"
    done = subprocess.run([sys.executable, "-c", program], input=sent, capture_output=True, check=True)
    assert int(done.stdout) == found.batches()[1].n_slots


def test_names_are_counted_as_if_they_were_one_text(rng):
    text = [f"n{k}" for k in rng.zipf(1.3, size=3000) % 200]
    for min_count in (1, 3):
        expected = Vocabulary.learn(text, min_count)[0].names()
        counts = NameCounts()
        for start in range(0, 3000, 170):
            counts.add(*Vocabulary.learn(text[start : start + 170]))
        assert counts.vocabulary(min_count).names() == expected
    with pytest.raises(ValueError, match="out of range"):
        counts.add(Vocabulary.learn(["a"])[0], np.array([1]))


def test_sparse_blocks_may_have_fewer_columns(tmp_path):
    X = sparse.csr_matrix(np.array([[1.0, 0, 2], [0, 3, 0], [1, 0, 0], [0, 1, 0]]))
    y = np.array([1, 2, 1, 3])
    blocks = [(X[:2], y[:2]), (X[2:, :2], y[2:].astype(float))]
    found = partitions.write(tmp_path / "dir", MaxentClassifier(), blocks)
    model = MaxentClassifier(solver="lbfgs", penalize_intercept=True)
    fitted, expected = (clone(model).fit(*data) for data in ((found,), (X, y.astype(float))))
    np.testing.assert_array_equal(fitted.coef_, expected.coef_)
    np.testing.assert_array_equal(fitted.classes_, expected.classes_)


class TestBadInput:
    @pytest.fixture
    def found(self, tmp_path):
        case = CASES["template"]
        return partitions.write(tmp_path / "dir", case.make(), case.blocks())

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"min_count": 2}, "written with min_count=1, the estimator has 2"),
            ({"ends": True}, "written with ends=False"),
            ({"template": None}, "written with template='U00"),
            ({"template": Template(TEMPLATE, clusters={"a": "01"})}, "clusters and gazetteers"),
            ({"kernel": "rbf", "template": Template(TEMPLATE)}, "not available for KernelChainModel"),
            ({"model": "maxent", "template": Template(TEMPLATE)}, "and the estimator has a MaxentChainModel"),
            ({"order": 2}, "and the estimator has a SecondOrderModel"),
            ({"class_weight": "balanced"}, "class_weight of taggers: not available with partitions"),
        ],
    )
    def test_other_features(self, found, options, message):
        with pytest.raises(ValueError, match=message):
            SequenceTagger(**{**CASES["template"].options, **options}).fit(found)

    def test_other_estimators_and_answers(self, found):
        with pytest.raises(ValueError, match="is a partition for SequenceTagger"):
            MaxentClassifier().fit(found)
        with pytest.raises(ValueError, match="give it alone"):
            CASES["template"].make().fit(found, words()[1])
        with pytest.raises(ValueError, match="is a partition for SequenceTagger"):
            DependencyParser().fit(found)
        with pytest.raises(ValueError, match="y"):
            CASES["template"].make().fit(words()[0])

    def test_blocks(self, tmp_path):
        X, y = names()
        make = SequenceTagger()
        with pytest.raises(ValueError, match="gone through twice"):
            partitions.write(tmp_path / "dir", make, iter([(X, y)]))
        with pytest.raises(ValueError, match="there are no examples"):
            partitions.write(tmp_path / "dir", make, [([], [])])
        with pytest.raises(ValueError, match="no examples with a weight"):
            partitions.write(tmp_path / "dir", make, [(X, y, np.zeros(len(X)))])
        with pytest.raises(ValueError, match="one form"):
            partitions.write(tmp_path / "dir", make, [(X, y), ([np.zeros((1, 2))], [["l0"]])])
        for kernel in (SequenceTagger(kernel="rbf"), ConstituencyParser(cost="rules")):
            with pytest.raises(NotAvailable, match="not available"):
                partitions.write(tmp_path / "dir", kernel, [(X, y)])
        turns = [[(X, y)], [([*X[:-1], [["new"]]], [*y[:-1], ["l0"]])], [(X, y)], [(X, y), (X, y)]]
        for _ in range(2):
            with pytest.raises(ValueError, match="changed between"):
                partitions.write(tmp_path / "dir", make, lambda: turns.pop(0))
        weightless = [(X[:5], y[:5], np.zeros(5)), (X[5:], y[5:], None)]
        assert partitions.write(tmp_path / "dir", make, weightless).n_examples == len(X) - 5
        shutil.rmtree(tmp_path / "dir")
        assert not list(tmp_path.iterdir())  # no partial output is left

    def test_existing_folders_are_left_alone(self, found, tmp_path):
        case = CASES["names"]
        with pytest.raises(FileExistsError, match="is there already"):
            partitions.write(tmp_path / "dir", case.make(), case.blocks())
        (tmp_path / "empty").mkdir()
        assert partitions.write(tmp_path / "empty", case.make(), case.blocks()).n_batches == 1
        with pytest.raises(FileNotFoundError):
            partitions.write(tmp_path / "no" / "dir", case.make(), case.blocks())

    @pytest.mark.parametrize("name", ["mine.txt", "batch1.txt", "duals-mine", ".git/"])
    def test_files_of_others_are_never_replaced(self, name, found, tmp_path):
        case, folder = CASES["names"], tmp_path / "dir"
        (folder / "duals-0a").mkdir()
        (folder / "duals-0a" / "000000-000001.pwd").write_bytes(b"x")
        if name.endswith("/"):
            (folder / name).mkdir()
        else:
            (folder / name).write_text("x")
        before = sorted(each.name for each in folder.iterdir())
        with pytest.raises(FileExistsError, match=f"dir: has {name.strip('/')}, which is no file of a partition"):
            partitions.write(folder, case.make(), case.blocks(), overwrite=True)
        assert sorted(each.name for each in folder.iterdir()) == before
        (folder / name).rename(tmp_path / "elsewhere")
        again = partitions.write(folder, case.make(), case.blocks(), overwrite=True)
        assert sorted(each.name for each in folder.iterdir()) == ["batch000000.pwb", "partition.pwp"]
        assert again.n_batches == 1
        assert sorted(each.name for each in tmp_path.iterdir()) == ["dir", "elsewhere"]

    def test_files_that_others_put_there_meanwhile_stay(self, found, tmp_path):
        case, folder = CASES["names"], tmp_path / "dir"

        def blocks():
            (folder / "mine.txt").write_text("x")
            return case.blocks()

        partitions.write(folder, case.make(), blocks, overwrite=True)
        assert not (folder / "mine.txt").exists()
        assert [each.read_text() for each in tmp_path.glob(".dir.*.tmp.old/mine.txt")] == ["x"]

    def test_sizes(self, tmp_path):
        assert [partitions.parse_size(text) for text in ("500M", "2.5G", 1000, "7kb")] == [500e6, 2.5e9, 1000, 7000]
        for text in ("", "x", "-5", 0, True, None, "1e400", float("nan")):
            with pytest.raises(ValueError, match="must be a number of bytes"):
                partitions.parse_size(text)


def test_plans():
    sizes, few = [100_000_000] * 8, (240, 0)
    slots, labellings = (dual_bytes(10**6, 0),) * 2, (dual_bytes(10**6, 10**5), dual_bytes(10, 10**5))
    assert plan(sizes, None, 0, 10, *few).everything
    assert plan(sizes, 2_000_000_000, 0, 10, *few).everything
    # not enough memory for the work of visits, or for the kept labellings
    for duals in (dual_bytes(10**8, 0), dual_bytes(10, 2 * 10**6)):
        assert not plan(sizes, 2_000_000_000, 0, 10, duals, 0).everything
    some = plan(sizes, 870_000_000, 0, 10, *few)
    assert some == Plan(frozenset({0, 1}), False)
    assert plan(sizes, 630_000_000, 0, 10, *few) == Plan(frozenset(), False)
    # dual variables of three batches take precedence over batches that stay open
    assert plan(sizes, 870_000_000, 0, 10, *slots) == Plan(frozenset({0}), False, True, 24_000_000)
    assert plan(sizes, 870_000_000, 0, 10, *labellings) == Plan(frozenset(), False, True, 51_200_000)
    assert plan(sizes, 630_000_000, 0, 10, *labellings).blocks is False
    with pytest.raises(ValueError, match=r"400 MB are too little: 220 MB for .* 400 MB for .* at least 626 MB"):
        plan(sizes, 400_000_000, 0, 10, *few)


def test_kept_labellings_of_a_batch_have_a_limit(tmp_path, monkeypatch):
    """`bcfw` and `dcd` in blocks merge a batch's labellings when they exceed their memory, and still converge."""
    case = CASES["names"]
    found = partitions.write(tmp_path / "dir", case.make(), case.blocks(), batch_size=8000)
    seen: list[int] = []
    written = block_walks.write_block

    def watched(path, solver, block, *spare):
        sets = next(value for value in vars(block.state).values() if isinstance(value, KeptLabellings))
        seen.append(sets.bytes)
        return written(path, solver, block, *spare)

    monkeypatch.setattr(block_walks, "write_block", watched)
    for solver, loss in (("bcfw", "hinge"), ("dcd", "squared-hinge")):
        most = []
        for room in (None, 6000):
            seen.clear()
            monkeypatch.setattr(
                "partwise.out_of_core.partitions.folder.plan",
                lambda *_, room=room: Plan(frozenset(), False, True, room),
            )
            result = case.make(solver=solver, loss=loss, tol=0.05, C=0.3).fit(found).result_
            assert (result.status, result.solver) == ("converged", "block-dual")
            most.append(max(seen))
        assert most[1] < most[0]
        assert most[1] <= 2 * 6000  # a visit may add a labelling before labellings are merged


def test_a_limit_below_the_weights_is_refused_at_once(tmp_path):
    rows = sparse.csr_array(([1.0, 1.0], ([0, 1], [0, 999_999])), (2, 1_000_000))
    partitions.write(tmp_path / "dir", MaxentClassifier(), [(rows, np.array([0, 1]))])
    begin = time.process_time()
    with pytest.raises(ValueError, match=r"300 MB are too little: .* vectors of 4000004 weights.*give at least"):
        MaxentClassifier().fit(partitions.open(tmp_path / "dir", "300M"))
    assert time.process_time() - begin < 1.0


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak memory as Linux has it")
def test_the_limit_is_kept(tmp_path):
    program = """
import sys
import numpy as np
import partwise
from partwise import MaxentClassifier
from partwise.out_of_core import partitions
from partwise.cli.output import peak_memory
folder, memory = sys.argv[1:]
def blocks():
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(5000, 100))
        yield X, np.argmax(X[:, :3], axis=1)
made = MaxentClassifier(solver="lbfgs", tol=1e-2)
if memory == "write":
    partitions.write(folder, made, blocks, batch_size="4M")
elif memory == "nothing":
    MaxentClassifier(solver="lbfgs", tol=1e-2).fit(np.eye(3), [0, 1, 2])
elif memory == "memory":
    made.fit(*(np.concatenate(each) for each in zip(*blocks())))
else:
    made.fit(partitions.open(folder, memory))
print(peak_memory())
"""

    def peak(memory: str) -> int:
        run = [sys.executable, "-c", program, str(tmp_path / "dir"), memory]
        return int(subprocess.run(run, capture_output=True, text=True, check=True).stdout)

    nothing = peak("nothing")
    assert peak("write") < nothing + 60e6  # the numbers take 48 MB, a block 4 MB
    assert peak("250M") <= 250e6
    assert peak("memory") > nothing + 75e6


def test_the_public_names():
    assert partwise.PartitionError is partitions.PartitionError
