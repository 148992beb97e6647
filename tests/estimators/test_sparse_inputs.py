"""Malformed sparse matrices are refused: SciPy would read outside of its memory."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.validation import validate_data

from partwise import MaxentClassifier, RegularizationPathCV, SequenceTagger
from partwise._core import sparse_product
from partwise.estimators import classifier
from partwise.features import maxent_map, multiclass_map
from partwise.features.rows import own_sparse
from partwise.structures import Multiclass

Y = [0, 1, 0, 1]


def matrix(kind, rng):
    return sparse.csr_matrix(rng.normal(size=(4, 6))).asformat(kind)


def damaged(kind, where, rng):
    """Make a sparse matrix with one index too large, negative or out of order."""
    X = matrix(kind, rng)
    if where == "indices":
        X.indices[2] = 10**7
    elif where == "negative":
        X.indices[2] = -7
    elif where == "pointers":
        X.indptr[2] = 10**7
    elif where == "order":
        X.indptr[1], X.indptr[2] = X.indptr[2], X.indptr[1]
    elif where == "end":
        X.indptr[-1] = len(X.data) + 5
    return X


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
@pytest.mark.parametrize("where", ["indices", "negative", "pointers", "order", "end"])
def test_damaged_matrices_are_refused(kind, where, rng):
    X = damaged(kind, where, rng)
    fitted = MaxentClassifier().fit(matrix(kind, rng), Y)
    for call in (
        lambda: MaxentClassifier().fit(X, Y),
        lambda: RegularizationPathCV(MaxentClassifier(), cv=2).fit(X, Y),
        lambda: fitted.predict(X),
        lambda: fitted.predict_proba(X),
    ):
        with pytest.raises(ValueError, match="X is a damaged sparse matrix"):
            call()
    for make in (multiclass_map, maxent_map):
        with pytest.raises(ValueError, match="the matrix of rows is a damaged sparse matrix"):
            make(Multiclass(4, 2), X)
    with pytest.raises(ValueError, match="sequence 0 is a damaged sparse matrix"):
        SequenceTagger().fit([X], [Y])


def test_damaged_coordinates(rng):
    X = matrix("coo", rng)
    X.col[1] = 99
    with pytest.raises(ValueError, match="column 99 is out of range, there are 6"):
        MaxentClassifier().fit(X, Y)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "lil", "dok", "dia"])
def test_whole_matrices_pass_and_stay_as_they_are(kind, rng):
    X = matrix(kind, rng)
    before = X.toarray()
    copy = own_sparse(X)
    np.testing.assert_array_equal(copy.toarray(), before)
    if kind in ("csr", "csc", "bsr", "coo"):
        assert not np.shares_memory(copy.data, X.data)
    assert own_sparse(sparse.csr_array((0, 3)).asformat(kind)).shape == (0, 3)
    fitted = MaxentClassifier().fit(X, Y)
    np.testing.assert_array_equal(X.toarray(), before)
    np.testing.assert_array_equal(fitted.predict(X), fitted.predict(before))


@pytest.fixture
def changed_meanwhile(monkeypatch):
    """Return a function that lets X be damaged between the estimator's check and its use, as another thread could."""

    def install(X, where):
        def damage(data, *args, **kwargs):
            if where == "indices":
                X.indices[:] = 2**30
            else:
                X.indptr[1:] = 2**30
            return validate_data(data, *args, **kwargs)

        monkeypatch.setattr(classifier, "validate_data", damage)

    return install


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
@pytest.mark.parametrize("where", ["indices", "pointers"])
@pytest.mark.parametrize("method", ["predict", "fit"])
def test_damage_by_another_thread_does_not_crash(kind, where, method, rng, changed_meanwhile):
    X = sparse.csr_matrix(rng.normal(size=(400, 6))).asformat(kind)
    y = rng.integers(0, 3, 400)
    fitted = MaxentClassifier(tol=1e-2).fit(X, y)
    changed_meanwhile(X, where)
    try:
        found = fitted.predict(X) if method == "predict" else MaxentClassifier(tol=1e-2).fit(X, y).coef_
    except ValueError as error:
        message = str(error)
    else:
        message = "damaged sparse matrix" if np.isfinite(found).all() else "not finite"
    assert "damaged sparse matrix" in message or "index pointer" in message


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_products(dtype, rng):
    left = sparse.random_array((30, 8), density=0.3, format="csr", rng=rng)
    right = rng.normal(size=(8, 3))
    parts = left.indptr.astype(dtype), left.indices.astype(dtype), left.data
    np.testing.assert_allclose(sparse_product(*parts, right), left @ right, atol=1e-14)
    assert sparse_product(np.zeros(1, dtype), np.empty(0, dtype), np.empty(0), right).shape == (0, 3)
    for k, wrong in ((0, 31), (0, -1), (1, 8), (1, -1)):
        damaged_parts = [part.copy() for part in parts]
        damaged_parts[k][5] = wrong if k == 1 else wrong * 10**6
        with pytest.raises(ValueError, match="damaged sparse matrix"):
            sparse_product(*damaged_parts, right)
