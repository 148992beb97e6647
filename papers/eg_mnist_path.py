"""Table 2 of Collins et al. 2008: a path of penalties on MNIST."""

from __future__ import annotations

from collections.abc import Sequence

from papers.experiment import Cell, Experiment, Records
from papers.outcome import Chart, Claim, Table, told
from papers.penalty_path import best_claims, passes_claim, path_cells, show_path

#: The paper's table: (C, passes at that C, validation error in percent).
PAPER = (
    (1000, 11, 10.11), (700, 3, 9.68), (490, 4.01, 9.26), (343, 4.09, 8.95), (240.1, 4.24, 8.69),
    (168.07, 4.32, 8.46), (117.649, 4.3, 8.29), (82.3543, 4.29, 8.09), (57.648, 4.32, 8.03),
    (40.3536, 4.33, 7.75), (28.2475, 4.34, 7.68), (19.7733, 4.36, 7.58), (13.8413, 4.38, 7.6),
    (9.6889, 5.47, 7.44), (6.78223, 5.49, 7.41), (4.74756, 5.51, 7.32), (3.32329, 6.6, 7.36),
    (2.32631, 7.69, 7.35), (1.62841, 8.78, 7.29), (1.13989, 12, 7.4), (0.797923, 15.24, 7.47),
    (0.558546, 20.61, 7.49), (0.390982, 27.05, 7.4), (0.273687, 35.63, 7.47),
)  # fmt: skip
TOTAL = 211.17


def cells(quick: bool) -> Sequence[Cell]:
    return path_cells("mnist", PAPER, quick, 3000 if quick else None, 3 if quick else 70, others=len(PAPER))


def show(records: Records) -> list[Table | Chart | Claim]:
    full = records["path"]["n_examples"] == 59_000
    claims = [passes_claim(records, TOTAL), *best_claims(records, 7.29, 1.63, error=True, near=0.2)]
    return [
        *told(claims, full),
        *show_path(records, PAPER, "Table 2", error=True),
    ]


EXPERIMENT = Experiment(
    name="eg-mnist-path",
    title="MNIST: a path of penalties",
    paper="collins2008",
    source="Section 7.1.2, Table 2",
    setup=(
        "Multinomial logistic regression on 59,000 images with pixels between 0 and 1, no bias; validation error on "
        "10,000 others. From C = 1000 down by factors of 0.7, each to a relative gap of 0.1 % from the dual point of "
        "the one before. The solver is eg with its default options: the step size of an example starts at 0.5, is "
        "halved until the dual rises and grows by 1.05, as in the paper; examples are visited in a new random order in "
        "each pass (the paper draws them with replacement), and of five such orders the mean is compared."
    ),
    cells=cells,
    show=show,
    data=("mnist",),
)
