"""The Python code in the how-to pages runs and does what the pages say."""

import importlib.util
import math
import pydoc
import re
from pathlib import Path

import numpy as np
import pytest

from helpers.guide_solvers import guide_solvers
from partwise import Problem, available_solvers, get_solver, load, model_files, solve, structures
from partwise.models import ConstraintError, NotAvailable
from partwise.problem.losses import Loss, get_loss
from partwise.problem.tasks import TASKS

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture
def run_page():
    """Return a function that runs a page's code and returns the names that it defines."""
    pages = []

    def run(name: str) -> dict[str, object]:
        pages.append(execute(name))
        return pages[-1]

    yield run
    # Break reference cycles that pass through the core's objects, which the garbage collector cannot see.
    for page in pages:
        page.clear()


def execute(name: str) -> dict[str, object]:
    """Run a page's Python blocks in order as one program, and return the names that they define."""
    blocks = re.findall(r"^```python\n(.*?)^```$", text_of(name), re.DOTALL | re.MULTILINE)
    assert blocks
    namespace: dict[str, object] = {"__name__": "page"}
    exec(compile("\n".join(blocks), name, "exec"), namespace)
    return namespace


def test_the_solver_of_the_page_is_certified(run_page):
    with guide_solvers():
        page = run_page("how_to_add_a_solver.md")
    assert TASKS.pop("largest_score")
    assert page["largest"] == page["problem"].sums.linear_scores(page["w"], 0.0).max()
    assert page["estimate"].shape == page["w"].shape
    result, other = page["result"], solve(page["problem"], "lbfgs", tol=1e-9)
    assert result.status == "converged"
    assert 0 <= result.gap <= 1e-6 * result.primal
    assert abs(result.primal - other.primal) <= result.gap + other.gap
    assert (np.diff(result.history["primal"]) <= 1e-12 * result.primal).all()


def test_the_losses_of_the_page_are_certified(run_page, tmp_path):
    page = run_page("how_to_add_a_loss.md")
    classifier = page["classifier"]
    assert classifier.result_.relative_gap <= 1e-6
    assert (classifier.predict(page["X"]) == page["y"]).all()
    classifier.save(tmp_path / "model.pw")
    assert (load(tmp_path / "model.pw").predict(page["X"]) == page["y"]).all()
    primal, dual, gradient, evaluate = (page[name] for name in ("primal", "dual", "gradient", "primal_dual_gradient"))
    assert 0 <= primal - dual <= 1e-6 * primal
    assert page["slack"].min() >= -1e-12
    assert np.abs(page["at_the_mass"]).max() <= 1e-12
    link, rng = page["link"], np.random.default_rng(1)
    for weights in rng.normal(size=(5, len(gradient))):
        primal, dual, gradient = evaluate(link, weights)
        assert primal - dual == pytest.approx(gradient @ gradient / 0.2)
        direction, h = rng.normal(size=len(gradient)), 1e-5
        ends = [evaluate(link, weights + step * direction)[0] for step in (h, -h)]
        assert (ends[0] - ends[1]) / (2 * h) == pytest.approx(gradient @ direction, rel=1e-5)


def test_a_link_in_python_is_that_of_the_core(run_page):
    """The page's squared link in Python gives the results of the core's squared link."""

    class Squared:
        value = staticmethod(lambda t: np.maximum(t, 0.0) ** 2)
        mass = staticmethod(lambda t: 2 * np.maximum(t, 0.0))
        conjugate = staticmethod(lambda s: s**2 / 4)

    page = run_page("how_to_add_a_loss.md")
    loss = Loss("squared softmax-margin", 1.0, 1.0, "squared")
    problem = Problem(page["features"], page["structure"], page["gold"], loss, 0.1)
    for weights in np.random.default_rng(2).normal(size=(3, problem.n_weights)):
        primal, dual, gradient = page["primal_dual_gradient"](Squared, weights)
        assert primal == pytest.approx(problem.value(weights))
        _, u, b = problem.plane(weights)
        assert dual == pytest.approx(problem.dual_of_plane(u, b))
        np.testing.assert_allclose(gradient, problem.value_and_gradient(weights)[1], atol=1e-10)


def test_bounds_hold_on_the_page_of_bounds(run_page):
    page = run_page("bounds.md")
    bound, held_out = page["bound"], page["held_out"]
    assert bound.training_loss <= bound.empirical < bound.value < 1
    assert page["losses"].mean() < held_out < bound.value


def test_the_page_of_methods_is_certified(run_page):
    page = run_page("methods.md")
    batch, single, slow, fast, answer = (page[name] for name in ("batch", "single", "slow", "fast", "answer"))
    assert max(batch.lower_bound, single.lower_bound) <= min(batch.value, single.value)
    assert batch.value - single.value == pytest.approx(0, abs=batch.gap + single.gap)
    assert 0 < slow.value - fast.value <= slow.bound(fast.alpha)
    residuals = np.abs(page["rows"] @ answer.w - page["targets"]).sum()
    assert answer.primal == pytest.approx(residuals + answer.w @ answer.w)
    assert 0 <= answer.margin <= answer.bound


