"""Graphs over discrete variables."""

from typing import Final

from .structures import Structure
from .support import Floats, Ints

class Graph(Structure):
    """Labels of the vertices of any graph, with scores for the joint labels of cliques; `structures.graph` makes one
    from lists.

    Example i has the vertices [vertex_ptr[i], vertex_ptr[i + 1]) with `n_labels` labels each, and the cliques
    [clique_ptr[i], clique_ptr[i + 1]). Clique c has members[member_ptr[c]:member_ptr[c + 1]], numbers of vertices
    within the example, and the table tables[c], numbered from 0 in each example; cliques with the same table are tied.
    common_labels[common_ptr[t]:common_ptr[t + 1]] are the numbers of labels of the vertices of table t, which every
    example then has, whether a clique of it names that table or not.

    Slots: a row per vertex, padded to padded_width(labels), then the tables in the order of their numbers, in the order
    of the clique's vertices with the last one the fastest and padded. Cost: the number of vertices with a wrong label,
    charged in the rows of vertices. Ties go to the lowest labels, of the vertex that is eliminated last first.

    An example whose junction tree takes more than memory_limit bytes is refused when it is first used or checked; what
    a mask rules out does not count.
    """

    def __init__(
        self,
        vertex_ptr: Ints,
        n_labels: Ints,
        clique_ptr: Ints,
        member_ptr: Ints,
        members: Ints,
        tables: Ints,
        memory_limit: float = ...,
        common_ptr: Ints | None = None,
        common_labels: Ints | None = None,
    ) -> None: ...
    memory_limit: Final[float]  #: Bytes that the tables of an example's junction tree may take.
    vertex_ptr: Final[Ints]  #: Where the vertices of each example begin, and where the last ones end.
    n_labels: Final[Ints]  #: The number of labels of each vertex.
    clique_ptr: Final[Ints]  #: Where the cliques of each example begin, and where the last ones end.
    member_ptr: Final[Ints]  #: Where the members of each clique begin, and where the last ones end.
    members: Final[Ints]  #: The vertices of each clique, numbered within the example.
    tables: Final[Ints]  #: The table of each clique.
    def table_offsets(self, i: int) -> Ints:
        """Return where the tables of example i begin in its slots, and the number of its slots."""
    def width(self, i: int) -> int:
        """Return the width of the junction tree of example i: the variables of its largest clique, less one."""
    def bytes(self, i: int) -> int:
        """Return how many bytes of memory sums over the labellings of example i take."""
    def encode(self, labels: Ints) -> tuple[Ints, Ints, Floats]:
        """Return the labellings (indptr, slots, counts) of all examples' labels of vertices, concatenated."""
    def decode(self, indptr: Ints, slots: Ints, counts: Floats) -> Ints:
        """Return all examples' labels, concatenated: the inverse of `encode`."""
    def decode_of(self, i: int, slots: Ints, counts: Floats) -> Ints:
        """Return the labels of a labelling of example i."""
