"""The process of one device of a pool: it opens the device and answers calls.

Runs as ``python -m bitlane.pool.worker DESCRIPTOR URL``; prints nothing. A call is the name of a
method of ``Device``, its arguments and its keywords. An answer is a pair: True and the result, or
False and the error. The first answer is for opening the device.
"""

import pickle
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from ..api import Device, open_device


def serve(line: "Connection[Any, Any]", url: str) -> None:
    """Open the device ``url``, and answer calls from ``line`` until it is closed."""
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
            _answer(line, *_call(device, name, operands, keywords))


def _call(
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
    """Serve the pool that started this process."""
    # Ctrl-C is for the pool, which closes the line.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Connection(int(sys.argv[1])) as line:
        try:
            serve(line, sys.argv[2])
        except OSError:
            # The pool has ended.
            sys.exit(1)


if __name__ == "__main__":
    main()
