"""States of the core's kernels check shapes when they are made, and use arrays in place and keep them alive."""

import gc

import numpy as np
import pytest

from oracles.problems import make_case, maxent_case
from partwise import _core

L2 = 0.7


def _eg():
    case = make_case("chain-tied", 3)
    objective = case.objective("log")
    scores = objective.near_gold_scores(2.0)
    marginals, entropies = objective.marginals_of_scores(scores)
    weights = objective.dual_terms_gibbs(scores)[0] / L2
    steps = np.full(case.n, 0.5)
    arrays = {"weights": weights, "scores": scores, "marginals": marginals, "entropies": entropies, "step_sizes": steps}
    return objective, _core.EgState, arrays, lambda state: _core.eg_epoch(state, order(case), _core.EgOptions(l2=L2))


def _bcfw():
    case = make_case("chain-tied", 3)
    d = case.features.num_weights
    arrays = {
        "weights": np.zeros(d),
        "counts": np.concatenate(case.gold_counts),
        "mass": np.ones(case.n),
        "linear": np.zeros(case.n),
        "lag": np.zeros(d),
        "average": np.array([0.0, 1.0, 0.0]),
        "gaps": np.zeros(case.n),
    }
    options = _core.BcfwOptions(l2=L2)
    return case.objective("hinge"), _core.BcfwState, arrays, lambda s: _core.bcfw_epoch(s, order(case), options)


def _bcfw_sets():
    case = make_case("chain-tied", 3)
    sets, weights = _core.WorkingSets(case.n), np.zeros(case.features.num_weights)
    arrays = {"weights": weights, "sets": sets, "gaps": np.zeros(case.n)}
    options = _core.BcfwSetOptions(l2=L2)
    objective = case.objective("squared-hinge")
    return objective, _core.BcfwSetState, arrays, lambda s: _core.bcfw_set_epoch(s, order(case), options)


def _dcd():
    case = make_case("chain-tied", 3)
    arrays = {"weights": np.zeros(case.features.num_weights), "sets": _core.WorkingSets(case.n)}
    options = _core.DcdOptions(l2=L2)
    return case.objective("squared-hinge"), _core.DcdState, arrays, lambda s: _core.dcd_epoch(s, order(case), options)


def _sdca():
    case = make_case("multiclass", 3)
    objective = case.objective("log")
    scores = objective.near_gold_scores(2.0)
    entropies = _core.sdca_start(objective, 300.0, scores)
    arrays = {
        "curvatures": _core.slot_curvatures(objective, order(case)),
        "weights": objective.dual_terms_gibbs(scores)[0] / L2,
        "scores": scores,
        "entropies": entropies,
        "gains": np.zeros(case.n),
    }
    options = _core.SdcaOptions(l2=L2)
    return objective, _core.SdcaState, arrays, lambda state: _core.sdca_epoch(state, order(case), options)


def _sdca_lines():
    case = make_case("chain-tied", 3)
    objective, structure = case.objective("log"), case.structure
    cliques = _core.cliques_of_scores(structure, objective.near_gold_scores(2.0))
    counts, entropies = _core.read_cliques(structure, cliques)
    arrays = {
        "weights": objective.dual_terms_slots(counts, None, entropies)[0] / L2,
        "cliques": cliques,
        "counts": counts,
        "entropies": entropies,
        "gaps": np.zeros(case.n),
        "steps": np.full(case.n, 0.5),
    }
    options = _core.SdcaLineOptions(l2=L2, line_tol=0.1)
    return objective, _core.SdcaLineState, arrays, lambda state: _core.sdca_line_epoch(state, order(case), options)


def _scaling():
    case = maxent_case(3)
    objective = case.objective("log")
    weights = np.zeros(case.features.num_weights)
    potentials, inverse = np.empty(case.n * case.structure.width), np.empty(case.n)
    _core.scaling_refresh(objective, weights, potentials, inverse)
    empirical, mass, columns, *_ = _core.scaling_constants(objective)
    arrays = {
        "weights": weights,
        "potentials": potentials,
        "inverse": inverse,
        "empirical": empirical,
        "mass": mass,
        "largest_sum": 1.0,
    }
    options = _core.ScalingOptions(l2=L2, function="cd")
    return (
        objective,
        _core.ScalingState,
        arrays,
        lambda state: _core.scaling_epoch(state, np.arange(len(columns)), options),
    )


def _cd_l1():
    case = make_case("multiclass", 3)
    objective = case.objective("log")
    d = case.features.num_weights
    unscaled, _ = objective.marginals_of_scores(np.zeros(int(case.structure.slot_offsets()[-1])))
    arrays = {"weights": np.zeros(d), "unscaled": unscaled, "sums": np.ones(case.n)}
    options = _core.CdL1Options(l1=0.01, l2=L2, max_sweeps=3, tol=0.0)
    return (
        _core.WorkingColumns(objective, np.arange(d)),
        _core.CdL1State,
        arrays,
        lambda state: _core.cd_l1(state, options),
    )


def order(case):
    return np.arange(case.n)


KERNELS = {
    "eg": _eg,
    "bcfw": _bcfw,
    "bcfw_sets": _bcfw_sets,
    "dcd": _dcd,
    "sdca": _sdca,
    "sdca lines": _sdca_lines,
    "scaling": _scaling,
    "cd_l1": _cd_l1,
}
ARRAYS = [(k, name) for k, make in KERNELS.items() for name, x in make()[2].items() if isinstance(x, np.ndarray)]


