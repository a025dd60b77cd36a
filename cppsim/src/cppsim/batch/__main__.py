"""Run exported batches: ``python -m cppsim.batch FOLDER``. Needs NumPy, and CuPy for a GPU."""

import argparse
import json
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BatchError, SimulationError
from ..model import Encoded
from .cuda import gpu_versions
from .description import BrokenOff
from .folder import open_folder, read_expected, save_results
from .runner import Runner

_Arrays = dict[str, NDArray[Any]]


def main(arguments: list[str] | None = None) -> int:
    """Run the folders; print a line of JSON with the speed of each. Return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m cppsim.batch",
        description=__doc__,
        epilog="exit codes: 0 done, 1 something differs or broke off, 2 bad input or no backend",
    )
    parser.add_argument(
        "folders", type=Path, nargs="*", help="a folder that Batch.export has written"
    )
    parser.add_argument(
        "--backend",
        default="auto",
        help="auto, threads (one per core), threads:NUMBER or cuda",
    )
    parser.add_argument(
        "--no-memories",
        action="store_true",
        help="save the results without the memories, which are large",
    )
    parser.add_argument(
        "--compare", action="store_true", help="compare the results of threads and of the GPU"
    )
    parser.add_argument("--gpu", action="store_true", help="print the GPU and its versions")
    chosen = parser.parse_args(arguments)
    if not chosen.folders and not chosen.gpu:
        parser.error("FOLDER: name at least one")
    try:
        if chosen.gpu:
            print(json.dumps(gpu_versions()))
        for folder in chosen.folders:
            if chosen.compare:
                print(json.dumps(_compared(folder)), flush=True)
            else:
                started = perf_counter()
                runner, program = open_folder(folder, chosen.backend)
                seconds = perf_counter() - started
                line = _measured(folder, runner, program, memories=not chosen.no_memories)
                print(json.dumps(line | {"compile_seconds": round(seconds, 3)}), flush=True)
    except SimulationError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1 if isinstance(error, BrokenOff | Differs) else 2
    return 0


class Differs(BatchError):
    """The two backends differ. One line that names the first difference."""


def _measured(folder: Path, runner: Runner, program: Encoded, *, memories: bool) -> dict[str, Any]:
    """Run a folder and save its results there; return its speed."""
    ready = perf_counter()
    try:
        results = runner.run_encoded(program)
    except BrokenOff as error:
        save_results(folder, {**error.results, "$done": error.done}, {})
        raise
    seconds = perf_counter() - ready
    cycles = int(runner.cycles.sum())
    save_results(folder, results, _memories(runner) if memories else {})
    return {
        "backend": runner.backend,
        "instances": runner.instances,
        "instance_cycles": cycles,
        "seconds": round(seconds, 6),
        "instance_cycles_per_second": round(cycles / seconds),
    }


def _compared(folder: Path) -> dict[str, Any]:
    """Compare both backends on a folder. Raises ``Differs`` for the first difference."""
    found: dict[str, _Arrays] = {}
    for backend in ("threads", "cuda"):
        runner, program = open_folder(folder, backend)
        results = runner.run_encoded(program)
        found[backend] = {**results, **_memories(runner)}
    _expect_same(folder, found["cuda"], found["threads"], "threads")
    expected = read_expected(folder)
    _expect_same(folder, found["cuda"], expected, "the single simulator")
    values = sum(x.size for x in found["cuda"].values())
    alone = sum(x.size for x in expected.values())
    return {"folder": str(folder), "instances": runner.instances, "same": values, "as alone": alone}


def _memories(runner: Runner) -> _Arrays:
    return {f"memory:{name}": runner.memory(name) for name in runner.description.memories}


def _expect_same(folder: Path, found: _Arrays, expected: _Arrays, whose: str) -> None:
    for name, wanted in expected.items():
        wrong = np.argwhere(found[name][: len(wanted)] != wanted)
        if len(wrong):
            index = tuple(wrong[0].tolist())
            got = f"{found[name][index]} on the GPU, and {wanted[index]} of {whose}"
            raise Differs(f"{folder}: {name!r} differs, at {list(index)}: {got}")


if __name__ == "__main__":
    sys.exit(main())
