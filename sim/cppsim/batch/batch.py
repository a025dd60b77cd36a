"""`Batch`: many instances of an Amaranth design, with arrays for its ports and memories."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import BatchError
from ..model.program import Program
from .circuit import batch_circuit
from .folder import write_folder
from .naming import PortChoice
from .record import Recording, Testbench, record_testbench
from .runner import Backend, Runner
from .source import write_batch

__all__ = ["Batch"]


class Batch:
    """``instances`` of ``dut``, from power-on, each as `cppsim.Simulator` would run it alone.

    Parameters
    ----------
    dut : Elaboratable
        Any design. Of a component the ports are looked at, else all signals of the top level.
    instances : int
    backend : str
        ``"threads"``, ``"cuda"``, or ``"auto"``: the GPU where CuPy finds one.
    clocks : sequence of str, optional
        The clock domains that a cycle raises together, then lowers; by default all that the design
        does not make itself. The clocks of others are inputs.
    watch : collection of str
        More signals, with the names of submodules before them: ``"core.queue.level"``.
    threads : int, optional
        By default one a core.

    Raises ``BatchError``, a ``SimulationError``, for a design that cannot be compiled, for more
    instances than memory holds, and where there is no such backend.
    """

    def __init__(
        self,
        dut: Any,
        instances: int,
        backend: Backend | str = "auto",
        *,
        clocks: Sequence[str] | None = None,
        watch: Collection[str] = (),
        threads: int | None = None,
    ) -> None:
        self._choice = PortChoice(dut, clocks, watch)
        self.written = write_batch(batch_circuit(dut, clocks, watch))
        self.runner = Runner(self.written, instances, backend, threads)

    @property
    def backend(self) -> str:
        """What runs it."""
        return self.runner.backend.name

    @property
    def ports(self) -> dict[str, int]:
        """Bits of every port, by name."""
        return {name: x.width for name, x in self.runner.description.ports.items()}

    def set(self, port: str, values: ArrayLike) -> None:
        """Set an input: one number for all, or integers of shape (instances,).

        Ports of more than 64 bits take (instances, words), as `get` gives them, too. Raises
        ``BatchError`` for a port that does not exist or is no input, and for arrays of another
        shape, type or range.
        """
        self.run(Program().set(port, values))

    def get(self, port: str) -> NDArray[Any]:
        """What a port shows, as (instances,); of more than 64 bits as (instances, words).

        Words are ``uint64``, the least significant first; of a signed port those of the value in
        two's complement, with the sign in all bits above.
        """
        return self.run(Program().get(port))[port]

    def step(self, cycles: int = 1) -> None:
        """Let ``cycles`` pass."""
        self.run(Program().step(cycles))

    def until(self, port: str, limit: int) -> NDArray[np.bool_]:
        """Let cycles pass up to the first edge before which ``port`` is not 0; ``limit`` at most.

        Returns who got there; `cycles` says when.
        """
        return np.asarray(self.run(Program().until(port, limit))[port] != 0)

    def run(self, program: Program) -> dict[str, NDArray[Any]]:
        """Run ``program``; its results by name, with instances as the first axis."""
        return self.runner.run(program)

    def record(self, testbench: Testbench, *, limit: int = 1 << 20) -> Recording:
        """What ``testbench`` does on one instance, at power-on, as a program for all.

        It runs once, in ``cppsim.Simulator``. What it sets, gets and waits for is taken down:
        ``tick()`` of a domain that the batch clocks, with ``repeat``, ``sample`` and ``until`` of a
        port, which may take ``limit`` cycles here and in each instance. Python is not: a loop that
        looks, ``while not ctx.get(x): await ctx.tick()``, becomes as many steps as it took; write
        ``await ctx.tick().until(x)``. ``program.replaced`` gives inputs other values.

        Raises ``BatchError`` for what a program cannot say, and what the testbench raises.
        """
        description = self.runner.description
        return record_testbench(self._choice, testbench, description, limit)

    @property
    def cycles(self) -> NDArray[Any]:
        """Cycles that each instance has passed; in programs the port ``$cycles``."""
        return self.get("$cycles")

    def memory(self, name: str) -> NDArray[np.uint64]:
        """Rows of a memory, as (instances, rows); of more than 64 bits (instances, rows, words)."""
        return self.runner.memory(name)

    def set_memory(self, name: str, values: ArrayLike) -> None:
        """Replace the rows of a memory, by an array as `memory` gives, or one for all."""
        self.runner.set_memory(name, values)

    def failures(self) -> dict[int, tuple[str, int]]:
        """The instances in which a check failed: what the first one says, and its cycle."""
        results = self.run(Program().get("$failed").get("$failed_at"))
        checks = self.runner.description.checks
        pairs = zip(results["$failed"], results["$failed_at"], strict=True)
        return {
            instance: (checks[int(number)], int(cycle))
            for instance, (number, cycle) in enumerate(pairs)
            if number
        }

    def export(self, folder: Path | str, program: Program) -> None:
        """Write a folder that runs ``program`` where only NumPy and CuPy are, from power-on.

        ``python -m cppsim.batch .`` in that folder leaves ``results.npz``. What has been put into
        memories before anything ran goes with it; raises ``BatchError`` if something ran.
        """
        if not self.runner.fresh:
            raise BatchError("a folder begins at power-on: export before anything runs")
        rows = self.runner.all_rows()
        write_folder(Path(folder), self.written, self.runner.instances, rows, program)
