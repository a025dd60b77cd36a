"""`Batch`: many instances of an Amaranth design, with arrays for its ports and memories."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from ..errors import BatchError
from ..model.program import Program
from .circuit import batch_circuit
from .folder import write_folder
from .naming import PortChoice
from .record import Recording, Testbench, record_testbench
from .runner import Backend, Runner
from .source import write_batch

__all__ = ["Batch"]


class Batch(Runner):
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
        super().__init__(self.written, instances, backend, threads)

    def record(self, testbench: Testbench, *, limit: int = 1 << 20) -> Recording:
        """What ``testbench`` does on one instance, at power-on, as a program for all.

        It runs once, in ``cppsim.Simulator``. What it sets, gets and waits for is taken down:
        ``tick()`` of a domain that the batch clocks, with ``repeat``, ``sample`` and ``until`` of a
        port, which may take ``limit`` cycles here and in each instance. Python is not: a loop that
        looks, ``while not ctx.get(x): await ctx.tick()``, becomes as many steps as it took; write
        ``await ctx.tick().until(x)``. ``program.replaced`` gives inputs other values.

        Raises ``BatchError`` for what a program cannot say, and what the testbench raises.
        """
        return record_testbench(self._choice, testbench, self.description, limit)

    def export(self, folder: Path | str, program: Program) -> None:
        """Write a folder that runs ``program`` where only NumPy and CuPy are, from power-on.

        ``python -m cppsim.batch .`` in that folder leaves ``results.npz``. What has been put into
        memories before anything ran goes with it; raises ``BatchError`` if something ran.
        """
        if not self.fresh:
            raise BatchError("a folder begins at power-on: export before anything runs")
        rows = self.all_rows()
        write_folder(Path(folder), self.written, self.instances, rows, program)
