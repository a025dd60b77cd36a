"""Run a command and write the processor seconds of all its processes to a file.

``python processor.py FILE LIMIT COMMAND …`` exits as the command does. Processes that outlive the
command are waited for and counted, such as compilers in the background. All are killed after LIMIT
seconds, and when the caller ends; FILE is not written then.
"""

import ctypes
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

_PR_SET_PDEATHSIG = 1
"""From Linux' ``prctl.h``: this process gets a signal when its parent ends."""
_PR_SET_CHILD_SUBREAPER = 36
"""Orphans become children of this process."""


def main() -> int:
    file, limit, *command = sys.argv[1:]
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for end in (signal.SIGALRM, signal.SIGINT, signal.SIGTERM):
        signal.signal(end, _stop)
    process = subprocess.Popen(command, start_new_session=True)
    signal.alarm(int(limit))
    try:
        status = process.wait()
        _wait_for_orphans()
    except TimeoutError:
        os.killpg(process.pid, signal.SIGKILL)
        return 1
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    Path(file).write_text(f"{used.ru_utime + used.ru_stime}")
    return status


def _stop(*_: object) -> NoReturn:
    raise TimeoutError


def _wait_for_orphans() -> None:
    try:
        while True:
            os.wait()
    except ChildProcessError:
        pass


if __name__ == "__main__":
    sys.exit(main())
