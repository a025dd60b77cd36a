"""Connecting to a cluster whose workers have devices, and checking the workers.

Each worker process has one device, and its calls run one after another. Every wait for a scheduler
or a worker has a deadline.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from distributed import Client, Worker, WorkerPlugin
from distributed.comm.addressing import parse_address
from distributed.comm.registry import get_backend

from ..api import default_device, default_url
from ..driver import expected_timeout
from ..errors import LinkError
from ..installation import how_to_install_elsewhere
from ..version import __version__

ANSWER = 10.0
"""Seconds in which a scheduler, and then the workers, must answer."""

OPENING = 600.0
"""Seconds in which workers must open their devices: a simulator may have to be compiled."""


class DevicePlugin(WorkerPlugin):
    """Opens a worker's device when it starts: what its BITLANE_DEVICE names, else ``sim``.

    The worker must have this very version of bitlane.
    """

    name = "bitlane-device"

    def __init__(self) -> None:
        self._version = __version__

    async def setup(self, worker: Worker) -> None:
        """Raises ``LinkError`` for another version, or a device that cannot be opened."""
        _expect_version(worker.address, __version__, self._version)
        try:
            # A simulator may have to be compiled: the worker goes on answering meanwhile.
            await asyncio.to_thread(default_device)
        except LinkError as error:
            raise LinkError(f"worker {worker.address}: {default_url()}: {error}") from error


def connect(address: str, *, timeout: float = ANSWER, devices: bool = True) -> Client:
    """A client of the scheduler at ``address``, like ``tcp://host:8786``, with workers `equip`-ped.

    ``timeout``: seconds that the scheduler has to answer, and then the workers. Without ``devices``
    only their version is checked. Raises ``LinkError``, or ``SettingError`` for no such
    seconds.
    """
    timeout = expected_timeout(timeout)
    try:
        # Before there is a client: one that cannot be made stays Dask's default for all that.
        get_backend(parse_address(address)[0])
        client = Client(address, timeout=timeout)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split()) or "no answer"
        raise LinkError(f"cluster {address!r}: no scheduler there: {reason}") from error
    try:
        if devices:
            equip(client, timeout=timeout)
        else:
            _expect_versions(client, timeout)
    except BaseException:
        client.close()
        raise
    return client


def equip(client: Client, *, timeout: float = ANSWER) -> None:
    """Have the workers of a cluster open their devices, and those that come later.

    ``timeout``: seconds that the workers have to answer; to open their devices they have ten
    minutes. Raises ``LinkError`` if one does not answer, or has no bitlane, or another version of
    it, or no device; ``SettingError`` for no such seconds.
    """
    _expect_versions(client, expected_timeout(timeout))
    _in_time(client, OPENING, client.register_plugin, DevicePlugin())


def _expect_versions(client: Client, timeout: float) -> None:
    versions: Any = _in_time(client, timeout, client.run, _asks_version())
    for worker, version in versions.items():
        _expect_version(worker, version, __version__)


def _in_time(
    client: Client, timeout: float, call: Callable[[Any], Any], argument: object
) -> object:
    """Return the result of ``call`` of ``client``, which all its workers must answer."""
    try:
        return client.sync(call, argument, callback_timeout=timeout)
    except TimeoutError as error:
        raise LinkError(
            f"cluster: a worker has not answered within {timeout:g} s; see which of them are alive"
        ) from error


def _expect_version(worker: str, has: str | None, wanted: str) -> None:
    if has != wanted:
        what = "no bitlane" if has is None else f"bitlane {has}"
        raise LinkError(
            f"worker {worker}: has {what}; expected {wanted}, which is here; there,"
            f" {how_to_install_elsewhere('dask')} brings it; then start the worker anew"
        )


def _asks_version() -> Callable[[], str | None]:
    # A function within another one travels as its code: it needs no bitlane where it runs.
    def version() -> str | None:
        try:
            from bitlane.version import __version__ as found
        except ModuleNotFoundError:
            return None
        return found

    return version
