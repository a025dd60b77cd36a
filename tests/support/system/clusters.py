"""A Dask cluster on this computer, of processes with a simulated device each."""

from collections.abc import Iterator
from contextlib import contextmanager

from distributed import Client, LocalCluster

from support.system.devices import DEFAULT

SECONDS = 60
"""Time limit of every operation on a cluster."""


@contextmanager
def cluster_of(workers: int) -> Iterator[Client]:
    """Yield a client of a cluster of ``workers`` processes, one thread each; all end with it."""
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=":0",
            env={"BITLANE_DEVICE": DEFAULT},
        ) as cluster,
        Client(cluster, timeout=SECONDS) as client,
    ):
        yield client
