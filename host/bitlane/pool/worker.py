"""The process of one device of a pool: opens it, and answers calls until the pool hangs up.

Runs as ``python -m bitlane.pool.worker DESCRIPTOR URL``; prints nothing. Each call is the name of
a method of ``Device``, its arguments and its keywords; each answer, also the first, which tells of
the opening, is whether it went well, and what came of it.
"""

import pickle
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from ..device import Device, open_device


def serve(line: "Connection[Any, Any]", url: str) -> None:
    """Open the device ``url``, and do what comes over ``line`` until it is closed."""
    try:
        device = open_device(url)
    except Exception as error:  # noqa: BLE001, the pool judges it
        _answer(line, False, error)
        return
    with device:
        _answer(line, True, device.description)
        while True:
            try:
                name, operands, keywords = line.recv()
            except EOFError:
                return
            _answer(line, *_done(device, name, operands, keywords))


def _done(
    device: Device, name: str, operands: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[bool, object]:
    try:
        return True, getattr(device, name)(*operands, **keywords)
    except Exception as error:  # noqa: BLE001, the caller gets it
        return False, error


def _answer(line: "Connection[Any, Any]", well: bool, what: object) -> None:
    try:
        line.send((well, what))
    except (pickle.PicklingError, TypeError, AttributeError):
        line.send((False, RuntimeError(f"{type(what).__name__}: {what}")))


def main() -> None:
    """Serve the pool that has started this process."""
    # Ctrl-C is for the pool, which hangs up.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Connection(int(sys.argv[1])) as line:
        try:
            serve(line, sys.argv[2])
        except OSError:
            # The pool is gone.
            sys.exit(1)


if __name__ == "__main__":
    main()
