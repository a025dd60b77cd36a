"""Run a command and write the processor seconds of all its processes to a file.

``python processor.py FILE LIMIT COMMAND …`` exits as the command does. Processes that outlive the
command are waited for and counted, such as compilers in the background. After LIMIT seconds all
are killed, and FILE is not written.
"""

import ctypes
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
"""From Linux' ``prctl.h``: orphans become children of this process."""


def main() -> int:
    file, limit, *command = sys.argv[1:]
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGALRM, _stop)
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


def _stop(*_: object) -> None:
    raise TimeoutError


def _wait_for_orphans() -> None:
    try:
        while True:
            os.wait()
    except ChildProcessError:
        pass


if __name__ == "__main__":
    sys.exit(main())
