"""Figure 2 of Huang et al. 2010: iterative scaling, coordinate descent, L-BFGS and TRON on 0/1 features of text."""

from __future__ import annotations

from collections.abc import Sequence

from papers.curves import overtakes
from papers.experiment import Cell, Experiment, Records
from papers.maxent_runs import LEVELS, METHODS, OURS, PERMUTED, REFERENCE, VARIANTS, Runs, spelled, train_text
from papers.outcome import Chart, Claim, Table, told
from papers.verdicts import every, larger, sooner

PART = "CoNLL2000-P, part"
#: (name, data, sentences (Brown: articles), CPU seconds of a run), both full and quick. L-BFGS needs about 20 s until
#: it is closer to the optimum than CD.
DATA = {
    PART: ("CoNLL2000-P", (400, 100), (4.0, 0.6)),
    "CoNLL2000-P": ("CoNLL2000-P", (None, 300), (36.0, 0.5)),
    "CoNLL2000-C": ("CoNLL2000-C", (None, 300), (36.0, 0.5)),
    "BROWN, part": ("BROWN", (50, 8), (36.0, 0.5)),
}
LARGE = tuple(DATA)[1:]
L2 = 0.1
#: Two methods whose ratio of times is below this are called equally fast.
ALIKE = 1.5
#: Final convergence is what happens below this relative difference.
TAIL = 1e-3
GIS_IS_SLOW = (
    "GIS divides each step by f#, the most attributes that a position has (about 20 for tags, 41 for chunks), "
    "and an iteration costs what one of LBFGS does: both take the expectations of all features once"
)


def cells(quick: bool) -> Sequence[Cell]:
    found = []
    for name, (of, limits, seconds) in DATA.items():
        cap = seconds[quick]
        common = {"of": of, "limit": limits[quick], "l2": L2, "held": 100 if quick else 500}
        for method, (solver, options) in (METHODS | VARIANTS).items():
            setting = {**common, "solver": solver, "options": options, "max_seconds": cap}
            found.append(Cell(f"{name}: {method}", train_text, setting, seconds=1.5 * cap))
        longest = {**common, "solver": "cd" if of == "BROWN" else "sdca", "max_seconds": 2 * cap}
        found.append(Cell(f"{name}: {REFERENCE}", train_text, longest, seconds=2.5 * cap))
    return found


def show(records: Records) -> list[Table | Chart | Claim]:
    runs = {name: Runs(name, records) for name in DATA}
    full = runs["CoNLL2000-P"].by_method["CD"]["n_examples"] == 197_979
    drawn = [*METHODS, PERMUTED, OURS]
    rows = [runs[name].row(method, LEVELS) for name in DATA for method in drawn]
    headings = ["data", "method", *(f"CPU s to {level:g}" for level in LEVELS)]
    headings += ["last difference", "last gradient norm", "last score"]
    slack = ", ".join(f"{name} {run.slack:.1g}" for name, run in runs.items())
    items: list[Table | Chart | Claim] = [*told(claims(runs), full)]
    items.append(
        Table("methods", "Time to relative differences (42)", headings, rows,
              f"The lowest objective met is certified to be within this of the optimum: {slack}.")
    )  # fmt: skip
    for name, run in runs.items():
        score = "chunk F1" if name.endswith("C") else "accuracy"
        items.append(
            Chart("figure-2-" + name.lower().replace(", ", "-").replace(" ", "-"), f"Figure 2: {name}",
                  run.panels(drawn, f"test {score}, beam search"),
                  paper="CD is the lowest curve of the three IS/CD methods, then SCGIS, then GIS; all three fall "
                  "faster than LBFGS and TRON at first, and LBFGS crosses them later. Test scores: CD is at its final "
                  "score first.")
        )  # fmt: skip
    return items


