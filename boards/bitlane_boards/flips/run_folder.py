"""Run the flips of a folder: ``python run_folder.py [BACKEND]``. Needs NumPy, for a GPU CuPy.

As ``python -m cppsim.batch`` does, but it leaves no memories: of all instances they are gigabytes.
"""

import json
import sys
from pathlib import Path
from time import perf_counter

import numpy as np

from cppsim.batch.folder import open_folder
from cppsim.errors import SimulationError

__all__ = ["main"]


def main(folder: Path, backend: str = "auto") -> int:
    """Write ``results.npz``, and print a line of JSON with the speed. Returns the exit status."""
    try:
        start = perf_counter()
        runner, program = open_folder(folder, backend)
        ready = perf_counter()
        results = runner.run_encoded(program)
        seconds = perf_counter() - ready
        cycles = runner.cycles()
    except SimulationError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    np.savez_compressed(folder / "results.npz", **results)  # type: ignore[arg-type]
    line = {
        "backend": runner.backend.name,
        "instances": runner.instances,
        "instance_cycles": cycles,
        "seconds": round(seconds, 6),
        "instance_cycles_per_second": round(cycles / seconds),
        "compile_seconds": round(ready - start, 3),
    }
    print(json.dumps(line))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(), *sys.argv[1:2]))
