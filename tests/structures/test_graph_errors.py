"""Invalid graphs, labels and labellings are refused, and all examples may share tables."""

from __future__ import annotations

import numpy as np
import pytest

from partwise import structures
from partwise.structures import Graph, graph


@pytest.mark.parametrize(
    ("example", "message"),
    [
        (([], []), "example 1 has no vertices"),
        (([2, 0], []), "example 1: vertex 1 has no labels"),
        (([2, 2], [(0, 2)]), r"example 1: clique 0 has the vertex 2, which is not in \[0, 2\)"),
        (([2, 2], [(0, -1)]), "example 1: clique 0 has the vertex -1"),
        (([2, 2], [(0, 1), (1, 1)]), "example 1: clique 1 names a vertex twice"),
        (([2, 2], [()]), "example 1: clique 0 has no vertices"),
        (([2, 3], [(0,), (1,)], [0, 0]), "example 1: clique 1 has the table 0, which is for other numbers"),
        (([2, 2], [(0, 1)], [1]), "example 1 has no table 0"),
        (([2, 2], [(0, 1)], [-1]), "example 1: clique 0 has a negative number of a table"),
        (([2, 2], [(0, 1)], [0, 1]), "example 1 has 1 cliques and 2 numbers"),
        ((1, 2, 3, 4), "example 1 must be"),
    ],
)
def test_invalid_graphs_are_refused(example, message):
    with pytest.raises(ValueError, match=message):
        graph([([2], []), example])


def test_bad_labels_and_labellings():
    own = graph([([2], []), ([2, 3], [(0, 1)])])
    with pytest.raises(ValueError, match=r"example 1: label 3 of vertex 1 is not in \[0, 3\)"):
        own.encode(np.array([0, 1, 3]))
    with pytest.raises(ValueError, match="labels has 2 values"):
        own.encode(np.array([0, 1]))
    indptr, slots, counts = own.encode(np.array([1, 1, 2]))
    np.testing.assert_array_equal(own.decode(indptr, slots, counts), [1, 1, 2])
    mine, once = slots[indptr[1] :], counts[indptr[1] :]
    own.check_labelling(1, mine, once)
    with pytest.raises(ValueError, match="example 1 has no label for vertex 0"):
        own.check_labelling(1, mine[1:].copy(), once[1:].copy())
    with pytest.raises(ValueError, match=r"example 1: slot .* count"):
        own.check_labelling(1, mine[:-1].copy(), once[:-1].copy())
    with pytest.raises(ValueError, match="example 1 does not have one label for vertex 0"):
        own.check_labelling(1, mine, once * 2)
    with pytest.raises(ValueError, match="example 1 has no slot"):
        own.check_labelling(1, np.array([10**6]), np.ones(1))
    with pytest.raises(ValueError, match="memory_limit"):
        graph([([2], [])], memory_limit=0)
    with pytest.raises(ValueError, match="no example 2"):
        own.width(2)
    with pytest.raises(ValueError, match="too large"):
        graph([([2**31] * 4, [(0, 1, 2, 3)])])
    with pytest.raises(ValueError, match=r"width 39 would take .* more than memory_limit = 1e\+18"):
        # a limit too large for a 64-bit count
        graph([([4] * 40, [(a, b) for b in range(40) for a in range(b)])], memory_limit=1e300).width(0)
    with pytest.raises(ValueError, match="vertex_ptr"):
        Graph(*(np.array(x, dtype=np.int64) for x in ([0, 3], [2, 2], [0, 0], [0], [], [])))
    assert structures.Graph is Graph


def test_common_tables(rng):
    """Tables that all examples share, although some examples have no clique for a table."""
    own = graph([([2, 2], [(0, 1)], [1]), ([2], [])], common=[(2, 2), (2, 2)])
    plain = graph([([2, 2], [(0, 1)])])
    assert [own.table_offsets(i).tolist() for i in range(2)] == [[8, 16, 24], [4, 12, 20]]
    scores = rng.normal(size=24)
    used = np.delete(scores, range(8, 16))
    assert own.log_partition(0, scores)[0] == plain.log_partition(0, used)[0]
    np.testing.assert_array_equal(own.log_partition(0, scores)[1][8:16], 0)
    with pytest.raises(ValueError, match="example 0: clique 0 has the table 0, which is for other numbers of labels"):
        graph([([2, 3], [(0, 1)], [0])], common=[(2, 2)])
    with pytest.raises(ValueError, match="common table 1 has no vertices"):
        graph([([2], [])], common=[(2,), ()])
