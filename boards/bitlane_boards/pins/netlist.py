"""A netlist of LUTs, flip-flops and memories with one clock, and a builder for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cppsim.errors import SimulationError

LOW, HIGH = 0, 1
"""The signals that are constantly low and high."""

LUT = np.dtype([("inputs", np.uint32, 4), ("output", np.uint32), ("table", np.uint32)])
FLIP_FLOP = np.dtype(
    [(name, np.uint32) for name in ("d", "enable", "clear", "q", "value", "first")]
)
PORT = np.dtype(
    [
        (name, np.uint32)
        for name in (
            *("memory", "kind", "enable"),
            *("address", "address_bits", "data", "data_bits"),
        )
    ]
)
_READ, _WRITE, _WRITE_TABLE = range(3)
WIRE = np.dtype([(name, np.uint32) for name in ("signal", "place", "mask")])


@dataclass(frozen=True, slots=True)
class Netlist:
    """Tables for the evaluator; their meaning is that of the structures in ``gates.cc``.

    ``inputs`` and ``outputs``: signals of every port by name, the least significant bit first.
    """

    inputs: Mapping[str, tuple[int, ...]]
    outputs: Mapping[str, tuple[int, ...]]
    signals: int
    luts: NDArray[np.void]
    flip_flops: NDArray[np.void]
    ports: NDArray[np.void]
    wires: NDArray[np.void]
    contents: NDArray[np.uint8]
    bases: NDArray[np.uint64]

    @property
    def size(self) -> str:
        """The numbers of LUTs, flip-flops and memories, as text."""
        memories = self.bases.size
        return (
            f"{self.luts.size} LUTs, {self.flip_flops.size} flip-flops,"
            f" {memories} {'memory' if memories == 1 else 'memories'}"
        )


def needed_inputs(inputs: tuple[int, ...], table: int) -> tuple[tuple[int, ...], int]:
    """The same without inputs that are constant or make no difference.

    A LUT may be wired to its own output where it makes none: nextpnr gets its constants so.
    """
    # Constants first: behind them others may make no difference.
    for constants in (True, False):
        for place in reversed(range(len(inputs))):
            signal, rest = inputs[place], inputs[:place] + inputs[place + 1 :]
            low = [row for row in range(1 << len(inputs)) if not row >> place & 1]
            high = [row | 1 << place for row in low]
            for_low, for_high = (
                sum((table >> row & 1) << index for index, row in enumerate(rows))
                for rows in (low, high)
            )
            if constants and signal in (LOW, HIGH):
                inputs, table = rest, for_high if signal == HIGH else for_low
            elif not constants and for_low == for_high:
                inputs, table = rest, for_low
    return inputs, table


@dataclass(slots=True)
class NetlistBuilder:
    """Collects the parts of a netlist in any order; ``build`` makes a ``Netlist`` of them.

    Signals are numbers from ``signal``. Each one is driven once: by a part or as an input.
    """

    inputs: dict[str, tuple[int, ...]] = field(default_factory=dict)
    outputs: dict[str, tuple[int, ...]] = field(default_factory=dict)
    _signals: int = 2
    _luts: list[tuple[tuple[int, ...], int, int]] = field(default_factory=list)
    _flip_flops: list[tuple[int, ...]] = field(default_factory=list)
    _ports: list[tuple[int, ...]] = field(default_factory=list)
    _wires: list[tuple[int, int, int]] = field(default_factory=list)
    _contents: list[NDArray[np.uint8]] = field(default_factory=list)

    def signal(self) -> int:
        """A new signal, low until something drives it."""
        self._signals += 1
        return self._signals - 1

    def lut(self, table: int, inputs: Sequence[int], output: int | None = None) -> int:
        """A LUT of up to 4 inputs: bit i of ``table`` for inputs i, the first least significant.

        Returns its output.
        """
        if len(inputs) > 4 or not 0 <= table < 1 << (1 << len(inputs)):
            raise ValueError(f"table {table:#x} of {len(inputs)} inputs: expected up to 4")
        chosen = self.signal() if output is None else output
        self._luts.append((*needed_inputs(tuple(inputs), table), chosen))
        return chosen

    def invert(self, signal: int) -> int:
        """The opposite of ``signal``."""
        if signal in (LOW, HIGH):
            return HIGH if signal == LOW else LOW
        return self.lut(0b01, [signal])

    def both(self, first: int, second: int) -> int:
        """High while both signals are."""
        if LOW in (first, second):
            return LOW
        if first == HIGH:
            return second
        return first if second == HIGH else self.lut(0b1000, [first, second])

    def flip_flop(
        self,
        d: int,
        q: int,
        *,
        enable: int = HIGH,
        clear: int = LOW,
        value: int = 0,
        first: int = 0,
    ) -> None:
        """At an edge ``q`` becomes ``value`` if ``clear`` is high, else ``d`` if ``enable`` is.

        Before the first edge it is ``first``.
        """
        self._flip_flops.append((d, enable, clear, q, value, first))

    def memory(self, contents: NDArray[np.uint8]) -> int:
        """A memory of single bits, one in each element of ``contents``; returns its number."""
        self._contents.append(np.array(contents, np.uint8).reshape(-1))
        return len(self._contents) - 1

    def read_port(
        self,
        memory: int,
        enable: int,
        address: Sequence[tuple[int, int]],
        data: Sequence[tuple[int, int]],
    ) -> None:
        """At an edge with ``enable`` each signal of ``data`` becomes a bit, as before the edge.

        The bit's place is the one given with the signal, plus the weights of the signals of
        ``address`` that are high.
        """
        unmasked = [(signal, place, LOW) for signal, place in data]
        self._port(memory, _READ, enable, address, unmasked)

    def write_port(
        self,
        memory: int,
        enable: int,
        address: Sequence[tuple[int, int]],
        data: Sequence[tuple[int, int, int]],
    ) -> None:
        """At an edge with ``enable`` each signal of ``data`` is stored if its mask, the third of
        each item, is high; places like those of ``read_port``."""
        self._port(memory, _WRITE, enable, address, data)

    def lut_ram(
        self,
        table: int,
        inputs: Sequence[int],
        enable: int,
        address: Sequence[tuple[int, int]],
        data: int,
        output: int | None = None,
    ) -> int:
        """A LUT whose table is written: at an edge with ``enable`` its row becomes ``data``.

        The row is the sum of the weights of the signals of ``address`` that are high. Returns the
        LUT's output, which follows its inputs and its table without a clock.
        """
        chosen = self.signal() if output is None else output
        self._luts.append((tuple(inputs), table, chosen))
        self._port(len(self._luts) - 1, _WRITE_TABLE, enable, address, [(data, 0, HIGH)])
        return chosen

    def build(self) -> Netlist:
        """The netlist. Raises ``SimulationError`` for LUTs in a loop, and for two drivers."""
        self._check_drivers()
        ordered = self._in_order()
        luts = np.zeros(len(ordered), LUT)
        for row, number in zip(luts, ordered, strict=True):
            inputs, table, output = self._luts[number]
            row["inputs"][: len(inputs)] = inputs
            row["output"], row["table"] = output, table
        ports = np.array(self._ports, PORT)
        place = np.zeros(len(ordered) + 1, np.uint32)
        place[ordered] = np.arange(len(ordered))
        tables = ports["kind"] == _WRITE_TABLE
        ports["memory"][tables] = place[ports["memory"][tables]]
        sizes = [memory.size for memory in self._contents]
        return Netlist(
            inputs=dict(self.inputs),
            outputs=dict(self.outputs),
            signals=self._signals,
            luts=luts,
            flip_flops=np.array(self._flip_flops, FLIP_FLOP),
            ports=ports,
            wires=np.array(self._wires, WIRE),
            contents=np.concatenate([*self._contents, np.zeros(1, np.uint8)]),
            bases=np.cumsum([0, *sizes], dtype=np.uint64)[:-1],
        )

    def _port(
        self,
        memory: int,
        kind: int,
        enable: int,
        address: Sequence[tuple[int, int]],
        data: Sequence[tuple[int, int, int]],
    ) -> None:
        first = len(self._wires)
        self._wires += [(signal, weight, 0) for signal, weight in address]
        self._ports.append((memory, kind, enable, first, len(address), len(self._wires), len(data)))
        self._wires += data

    def _check_drivers(self) -> None:
        driven = {LOW, HIGH}
        sources = [output for _, _, output in self._luts]
        sources += [flip_flop[3] for flip_flop in self._flip_flops]
        for _, kind, _, _, _, first, count in self._ports:
            if kind == _READ:
                sources += [wire[0] for wire in self._wires[first : first + count]]
        for signals in self.inputs.values():
            sources += signals
        for signal in sources:
            if signal in driven:
                raise SimulationError(f"signal {signal} of the netlist has two drivers")
            driven.add(signal)

    def _in_order(self) -> list[int]:
        """Numbers of the LUTs, each behind those that it depends on."""
        source = {output: number for number, (_, _, output) in enumerate(self._luts)}
        users: dict[int, list[int]] = {}
        missing = []
        for number, (inputs, _, _) in enumerate(self._luts):
            before = {source[signal] for signal in inputs if signal in source}
            missing.append(len(before))
            for earlier in before:
                users.setdefault(earlier, []).append(number)
        ready = [number for number, count in enumerate(missing) if not count]
        for number in ready:
            for user in users.get(number, ()):
                missing[user] -= 1
                if not missing[user]:
                    ready.append(user)
        if len(ready) < len(self._luts):
            count = len(self._luts) - len(ready)
            raise SimulationError(f"{count} LUTs of the netlist depend on a loop of LUTs")
        return ready
