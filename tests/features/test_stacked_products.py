"""Products of stacks of matrices, where the bits of a product must not depend on the other matrices of the stack."""

from __future__ import annotations

import numpy as np
import pytest

from partwise._core import stacked_products


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (200, 3, 5, 7), (70, 1, 300, 33), (0, 2, 3, 4)])
def test_stacked_products(rng, shape):
    n, stack, inner, columns = shape
    left, right = rng.normal(size=(n, stack, inner)), rng.normal(size=(stack, inner, columns))
    found = stacked_products(left, right)
    np.testing.assert_allclose(found, np.einsum("nai,aim->nam", left, right), atol=1e-12)
    np.testing.assert_array_equal(stacked_products(left, right, 3), found)
    for i in range(n):  # a row has the same bits whatever the other rows are
        np.testing.assert_array_equal(stacked_products(left[i : i + 1].copy(), right), found[i : i + 1])
    with pytest.raises(ValueError, match="shapes of the matrices do not match"):
        stacked_products(left, rng.normal(size=(stack, inner + 1, columns)))