@pytest.mark.parametrize("kernel", KERNELS)
def test_arrays_are_updated_in_place(kernel):
    objective, make_state, arrays, run = KERNELS[kernel]()
    before = arrays["weights"].copy()
    run(make_state(objective, **arrays))
    assert not np.array_equal(arrays["weights"], before)
    assert np.isfinite(arrays["weights"]).all()


@pytest.mark.parametrize(("kernel", "name"), ARRAYS)
@pytest.mark.parametrize("more", [-1, 1])
def test_wrong_lengths_are_refused_where_the_state_is_made(kernel, name, more):
    objective, make_state, arrays, _ = KERNELS[kernel]()
    n = len(arrays[name])
    arrays[name] = np.resize(arrays[name], n + more)
    with pytest.raises(ValueError, match=f"{name} has {n + more} values, {n} are needed"):
        make_state(objective, **arrays)


@pytest.mark.parametrize(("kernel", "name"), ARRAYS)
def test_arrays_that_would_have_to_be_copied_are_refused(kernel, name):
    """An array of another type or layout, or a read-only one, is refused: updates of a copy would be lost."""
    objective, make_state, arrays, _ = KERNELS[kernel]()
    only_read = name == "curvatures" or (kernel == "scaling" and name in ("empirical", "mass"))
    if kernel != "scaling" or not only_read:
        for wrong in (arrays[name].astype(np.float32), np.repeat(arrays[name], 2)[::2]):
            with pytest.raises(TypeError):
                make_state(objective, **{**arrays, name: wrong})
    frozen = arrays[name].copy()
    frozen.setflags(write=False)
    if only_read:
        make_state(objective, **{**arrays, name: frozen})
    else:
        with pytest.raises(TypeError):
            make_state(objective, **{**arrays, name: frozen})


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_state_keeps_its_arrays_alive(kernel):
    """A state keeps its objective, arrays and sets alive after the caller drops them, and gives the same results."""
    objective, make_state, arrays, run = KERNELS[kernel]()
    expected = vars_of(run(make_state(objective, **arrays)))
    objective, make_state, arrays, run = KERNELS[kernel]()
    arrays = {name: x.copy() if isinstance(x, np.ndarray) else x for name, x in arrays.items()}
    state = make_state(objective, **arrays)
    sizes = [x.nbytes for x in arrays.values() if isinstance(x, np.ndarray)]
    del objective, arrays
    gc.collect()
    # Overwrite memory that was freed by mistake
    rubbish = [np.full(size // 8, np.nan) for size in sizes for _ in range(20)]
    assert vars_of(run(state)) == expected
    del rubbish


def vars_of(report):
    return {name: getattr(report, name) for name in dir(report) if not name.startswith("_")}


def test_a_plan_of_visits():
    objective, make_state, arrays, _ = _scaling()
    state, options = make_state(objective, **arrays), _core.ScalingOptions(l2=L2, function="cd")
    n = len(_core.scaling_constants(objective)[2])
    wait, rest = np.ones(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    assert _core.scaling_rounds(state, _core.VisitPlan(objective, wait=wait, rest=rest), options).updates > 0
    with pytest.raises(ValueError, match=f"wait has {n + 1} values, {n} are needed"):
        _core.VisitPlan(objective, wait=np.ones(n + 1, dtype=np.int64), rest=rest)
    with pytest.raises(ValueError, match=f"rest has {n - 1} values, {n} are needed"):
        _core.VisitPlan(objective, wait=wait, rest=rest[1:])
    with pytest.raises(ValueError, match="column 0: not a plan of visits"):
        _core.VisitPlan(objective, wait=np.zeros(n, dtype=np.int64), rest=rest)
    other = maxent_case(3, n_attributes=9).objective("log")
    m = len(_core.scaling_constants(other)[2])
    assert m != n
    plan = _core.VisitPlan(other, wait=np.ones(m, dtype=np.int64), rest=np.zeros(m, dtype=np.int64))
    with pytest.raises(ValueError, match="another number of columns"):
        _core.scaling_rounds(state, plan, options)


@pytest.mark.parametrize("l2", [0.0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("kind", ["Eg", "Bcfw", "BcfwSet", "Dcd", "Sdca"])
def test_l2_is_refused_where_options_are_made(kind, l2):
    with pytest.raises(ValueError, match="l2 must be above 0 and finite"):
        getattr(_core, f"{kind}Options")(l2=l2)


def test_other_invalid_options():
    for l2 in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="l2 must be 0 or more and finite"):
            _core.ScalingOptions(l2=l2, function="cd")
        with pytest.raises(ValueError, match="l1 and l2 must be 0 or more and finite"):
            _core.CdL1Options(l1=0.1, l2=l2, max_sweeps=1, tol=0.0)
    with pytest.raises(ValueError, match="delta must be 0 or more"):
        _core.DcdOptions(l2=L2, delta=-1.0)
    with pytest.raises(TypeError):
        _core.EgOptions(L2)  # options are passed by keyword only


def test_losses_and_structures_that_do_not_fit():
    _, make_state, arrays, _ = _eg()
    with pytest.raises(ValueError, match="exponentiated gradient needs the identity link"):
        make_state(make_case("chain-tied", 3).objective("squared-hinge"), **arrays)
    _, make_state, arrays, _ = _sdca()
    with pytest.raises(ValueError, match="exact blocks need a temperature above 0"):
        make_state(make_case("multiclass", 3).objective("hinge"), **arrays)
    with pytest.raises(ValueError, match="labellings of this structure have several parts"):
        make_state(make_case("chain-tied", 3).objective("log"), **arrays)
