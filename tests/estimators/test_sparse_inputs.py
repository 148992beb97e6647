"""Damaged sparse matrices are refused: SciPy follows them out of its memory."""

import numpy as np
import pytest
from scipy import sparse

from partwise import MaxentClassifier, Multiclass, RegularizationPathCV, SequenceTagger, maxent_map, multiclass_map
from partwise.features.sparse_inputs import check_sparse

Y = [0, 1, 0, 1]


def matrix(kind, rng):
    return sparse.csr_matrix(rng.normal(size=(4, 6))).asformat(kind)


def damaged(kind, where, rng):
    """A matrix with one number too large, or below 0, or out of order."""
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
def test_damaged_matrices_are_refused_before_anyone_follows_them(kind, where, rng):
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
    check_sparse(X)
    check_sparse(sparse.csr_array((0, 3)).asformat(kind))
    fitted = MaxentClassifier().fit(X, Y)
    np.testing.assert_array_equal(X.toarray(), before)
    np.testing.assert_array_equal(fitted.predict(X), fitted.predict(before))