def claims(runs: dict[str, Runs]) -> list[Claim]:
    large = [runs[name] for name in LARGE]

    def ahead(text: str, one: str, other: str, over: Sequence[Runs]) -> Claim:
        found = [run.ahead(one, other) for run in over]
        return Claim(text, every(told for told, _ in found), "; ".join(line for _, line in found))

    def late(text: str, one: str, other: str) -> Claim:
        told, _, line = runs[PART].faster(one, other)
        return Claim(text, told, line)

    early = []
    for run in large:
        moment = run.by_method["CD"]["trace"]["cpu_seconds"][3]  # evaluation 3: after three passes
        early.append((run, moment, {method: run.at(method, moment) for method in METHODS}))
    at_first = []
    for method in ("CD", "SCGIS", "GIS"):
        holds = all(d[method] < min(d["LBFGS"], d["TRON"]) for _, _, d in early)
        numbers = (
            f"{run.of}, differences after {moment:.2g} s: {method} {d[method]:.2g}, LBFGS {d['LBFGS']:.2g}, "
            f"TRON {d['TRON']:.2g}"
            for run, moment, d in early
        )
        why = "" if holds or method != "GIS" else GIS_IS_SLOW
        text = f"{method} decreases the objective faster than LBFGS and TRON in the beginning"
        at_first.append(Claim(text, holds, "; ".join(numbers), why))
    scores = [(run, {m: run.seconds_to_score(m) for m in ("CD", "LBFGS", "TRON")}) for run in large]
    alike = [run.at_levels(PERMUTED, "CD", LEVELS[:-1]) for run in large]
    tails = {method: runs[PART].tail(method, TAIL) for method in ("TRON", "LBFGS", "CD")}
    return [
        ahead("CD is faster than SCGIS", "CD", "SCGIS", large),
        ahead("SCGIS is faster than GIS", "SCGIS", "GIS", large),
        *at_first,
        _final([*large, runs[PART]]),
        Claim(
            "with longer training, TRON's final convergence is the fastest",
            every(larger([tails["TRON"] or 0.0], [tails[other] or 0.0]) for other in ("LBFGS", "CD")),
            f"{PART}, powers of ten by which the gradient's norm falls in a CPU s, from a difference of {TAIL:g} on: "
            + ", ".join(f"{method} {rate or 0.0:.3g}" for method, rate in tails.items())
            + f" (times, {runs[PART].faster('TRON', 'LBFGS')[2]})",
            needed="the largest of these rates",
        ),
        ahead("LBFGS outperforms TRON on 0/1 features", "LBFGS", "TRON", (*large, runs[PART])),
        late("LBFGS is more accurate than CD late", "LBFGS", "CD"),
        late("TRON is more accurate than CD late", "TRON", "CD"),
        Claim(
            "CD reaches the final test score sooner than LBFGS and TRON",
            every(
                sooner([t["CD"]], [t[other]]) for _, t in scores for other in ("LBFGS", "TRON")
            ),
            "; ".join(
                f"{run.of}, to 0.2 points below {100 * run.best_score():.2f} %: CD {spelled(t['CD'])}, LBFGS "
                f"{spelled(t['LBFGS'])}, TRON {spelled(t['TRON'])}" for run, t in scores
            ),
        ),
        Claim(
            "with and without permutation CD is about as fast",
            all(1 / ALIKE <= a / b <= ALIKE for pairs, _ in alike for a, b in pairs),
            "; ".join(line for _, line in alike),
            needed=f"times within a factor of {ALIKE:g}",
        ),
    ]  # fmt: skip


def _final(runs: Sequence[Runs]) -> Claim:
    """Compare L-BFGS with iterative scaling and CD at the end, and find from when on it is ahead of CD."""
    verdicts, lines = [], []
    for run in runs:
        ends = {m: run.differences(m)[-1] for m in ("LBFGS", "CD", "SCGIS", "GIS")}
        # Two differences below the precision of the optimum cannot be compared.
        told = {m: max(d, run.floor) for m, d in ends.items()}
        verdicts += [larger([told[m]], [told["LBFGS"]]) for m in ("CD", "SCGIS", "GIS")]
        since = overtakes(run.by_method["LBFGS"], run.by_method["CD"], axis="cpu_seconds")
        last = run.by_method["LBFGS"]["trace"]["cpu_seconds"][-1]
        lines.append(
            f"{run.of}, after {last:.3g} s: LBFGS {ends['LBFGS']:.2g}, CD {ends['CD']:.2g}, ahead of CD "
            + ("never" if since is None else f"since {since:.3g} s")
        )
    return Claim("LBFGS has faster final convergence than the IS/CD methods", every(verdicts), "; ".join(lines))


EXPERIMENT = Experiment(
    name="maxent-text",
    title="0/1 features of text: iterative scaling, coordinate descent, L-BFGS, TRON",
    paper="huang2010",
    source="Section 5.1, Figure 2; section 4.4",
    setup=(
        "Parts of speech and chunk tags of CoNLL-2000 with the very features of Table 3, and parts of speech of 50 "
        "articles of Brown, 40 of them for training. l2 = 0.1, the reading of sigma^2 = 10 that makes good models "
        "(maxent-statistics). CD is order='index', bound='paper', gamma = 0.001, beta = 0.5. One thread; time is CPU "
        "time of the steps, without what is computed for the figures. The test score is accuracy, or F1 of chunks, of "
        "a beam search (3 and 10 sequences, OpenNLP's defaults) on the first 500 test sentences. 400 sentences of "
        "CoNLL2000-P show how the curves end."
    ),
    cells=cells,
    show=show,
    data=("conll2000", "brown"),
)
