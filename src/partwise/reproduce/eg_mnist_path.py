"""Table 2: a path of penalties on MNIST."""

from __future__ import annotations

from collections.abc import Sequence

from .experiment import Cell, Experiment, Records
from .outcome import Chart, Claim, Curve, Panel, Table
from .training import train_path

#: C, passes of that C, validation error.
PAPER = (
    (1000, 11, 0.1011), (700, 3, 0.0968), (490, 4.01, 0.0926), (343, 4.09, 0.0895), (240.1, 4.24, 0.0869),
    (168.07, 4.32, 0.0846), (117.649, 4.3, 0.0829), (82.3543, 4.29, 0.0809), (57.648, 4.32, 0.0803),
    (40.3536, 4.33, 0.0775), (28.2475, 4.34, 0.0768), (19.7733, 4.36, 0.0758), (13.8413, 4.38, 0.076),
    (9.6889, 5.47, 0.0744), (6.78223, 5.49, 0.0741), (4.74756, 5.51, 0.0732), (3.32329, 6.6, 0.0736),
    (2.32631, 7.69, 0.0735), (1.62841, 8.78, 0.0729), (1.13989, 12, 0.074), (0.797923, 15.24, 0.0747),
    (0.558546, 20.61, 0.0749), (0.390982, 27.05, 0.074), (0.273687, 35.63, 0.0747),
)  # fmt: skip
TOTAL = 211.17
FACTOR, TOL = 0.7, 1e-3


def cells(quick: bool) -> Sequence[Cell]:
    path = [1000 * FACTOR**k for k in range(len(PAPER))]
    options = {"of": "mnist", "l2s": path, "tol": TOL, "limit": 3000 if quick else None}
    return [Cell("path", train_path, options, seconds=6 if quick else 240)]


def show(records: Records) -> list[Table | Chart | Claim]:
    rows = records["path"]["rows"]
    full = records["path"]["n_examples"] == 59_000
    total = 0.0
    table, ours = [], []
    for (C, passes, error), row in zip(PAPER, rows, strict=True):
        total += row["passes"]
        ours.append((100 * (1 - row["score"]), row["l2"]))
        table.append([C, passes, row["passes"], total, 100 * error, ours[-1][0], row["gap"] / row["primal"]])
    best, best_C = min(ours)
    Cs = [row["l2"] for row in rows]
    chart = Chart(
        "path",
        "Passes and validation error by C",
        [
            Panel(
                "passes at each C",
                "C",
                "passes",
                [Curve("paper", Cs, [p for _, p, _ in PAPER]), Curve("partwise", Cs, [r["passes"] for r in rows])],
                x_scale="log",
            ),
            Panel(
                "validation error",
                "C",
                "error, %",
                [Curve("paper", Cs, [100 * e for *_, e in PAPER]), Curve("partwise", Cs, [e for e, _ in ours])],
                x_scale="log",
            ),
        ],
    )
    headings = ["C", "passes, paper", "passes", "passes in all", "error %, paper", "error %", "relative gap"]
    return [
        Claim(
            "a path of 24 penalties takes about as many passes as one weak penalty alone would",
            total <= TOTAL if full else None,
            f"{total:.2f} passes in all; the paper: {TOTAL}",
        ),
        Claim(
            "the lowest validation error is 7.29 %, at C = 1.63",
            abs(best - 7.29) <= 0.2 and 0.5 <= best_C <= 5 if full else None,
            f"{best:.2f} % at C = {best_C:.3g}",
        ),
        Table(
            "path", "Table 2", headings, table, "A pass is as many visits as there are examples, trial steps included."
        ),
        chart,
    ]


EXPERIMENT = Experiment(
    name="eg-mnist-path",
    title="MNIST: a path of penalties",
    paper="collins2008",
    source="Section 7.1.2, Table 2",
    setup=(
        "Multinomial logistic regression on 59,000 images with pixels between 0 and 1, no bias; validation error on "
        "10,000 others. From C = 1000 down by factors of 0.7, each to a relative gap of 0.1 % from the dual point of "
        "the one before. The solver is eg with its default step sizes."
    ),
    cells=cells,
    show=show,
    data=("mnist",),
)
