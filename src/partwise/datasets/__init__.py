"""Data sets for examples, tests and benchmarks, read from a local folder or made on the spot.

Readers of files take `data`, the folder that holds one folder per data set; without it they look at the environment
variable ``PARTWISE_DATA``. Each gives a `Dataset`, which unpacks into X_train, y_train, X_test, y_test. `DATA_SETS`
lists the files of each with their digests; `fetch` downloads what has an address, `check` compares digests.
"""

from partwise.datasets.arrays import a9a, mnist, news20, ocr_letters, read_idx, snakes, w8a
from partwise.datasets.builtin import digit_strings
from partwise.datasets.corpora import (
    brown,
    chunk_features,
    conll2000,
    conll2007_spanish,
    pos_features,
    read_columns,
    treebank_sample,
    universal_dependencies,
    wnut17,
)
from partwise.datasets.files import Dataset, DigestError, check, data_file, fetch
from partwise.datasets.registry import DATA_SETS, DataFile, DataSet
from partwise.datasets.treebank import Treebank, make_treebank

__all__ = [
    "DATA_SETS",
    "DataFile",
    "DataSet",
    "Dataset",
    "DigestError",
    "Treebank",
    "a9a",
    "brown",
    "check",
    "chunk_features",
    "conll2000",
    "conll2007_spanish",
    "data_file",
    "digit_strings",
    "fetch",
    "make_treebank",
    "mnist",
    "news20",
    "ocr_letters",
    "pos_features",
    "read_columns",
    "read_idx",
    "snakes",
    "treebank_sample",
    "universal_dependencies",
    "w8a",
    "wnut17",
]
