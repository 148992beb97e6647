"""Training on a Dask cluster (extra ``dask``).

    from dask.distributed import Client
    from partwise import SequenceTagger
    from partwise.out_of_core import cluster

    found = cluster.open("chunks.parts", Client("scheduler:8786"))
    tagger = found.estimator(C=0.5).fit(found)

The folder is one that `partwise.out_of_core.partitions.write` or ``partwise partition`` wrote, in a place that all
workers can read under the same name. Workers read batches from it; weights travel to them and partial sums come back.
"""

from partwise.out_of_core.cluster.cluster import ClusterError
from partwise.out_of_core.cluster.executor import DaskExecutor
from partwise.out_of_core.cluster.folder import open_folder as open

__all__ = ["ClusterError", "DaskExecutor", "open"]
