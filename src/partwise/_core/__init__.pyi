"""The compiled core: inference, features and one epoch of each solver.

Every call on whole data sets releases the GIL and looks for Ctrl-C about ten times a second. Arrays are C-contiguous
float64 / int64 unless said otherwise; a wrong shape, dtype or range raises ValueError before any work.

Slots. An example's slot vector is what `Structure` and `FeatureMap` agree on. Rows of labels are padded to `width`
(a multiple of 4 chosen from the number of labels), so slot (t, a) of a chain is `t * width + a`; padded slots belong to
no labelling: their scores are ignored and their marginals are 0. Slot vectors of all examples are stored end to end,
example i at [offsets[i], offsets[i + 1]) with offsets = structure.slot_offsets().

Epochs. A solver's kernel takes a state, an order and options. The state refers to arrays that Python owns, which are
updated in place and live as long as it does; shapes are checked where it is made.
"""

from .features import *
from .inference import *
from .objective import *
from .solvers import *
from .structures import *
from .support import *
from .text import *
