"""Run an exported batch: ``python -m cppsim.batch FOLDER``. Needs NumPy, and CuPy for a GPU."""

import argparse
import json
import sys
from pathlib import Path
from time import perf_counter

from ..errors import SimulationError
from .folder import open_folder, save_results

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run it, and print one line of JSON with its speed. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m cppsim.batch", description=__doc__)
    parser.add_argument("folder", type=Path, help="what Batch.export has written")
    parser.add_argument("--backend", default="auto", help="auto, threads or cuda")
    parser.add_argument("--threads", type=int, help="by default one a core")
    chosen = parser.parse_args(arguments)
    try:
        start = perf_counter()
        runner, program = open_folder(chosen.folder, chosen.backend, chosen.threads)
        ready = perf_counter()
        results = runner.run_encoded(program)
        seconds = perf_counter() - ready
        cycles = runner.cycles()
        save_results(chosen.folder, results, runner)
    except SimulationError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
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
    sys.exit(main())
