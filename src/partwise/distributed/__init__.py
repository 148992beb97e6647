"""Training and predictions on a Dask cluster (extra ``dask``).

    from dask.distributed import Client
    from partwise import SequenceTagger, distributed

    found = distributed.open("chunks.parts", Client("scheduler:8786"))
    tagger = found.estimator(C=0.5).fit(found)

The folder is one that `partwise.partitions.write` or ``partwise partition`` wrote, in a place that all workers can
read under the same name. Workers read batches from it; weights travel to them and partial sums come back.

`predict` labels Dask bags and dataframes.
"""

from .cluster import ClusterError
from .executor import DaskExecutor
from .folder import open_folder as open
from .scoring import predict

__all__ = ["ClusterError", "DaskExecutor", "open", "predict"]