def test_the_page_of_rates_has_every_solver_with_its_rate():
    """The page of rates lists every solver with its declared rate; its measured figures are not repeated here."""
    text = text_of("rates.md")
    losses = {"Log loss": "log", "Hinge": "hinge", "Squared hinge": "squared-hinge", "Maximum entropy": "log"}
    seen = set()
    for title, part in re.findall(r"^## (.*?)\n(.*?)(?=^## )", text, re.DOTALL | re.MULTILINE):
        loss = losses.get(title.split(",")[0])
        for name, rate, proof in re.findall(
            r"^\| `([\w-]+)` \| (\w+) \| (.*?) \| (?:gap|dual|primal) \|", part, re.MULTILINE
        ):
            solver = get_solver(name)
            assert (rate, proof) == (solver.rate_for(get_loss(loss)), solver.proof), f"{name}: run the benchmark again"
            seen.add(name)
    assert seen == {name for name in available_solvers() if get_solver(name).certified}
    assert (DOCS / "rates.png").stat().st_size > 50_000


def test_solvers_agree_on_the_page_of_solvers(run_page):
    page = run_page("solvers.md")
    results = page["results"]
    assert all(point.relative_gap <= 1e-3 for point in page["path"])
    assert page["search"].gaps_.max() <= 1e-3
    assert [result.status for result in results] == ["converged"] * 4
    for one in results:
        for two in results:
            assert one.dual <= two.primal + 1e-9


def test_generated_tables_are_current():
    spec = importlib.util.spec_from_file_location("tables", DOCS / "tables.py")
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    for path, text in tables.files().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is stale: run python docs/tables.py"
    assert set(re.findall(r"^### `([\w-]+)`$", text_of("solvers.md"), re.MULTILINE)) == set(available_solvers())
    with pytest.raises(KeyError):
        tables.filled("<!-- generated: nothing -->\n<!-- end -->")


