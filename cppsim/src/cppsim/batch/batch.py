"""`Batch`: many instances of an Amaranth design, with arrays for its ports and memories."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from amaranth.hdl import Value

from ..amaranth_internals import time_of
from ..designs import uncollected
from ..errors import BatchError
from ..model import Item, Program, counted, expect_program
from ..model.interface import NamedSignals
from ..model.reference import Testbench, execute, value_at, words_of
from .cached import CachedBatch
from .circuit import PortChoice, PreparedBatch
from .folder import write_folder
from .record import PERIOD, AsyncTestbench, Recording, one_instance, record_testbench
from .runner import Backend, Runner


class Batch(Runner):
    """Instances of an Amaranth design, each of which behaves as in `cppsim.Simulator`.

    Parameters
    ----------
    dut : Elaboratable
        Any design. The batch's ports are those of a component, else all top-level signals.
    instances : int
    backend : str
        ``"threads"``, with a number of them as in ``"threads:4"``, else one per core; ``"cuda"``;
        or ``"auto"``: a GPU if CuPy finds one, else threads.
    clocks : sequence of str, optional
        The domains whose clocks a cycle raises together, then lowers; by default all clocks that
        the design does not drive. Other clocks are inputs.
    expose : collection of str
        More signals to show as ports, named with their submodules: ``"core.queue.level"``.

    Raises ``BatchError``, a ``SimulationError``, for a design that cannot be compiled, for more
    instances than the memory holds, and for a backend that does not exist.
    """

    def __init__(
        self,
        dut: Any,
        instances: int,
        backend: Backend | str = "auto",
        *,
        clocks: Sequence[str] | None = None,
        expose: Collection[str] = (),
    ) -> None:
        self._choice = PortChoice(dut, clocks, expose)
        with uncollected():
            design = PreparedBatch.of(self._choice)
            self.written = CachedBatch(design)
            super().__init__(self.written, instances, backend)
        names = design.names
        self._names = NamedSignals(names.signals, names.fields, self.description.ports)

    def __repr__(self) -> str:
        design = type(self._choice.dut).__name__
        return f"<{type(self).__name__} of {design}: {self.instances} instances on {self.backend}>"

    def _name_of(self, port: Any) -> str:
        return self._names.name_of(port)

    def record(self, testbench: AsyncTestbench, *, limit: int = 1 << 20) -> Recording:
        """Run ``testbench`` on one instance from power-on; return its actions as a program for all.

        The testbench runs once, in ``cppsim.Simulator``. The program has its sets, gets and waits:
        ``tick()`` of a domain that the batch clocks, with ``repeat``, ``sample``, and ``until`` of
        a port, which may take ``limit`` cycles here and in each instance. The program has no Python
        control flow: ``while not ctx.get(x): await ctx.tick()`` becomes as many steps as it took;
        write ``await ctx.tick().until(x)``. ``program.replaced`` gives inputs other values.

        Raises ``BatchError`` for an action that programs do not have, and any error of the
        testbench.
        """
        return record_testbench(self._choice, testbench, self.description, limit)

    def alone(
        self, instance: int, program: Program, *, vcd: Path | str | None = None
    ) -> dict[str, Any]:
        """Run ``program`` on one instance in ``cppsim.Simulator``, from power-on.

        It prints what the instance prints, writes waveforms to the file ``vcd``, and raises the
        ``AssertionError`` of the first failed check; the batch is as before. Memories have the
        rows of the design. Return its results as `Model.run` does: within repeats, arrays of the
        shape that `run` returns, without the axis of instances; else whole numbers.
        """
        expect_program(program, "alone")
        named = program.named(self._name_of)
        encoded = named.encoded(self.description.ports, self.instances)
        number = counted(instance, "instance", 0, self.instances - 1)
        words = self._words_of(named, number, vcd)
        columns = np.array(words, np.uint64).reshape(encoded.columns, 1)
        return {result.name: result.alone(columns) for result in encoded.results}

    def _words_of(self, program: Program, instance: int, vcd: Path | str | None) -> list[int]:
        """Run ``program`` on one instance; return the words of its results in order."""
        simulator, ports = one_instance(self._choice, self.description)
        layouts = self.description.ports
        words: list[int] = []

        def value(item: Item, turns: tuple[int, ...]) -> int:
            return value_at(instance, layouts[item.port].words, item, turns)

        async def work(context: Any) -> None:
            bench = _CountingTestbench(context, ports.values)
            async for item, result in execute(program.items, bench, value):
                words.extend(words_of(item, result, layouts))

        simulator.add_testbench(work)
        with simulator.write_vcd(str(vcd)) if vcd is not None else nullcontext():
            simulator.run()
        return words

    def export(self, folder: Path | str, program: Program) -> None:
        """Write a folder that runs ``program`` from power-on and needs only NumPy, and CuPy.

        ``python -m cppsim.batch .`` in that folder writes ``results.npz``. The folder includes
        memory contents that `set_memory` has set. Raises ``BatchError`` if a program has run.
        """
        if not self.fresh:
            raise BatchError("a folder begins at power-on: export before anything runs")
        expect_program(program, "export")
        rows = self.all_rows()
        named = program.named(self._name_of)
        write_folder(Path(folder), self.written, self.instances, rows, named)


class _CountingTestbench(Testbench):
    """A testbench with the port ``$cycles``, whose cycles end with low clocks."""

    def __init__(self, context: Any, ports: Mapping[str, Value]) -> None:
        super().__init__(context, ports, self._pass)
        self._cycles = 0

    def get(self, port: str) -> int:
        return self._cycles if port == "$cycles" else super().get(port)

    async def _pass(self) -> None:
        await self._context.delay(time_of(PERIOD))
        self._cycles += 1
