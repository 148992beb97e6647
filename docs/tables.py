"""Write the tables that come from the code: `python docs/tables.py`, after each change of a solver or an estimator.

They are the parts of `solvers.md`, `data_sets.md`, `answers.md` and `partitions.md` between
`<!-- generated: NAME -->` and `<!-- end -->`, and the tests' table of what fits what. A test compares them with what
this program would write.
"""

import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from partwise.datasets import DATA_SETS
from partwise.models import Ability
from partwise.problem.capabilities import Capability, structure_capabilities
from partwise.problem.losses import LOSSES
from partwise.solvers import Solver, compatibility_table
from partwise.solvers.engine.registry import SOLVERS, fitting_solvers

DOCS = Path(__file__).resolve().parent
_BLOCK = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

# Kinds of problems, and what to say of a solver that fits none before.
KINDS_OF_CELLS = {"Multiclass": "one label", "Chain": "chains", "Multiclass, maxent map": "maxent map"}
KINDS_OF_L1 = {"Chain, l1 > 0": "yes", "Chain, elastic net": "`l2` > 0", "Multiclass, l1 > 0": "one label"}


def fits() -> str:
    """Solvers by losses; then what a user-defined structure or feature map must offer."""
    rows = [["solver", *(f"`{name}`" for name in LOSSES), "`l2` = 0", "`l1` > 0", "kernels", "asks of a structure"]]
    found = {
        kind: {name: fitting_solvers(loss, kind) for name, loss in LOSSES.items()}
        for kind in (*KINDS_OF_CELLS, "Multiclass, maxent map, l2 = 0", *KINDS_OF_L1)
    }
    of_structures = {
        "oracle of the loss",
        "max oracle",
        "expectation oracle",
        "covariance",
        "cliques",
        "clique support",
        "k_best",
        "sample",
        "one part",
    }
    for solver, cls in SOLVERS.items():
        cells = []
        for loss in LOSSES:
            kinds = {kind: solver in names[loss] for kind, names in found.items()}
            everywhere = kinds["Chain"] and kinds["Multiclass"]
            text = next((text for kind, text in KINDS_OF_CELLS.items() if kinds[kind]), "")
            cells.append("yes" if everywhere else text)
        fitting = {kind for kind, names in found.items() if any(solver in those for those in names.values())}
        unpenalised = "yes" if "Multiclass, maxent map, l2 = 0" in fitting else ""
        with_l1 = next((text for kind, text in KINDS_OF_L1.items() if kind in fitting), "")
        kernels = "explicit weights" not in cls.requires
        asks = ", ".join(sorted(cls.requires & of_structures))
        rows.append([f"`{solver}`", *cells, unpenalised, with_l1, "yes" if kernels else "", asks])
    return _table(rows)


def options() -> str:
    """Each solver's first line, rate and hyper-parameters."""
    parts = []
    for solver, cls in SOLVERS.items():
        text = f"### `{solver}`\n\n{inspect.getdoc(cls)}\n\n"
        text += f"Gives up after {cls.default_max_passes} passes by default. "
        text += f"Convergence: {cls.describe_rate()}.\n\n"
        rows = [["option", "default", "meaning"]]
        rows += [[f"`{item.name}`", f"`{item.default!r}`", item.metadata["help"]] for item in fields(cls)]
        parts.append(text + _table(rows))
    return "\n".join(parts)


def on_partitions() -> str:
    """Where each solver can be used on a partition."""
    rows = [["solver", "room for all batches", "otherwise, and on a cluster"]]
    for solver, cls in SOLVERS.items():
        if Capability.IN_MEMORY not in cls.requires:
            where = "yes"
        elif cls.in_blocks is not Solver.in_blocks:
            where = "in blocks (`block-dual`)"
        else:
            where = "not available: needs batches in memory"
        rows.append([f"`{solver}`", "one batch" if Capability.ONE_BATCH in cls.requires else "yes", where])
    return _table(rows)


def _table(rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines) + "\n"


def data_sets() -> str:
    """The real data sets."""
    rows = [["name", "what", "terms", "loader", "download"]]
    for item in DATA_SETS.values():
        loaders = ", ".join(f"`{name}`" for name in item.loader.split(", ") if name)
        rows.append([f"`{item.name}`", item.summary, item.terms, loaders, "yes" if item.downloadable else "local only"])
    return _table(rows)


def run_page(name: str) -> dict[str, Any]:
    """The names that a page's Python blocks define, run in order as one program."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (DOCS / name).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    found: dict[str, Any] = {"__name__": "page"}
    exec(compile("\n".join(blocks), name, "exec"), found)
    return found


def answers() -> str:
    """Which estimator answers what: those that the page of answers fits."""
    rows = [["estimator", "best", "k best", "samples", "marginals", "entropy", "probability", "constraints"]]
    for name, (estimator, X, _, _) in run_page("answers.md")["fitted"].items():
        has = services(estimator, X)
        names = ", ".join(f"`{each}`" for each in estimator._model.constraints) or "no"
        rows.append([f"`{name}`", "yes", *("yes" if has[each] else "no" for each in SERVICES), names])
    return _table(rows)


#: Methods of estimators, in the order of the table's columns.
SERVICES = ("predict_k_best", "sample", "predict_marginals", "entropy", "log_probability")


def services(estimator: Any, X: Any) -> dict[str, bool]:
    """What a fitted estimator offers, by what its structure and its model can do."""
    structure = estimator._model.read(X).batch.structure
    can, able = structure_capabilities(structure), estimator._model.abilities()
    sums = Capability.EXPECTATION_ORACLE in can
    return {
        "predict_k_best": Capability.K_BEST in can,
        "sample": Capability.SAMPLE in can,
        "predict_marginals": sums and Ability.MARGINALS in able,
        "entropy": sums,
        "log_probability": sums and Ability.ENCODING in able,
    }


GENERATORS = {
    "fits": fits,
    "options": options,
    "data-sets": data_sets,
    "answers": answers,
    "on-partitions": on_partitions,
}


def filled(text: str) -> str:
    """A page with its generated parts as they should be now."""
    return _BLOCK.sub(lambda match: match[1] + GENERATORS[match[2]]() + match[3], text)


def files() -> dict[Path, str]:
    """What each file with a generated part should hold."""
    pages = [DOCS / "solvers.md", DOCS / "data_sets.md", DOCS / "answers.md", DOCS / "partitions.md"]
    table = DOCS.parent / "tests" / "solvers" / "compatibility.txt"
    return {**{page: filled(page.read_text(encoding="utf-8")) for page in pages}, table: compatibility_table()}


def main() -> None:
    """Write them."""
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