def text_of(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def test_the_structure_of_the_page_works_with_every_solver_it_is_given_to(run_page):
    page = run_page("how_to_add_a_structure.md")
    first, second = page["results"]
    for result in (first, second):
        assert result.status == "converged"
        assert 0 <= result.gap <= 1e-6 * result.primal
    assert abs(first.primal - second.primal) <= first.gap + second.gap
    # item 0 was chosen most often, item 4 never
    assert np.argmax(first.weights) == 0
    assert np.argmin(first.weights) == 4


def test_the_structure_of_the_page_meets_the_rules(run_page, capsys):
    structure = run_page("how_to_add_a_structure.md")["structure"]
    complaint = capsys.readouterr().out.splitlines()[0]
    assert complaint.startswith("maximize: example 0: ")
    assert complaint in text_of("how_to_add_a_structure.md")
    rng = np.random.default_rng(1)
    for scores in (rng.normal(size=5), 1000 * rng.normal(size=5)):
        value, expected, entropy = structure.log_partition(0, scores, 1e-4)
        best, slots, counts = structure.maximize(0, scores)
        assert value == pytest.approx(best, rel=1e-3)
        assert scores[slots] @ counts == pytest.approx(best)
        assert expected.sum() == pytest.approx(2)
        assert entropy >= -1e-9


def test_the_models_of_the_page_answer_explain_and_are_saved(run_page, tmp_path):
    page = run_page("how_to_add_a_structure.md")
    chooser, X = page["chooser"], page["X"][150:]
    assert page["accuracy"] > 0.5
    assert page["margin"].result_.status == "converged"
    np.testing.assert_allclose(page["probabilities"].sum(axis=1), 2.0)
    assert [own[0][0] for own in page["ranked"]] == list(page["answers"]) == list(chooser.predict(X))
    assert not any(0 in own for own in page["without_the_first"])
    with pytest.raises(ConstraintError, match="allowed leaves example 0 fewer than 2 items"):
        chooser.predict(X[:1], allowed=[[0, 0, 0, 0, 1]])
    why, opened = page["why"], page["opened"]
    assert math.isclose(why.difference, sum(each.amount for each in why.contributions))
    assert np.count_nonzero(opened.coef_) == 2
    opened.save(tmp_path / "model.pw")
    assert list(load(tmp_path / "model.pw").predict(X)) == list(opened.predict(X))


def test_the_page_of_file_formats(run_page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page("file_formats.md")
    assert (tmp_path / "model.pw").stat().st_size > 0


def test_the_page_of_reports(run_page):
    page = run_page("report.md")
    text = (page["folder"] / "report.html").read_text(encoding="utf-8")
    # a curve and a reliability diagram, each with an inner frame, and three drawings
    assert text.count("<svg") >= 2 * 2 + 3
    assert (page["folder"] / "history.csv").read_text().startswith("passes,seconds")
    assert math.isclose(page["why"].difference, sum(each.amount for each in page["why"].contributions))
    assert page["told"].weights_after < page["told"].weights_before


def test_the_page_of_answers(run_page):
    """The table has every estimator with model files, and each estimator does what its row says."""
    page = run_page("answers.md")
    classes = {type(estimator).__name__ for estimator, *_ in page["fitted"].values()}
    pipelines = {"ConlluPipeline"}  # a file of several estimators
    kinds = {name for module, name in model_files.KINDS.values() if module.startswith("partwise.")}
    assert classes == kinds - pipelines
    head, _, *rows = re.search(r"<!-- generated: answers -->\n(.*?)<!-- end", text_of("answers.md"), re.DOTALL)[
        1
    ].split("\n")[:-1]
    columns = [cell.strip() for cell in head.strip("|").split("|")]
    table = {}
    for row in rows:
        name, *cells = (cell.strip().strip("`") for cell in row.strip("|").split(" | "))
        table[name] = dict(zip(columns[1:], cells, strict=True))
    assert set(table) == set(page["fitted"])
    for name, (estimator, X, best, constraints) in page["fitted"].items():
        asked = {
            "best": lambda given, e=estimator, X=X: e.predict(X, **given),
            "k best": lambda given, e=estimator, X=X: e.predict_k_best(X, 2, probabilities=True, **given),
            "samples": lambda given, e=estimator, X=X: e.sample(X, 2, random_state=0, **given),
            "marginals": lambda given, e=estimator, X=X: e.predict_marginals(X, **given),
            "entropy": lambda given, e=estimator, X=X: e.entropy(X, **given),
            "probability": lambda given, e=estimator, X=X, best=best: e.log_probability(X, best, **given),
        }
        for what, ask in asked.items():
            if table[name][what] == "yes":
                assert len(ask({})) == len(ask(constraints)) == len(X)
            else:
                with pytest.raises(NotAvailable):
                    ask({})
        assert set(constraints) <= set(re.findall(r"\w+", table[name]["constraints"]))
        # the best answer has the probability that predict_k_best gives it
        ranked = estimator.predict_k_best(X, 1, probabilities=True)
        np.testing.assert_allclose(estimator.log_probability(X, best), np.log([own[0][1] for own in ranked]), atol=1e-6)
    assert 0 <= page["share"] <= 1
    assert (page["undecided"] >= 0).all()


def test_the_page_of_graphs(run_page):
    page = run_page("graphs.md")
    assert page["five_best"][0][0] == page["value"] <= page["log_z"]
    assert len(page["labels"]) == 4
    assert len(page["draws"]) == 10
    np.testing.assert_allclose(page["constrained"], [0.0, 0.0, 1.0], atol=1e-14)
    assert re.match(r"example 0: its junction tree of width 1\d would take .* bytes", page["refusal"])


def test_the_page_of_grammars(run_page):
    page = run_page("grammars.md")
    assert [2, 5] in page["phrase"][:, 1:].tolist()
    assert [2, 5] not in page["nodes"][:, 1:].tolist() or page["phrase"].tolist() == page["nodes"].tolist()
    assert len(page["three_best"]) == 3
    assert page["expected"][0] == pytest.approx(1.0)  # every parse uses rule 0 once


def test_the_page_of_trees(run_page):
    page = run_page("trees.md")
    trees, scores = page["trees"], page["scores"]
    np.testing.assert_array_equal(trees.decode(page["indptr"], page["slots"], page["counts"]), page["heads"])
    np.testing.assert_allclose(page["probabilities"].sum(axis=1), 1.0)
    assert page["five_best"][0][0] == page["value"]
    assert len(page["draws"]) == 10
    np.testing.assert_allclose(page["constrained"][3], [0.0, 1.0, 0.0, 0.0, 0.0], atol=1e-14)
    assert page["SpanningTree"](page["lengths"]).maximize(1, scores)[0] >= page["value"]


def test_files_named_by_the_architecture_exist():
    root = DOCS.parent
    found = set(re.findall(r"[\w/]+\.(?:py|cpp)", text_of("architecture.md")))
    assert len(found) > 40
    sources = [path.as_posix() for top in ("src/partwise", "core", "tests") for path in (root / top).rglob("*.*")]
    assert [name for name in sorted(found) if not any(path.endswith(f"/{name}") for path in sources)] == []


def is_there(name: str) -> bool:
    """Return whether a public name exists; names of integrations count if their library is missing."""
    try:
        return pydoc.locate(name) is not None
    except pydoc.ErrorDuringImport as error:
        return name.startswith("partwise.integrations.") and isinstance(error.value, ImportError)


def test_names_in_the_reference_exist():
    found = re.findall(r"^\.\. (currentmodule|auto\w+):: ([\w.]+)$", text_of("api.md"), re.MULTILINE)
    assert len(found) > 60
    module, missing = "", []
    for directive, name in found:
        if directive == "currentmodule":
            module = name
        elif not is_there(name if name.startswith("partwise.") else f"{module}.{name}"):
            missing.append(name)
    assert missing == []


@pytest.fixture
def docs_modules(monkeypatch):
    """Make the docs' folder importable, as when the site is built."""
    monkeypatch.syspath_prepend(str(DOCS))


def test_nothing_in_the_reference_is_empty(docs_modules):
    """All classes and members on the reference pages have docstrings (the core's are in the stubs)."""
    import reference_pages
    import stub_docstrings

    pages, empty = reference_pages.pages(text_of("api.md")), []
    names = ("Structure", "Problem", "Solver", "solvers.State", "solvers.Certified", "problem.capabilities.Capability")
    names += ("problem.dual_points.DualPoint", *(f"structures.{cls}" for cls in structures.__all__ if cls[0].isupper()))
    assert {f"partwise.{name}.rst" for name in names} - {"partwise.structures.Structure.rst"} <= set(pages)
    for page, text in pages.items():
        name = page[:-4]
        if "autoclass" not in text or name.startswith("partwise.integrations."):
            continue
        cls, listed = pydoc.locate(name), re.search(r"^   :members:(.*)$", text, re.MULTILINE)
        members = [] if listed is None else [each.strip() for each in listed[1].split(",") if each.strip()]
        if listed is not None and not members:
            members = [each for each in vars(cls) if each[0] != "_" and callable(getattr(cls, each))]
        for each in (name, *(f"{name}.{member}" for member in members)):
            lines = pydoc.getdoc(pydoc.locate(each)).splitlines()
            stub_docstrings.fill_docstring(None, "", each, None, None, lines)
            if not "".join(lines).strip():
                empty.append(each)
    assert not empty, " ".join(empty)
    lines = ["maximize(self, i: int) -> object"]
    stub_docstrings.fill_docstring(None, "method", "partwise.Structure.maximize", None, None, lines)
    assert lines[0].startswith("Return the best labelling")
    signature = stub_docstrings.fill_signature(None, "method", "partwise.Structure.maximize", None, None, "()", None)
    assert signature == ("(i, scores)", None)
    assert ".. autoclass:: Chain(lengths, n_labels, tied=True, ends=False)" in pages["partwise.structures.Chain.rst"]


def test_every_name_of_the_reference_has_a_page(docs_modules):
    import reference_pages as reference

    text = text_of("api.md")
    pages, table = reference.pages(text), reference.table(text)
    assert len(pages) == len(re.findall(r"^\.\. auto(?!module)\w+::", text, re.MULTILINE)) > 100
    tagger = pages["partwise.SequenceTagger.rst"]
    assert tagger.startswith("SequenceTagger\n==============\n\n.. currentmodule:: partwise\n")
    assert ".. autoclass:: SequenceTagger\n   :members: predict_single," in tagger
    assert set(re.findall(r"^   generated/(.*)$", table, re.MULTILINE)) == {name[:-4] for name in pages}
    assert "autoclass" not in table
    assert ".. automodule:: partwise.methods" in table  # the text of this module stays on the overview page
    assert all(is_there(name[:-4]) for name in pages)


def test_every_page_is_in_the_navigation():
    named = {"index"}
    for path in DOCS.glob("*.md"):
        for tree in re.findall(
            r"^```\{toctree\}\n(.*?)^```$", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
        ):
            named |= {line for line in tree.splitlines() if line and not line.startswith(":")}
    assert {path.stem for path in DOCS.glob("*.md")} == named - {"gallery/index"}


def test_no_code_block_scrolls_sideways():
    """The style sheet wraps lines of code, and text drawings, which are not wrapped, are narrow enough."""
    style = (DOCS / "_static" / "site.css").read_text(encoding="utf-8")
    assert re.search(r"div.highlight pre \{[^}]*white-space: pre-wrap", style)
    for path in DOCS.glob("*.md"):
        for block in re.findall(r"^```text\n(.*?)^```$", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
            assert max(map(len, block.splitlines())) <= 128, path.name


def test_the_first_page_runs(run_page):
    page = run_page("getting_started.md")
    assert page["tagger"].result_.status == "converged"


def test_every_experiment_is_on_its_page():
    from papers import EXPERIMENTS

    page = text_of("reproduce.md")
    for name in EXPERIMENTS:
        assert f"`{name}`" in page, name
        assert f"<!-- claims {name} -->" in page, name
