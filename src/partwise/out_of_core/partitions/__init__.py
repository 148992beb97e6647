"""Training data in files: batches of examples, as numbers, that are opened one after another.

    partitions.write("DIR", SequenceTagger(template="chunk"), blocks)      two passes over the data
    tagger = SequenceTagger(template="chunk").fit(partitions.open("DIR", memory="500M"))

docs/partitions.md says what is held in memory. Models encode examples and rebuild their batches
(`partwise.models.partition`).
"""

from partwise.model_files.errors import PartitionError
from partwise.out_of_core.partitions.executor import PartitionExecutor, parse_size
from partwise.out_of_core.partitions.folder import FileBatch, Partitions
from partwise.out_of_core.partitions.folder import open_folder as open
from partwise.out_of_core.partitions.writer import write

__all__ = ["FileBatch", "PartitionError", "PartitionExecutor", "Partitions", "open", "parse_size", "write"]
