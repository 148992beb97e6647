"""Data sets for examples, tests and benchmarks, read from a local folder or made on the spot.

Readers of files take `data`, the folder that holds one folder a data set; without it they look at the environment
variable ``PARTWISE_DATA``. Each gives a `Dataset`, which unpacks into X_train, y_train, X_test, y_test.
"""

from partwise.datasets.columns import read_columns
from partwise.datasets.digits import digit_strings
from partwise.datasets.folder import Dataset, data_file
from partwise.datasets.images import mnist, ocr_letters, read_idx
from partwise.datasets.text import chunk_features, conll2000, pos_features
from partwise.datasets.treebank import Treebank, make_treebank

__all__ = [
    "Dataset",
    "Treebank",
    "chunk_features",
    "conll2000",
    "data_file",
    "digit_strings",
    "make_treebank",
    "mnist",
    "ocr_letters",
    "pos_features",
    "read_columns",
    "read_idx",
]
