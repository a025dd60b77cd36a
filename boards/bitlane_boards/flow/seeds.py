"""Build a board with many seeds: synthesise once, place in several processes, use the best.

The result depends only on the seeds, not on the number of processes or their order.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from bitlane.command_line.workers import first_done
from bitlane.errors import BitlaneError

from .. import boards
from ..board import Board
from .build import Build, BuildError, BuildReport
from .tools import DEADLINE_SECONDS, Progress, ToolError, Usage, silent

__all__ = ["Routed", "Synthesised", "best_of", "build_best", "place"]

_ALSO_SECONDS = 60.0
"""Seconds of a placement in addition to its tool's."""


@dataclass(frozen=True, slots=True)
class Synthesised:
    """A netlist to place: the board's name, the netlist's ``files``, and the tools' versions."""

    board: str
    files: Mapping[str, bytes]
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Routed:
    """The result of a seed: the clock in MHz and the ``files`` it wrote, or the failure."""

    seed: int
    mhz: float = 0.0
    failure: str = ""
    usage: Mapping[str, Usage] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def rank(self) -> tuple[float, int]:
        """A sort key: the higher clock is better, then the lower seed."""
        return self.mhz, -self.seed


def place(netlist: Synthesised, seed: int) -> Routed:
    """Place and route ``netlist``. Raises ``BitlaneError`` if the tools' versions differ."""
    with TemporaryDirectory(prefix="bitlane-seed-") as name:
        folder = Path(name)
        for file, content in netlist.files.items():
            (folder / file).write_bytes(content)
        build = Build(boards()[netlist.board], folder, silent)
        if build.versions != netlist.versions:
            raise BitlaneError(
                f"seed {seed}: placed with {dict(build.versions)}; expected"
                f" {dict(netlist.versions)}, as the others"
            )
        try:
            mhz = build.route(seed)
        except BuildError as error:
            return Routed(seed, failure=str(error))
        except ToolError as error:
            return Routed(seed, failure=error.reason)
        left = {file.name: file for file in folder.iterdir() if file.name not in netlist.files}
        files = {file: path.read_bytes() for file, path in left.items()}
        return Routed(seed, mhz, usage=build.steps, files=files)


def build_best(
    board: Board,
    folder: Path,
    seeds: Sequence[int],
    shared: tuple[Executor, int],
    progress: Progress,
) -> tuple[BuildReport | None, list[Routed]]:
    """Build ``board`` in ``folder`` with the best of ``seeds``; return its report and all results.

    The report is None if no seed meets the clock. ``shared`` is the executor that places, and the
    number of its workers. Raises as `Build` does; `BuildError` if no seed can be placed.
    """
    build = Build(board, folder, progress)
    files = build.synthesise()
    contents = {file: (folder / file).read_bytes() for file in files}
    netlist = Synthesised(board.name, contents, build.versions)
    best: Routed | None = None
    placements = []
    for placed in _placed(netlist, seeds, shared):
        progress(f"seed {placed.seed}: {placed.failure or f'{placed.mhz:.2f} MHz'}")
        # Of the files of all seeds only those of one are held.
        if not placed.failure:
            best = best_of([placed, best] if best else [placed])
        placements.append(Routed(placed.seed, placed.mhz, placed.failure))
    placements.sort(key=lambda each: each.seed)
    if best is None:
        raise BuildError(f"{board.name}: no seed can be placed: {placements[0].failure}")
    for file, content in best.files.items():
        (folder / file).write_bytes(content)
    if best.mhz < board.clock_hz / 1e6:
        return None, placements
    build.steps |= best.usage
    return build.pack(best.seed, best.mhz), placements


def best_of(placements: Iterable[Routed]) -> Routed:
    """Return the placement of highest clock; of equal ones, that of the lowest seed."""
    return max(placements, key=lambda each: each.rank)


def _placed(
    netlist: Synthesised, seeds: Sequence[int], shared: tuple[Executor, int]
) -> Iterator[Routed]:
    """Yield the result of each seed as it completes."""
    executor, workers = shared
    waiting = list(reversed(seeds))
    running: set[Future[Routed]] = set()
    while waiting or running:
        while waiting and len(running) < workers:
            running.add(executor.submit(place, netlist, waiting.pop()))
        for done in first_done(running, DEADLINE_SECONDS + _ALSO_SECONDS):
            running.remove(done)
            try:
                yield done.result()
            except BrokenExecutor as error:
                raise BitlaneError(
                    f"{netlist.board}: a process that places seeds has ended by itself; is there"
                    " memory for all workers? (--workers N)"
                ) from error
