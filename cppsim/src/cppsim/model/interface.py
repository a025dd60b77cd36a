"""The interface of one circuit that is simulated with ports by name, whatever simulates it."""

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ..errors import BatchError, PortTypeError, UnknownNameError, memory_for
from ..netlist import PlainDesign
from .ports import (
    NO_FIELDS,
    ByPort,
    PortLayout,
    PortValue,
    Words,
    expect_fit,
    expect_input,
    listed,
    shown,
    whole_number,
)
from .program import Encoded, Port, Program, expect_program, port_key
from .storage import Buffers, StoragePort, check_storage

Prepared = Callable[[Sequence[int]], list[int]]
"""Runs a prepared program with new columns, and returns its results in the order of execution."""


class Elaborated(ABC):
    """The interface of a circuit to compilers. The clock is not a port: the model drives it."""

    @property
    def title(self) -> str:
        """The name of the circuit in messages."""
        return type(self).__name__

    @property
    @abstractmethod
    def input_widths(self) -> Mapping[str, int]:
        """Bits of every input, by name."""

    @property
    @abstractmethod
    def output_widths(self) -> Mapping[str, int]:
        """Bits of every output, by name."""

    @property
    def signed(self) -> Collection[str]:
        """Names of the signed inputs and outputs."""
        return ()

    @property
    def widths(self) -> dict[str, int]:
        """Bits of every input and output."""
        return {**self.input_widths, **self.output_widths}

    @property
    def signals(self) -> Mapping[str, object]:
        """The signals of ports by name, if they are at hand."""
        return {}

    @property
    def shapes(self) -> Mapping[str, object]:
        """The shapes of ports with a layout, by name, if they are at hand."""
        return {}

    @property
    @abstractmethod
    def design(self) -> PlainDesign:
        """The design, with the clock and the ports by name. The caller may change it."""

    @property
    @abstractmethod
    def digest(self) -> str:
        """A digest of the design, which may exist without the design itself.

        The contents of memories are not in it.
        """

    @property
    @abstractmethod
    def contents(self) -> Sequence[Sequence[int]]:
        """Rows at power-on of the memories of the netlist; rows left out are 0."""


class AnyModel(ABC):
    """One instance of a circuit with one clock; it serves the storage ports of the circuit.

    Ports are called by their names, or are the signals; a signal that is not a port raises
    ``PortError``. Values are integers in the range of the port's shape, as in `Batch`. A value
    that is set is seen by the next clock edge and by the next ``get``; ``get`` returns the value
    that a probe shows between two edges.
    """

    name: str
    """Which kind of model this is, in a word."""

    widths: Mapping[str, int]
    """Bits of every top-level port, by name."""

    ports: Mapping[str, PortLayout]
    """The ports as a `Program` is encoded for them."""

    slow: bool = False
    """Whether Python evaluates the circuit, some thousand clock cycles a second."""

    def __init__(
        self, circuit: Elaborated, storage: Sequence[StoragePort], buffers: Buffers | None
    ) -> None:
        self.widths, self._title = circuit.widths, circuit.title
        self.ports = _ports(circuit)
        self._names = NamedSignals(circuit.signals)
        self._shapes = circuit.shapes
        self._storage = tuple(storage)
        # Compiled code points into these arrays, so they live as long as the model.
        self._buffers = dict(buffers or {})
        check_storage(self._storage, self._buffers, self.widths, circuit.input_widths)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._title}: {len(self.widths)} ports>"

    @property
    @abstractmethod
    def cycles(self) -> int:
        """Clock edges since the beginning or the last ``reset``."""

    @abstractmethod
    def set(self, port: Port, value: PortValue) -> None:
        """Drive an input.

        A port with a layout takes a whole number, or its fields as ``ctx.set`` does: a dict, in
        which fields left out are 0, a list for an array, or a constant of the layout.

        Raises ``PortError``, a ``BatchError``, as programs do. It is also a ``KeyError`` for an
        unknown name, a ``ValueError`` for a value out of its range or a port that is not an input,
        and a ``TypeError`` for other values.
        """

    @abstractmethod
    def get(self, port: Port) -> int:
        """Return the value of a port. Raises as `set` for an unknown port."""

    @abstractmethod
    def step(self, cycles: int = 1) -> None:
        """Clock the circuit ``cycles`` times, 0 to 2**63 - 1.

        Raises ``ValueError`` for another number, and ``SimulationError``.
        """

    @abstractmethod
    def until(self, port: Port, limit: int) -> bool:
        """Clock until an edge at which ``port`` was not 0, that edge included.

        Returns whether that happened within ``limit`` edges. Raises ``SimulationError``.
        """

    def run(self, program: Program) -> dict[str, Any]:
        """Execute ``program`` and return its results by name.

        A result is an int; within repeats it is an array with an axis for each loop, and of ports
        of more than 64 bits another one for words. Arrays of values have one instance.

        Raises ``BatchError`` for a program that does not fit, and ``SimulationError``.
        """
        expect_program(program, "run")
        with memory_for("the program"):
            program = program.named(self._name_of)
            encoded = program.encoded(self.ports, 1)
            columns = self._execute(program, encoded)[:, None]
            return {result.name: result.alone(columns) for result in encoded.results}

    def prepare(self, program: Program) -> Prepared:
        """Encode ``program`` for many runs until ``close``, each with other columns.

        The columns are the values that ``program`` sets by arrays, in the order of execution, a
        word of 64 bits each; they must fit their ports, which is not checked. Results are words in
        the order of execution. Raises ``BatchError`` for another number of columns.
        """
        expect_program(program, "prepare")
        program = program.named(self._name_of)
        encoded = program.encoded(self.ports, 1)
        wanted = len(encoded.input)

        def run(columns: Sequence[int]) -> list[int]:
            if len(columns) != wanted:
                raise BatchError(f"columns: {len(columns)}; expected {wanted}, as the program sets")
            results: list[int] = self._execute(program, encoded, columns).tolist()
            return results

        return run

    def _name_of(self, port: Port) -> str:
        return self._names.name_of(port_key(port))

    @abstractmethod
    def _execute(
        self, program: Program, encoded: Encoded, columns: Sequence[int] | None = None
    ) -> Words:
        """Execute a program, with ``columns`` in place of the values that it sets by arrays.

        Returns the words of its results in the order of execution.
        """

    @abstractmethod
    def reset(self) -> None:
        """Return to the state at power-on: inputs 0, cycles 0. Storage keeps its bytes."""

    @abstractmethod
    def close(self) -> None:
        """Free the model, and finish its waveform file. May be called twice."""


def fitting_value(port: PortLayout, value: PortValue, shape: object = None) -> int:
    """Return ``value`` for an input as a whole number; ``shape`` is that of a port with a layout.

    Raises ``PortError`` for a value that does not fit, and for an output.
    """
    expect_input(port)
    number = whole_number(value)
    if number is None:
        if shape is None:
            text = f"port {port.name!r}: {value!r}; expected a whole number"
            raise PortTypeError(text)
        # A compiled model needs no Amaranth.
        from .fields import bits_of

        return bits_of(port.name, shape, value)
    expect_fit(port, number, number)
    return number


def counted_cycles(cycles: int) -> int:
    """Return ``cycles``. Raises ``ValueError`` unless it is from 0 to 2**63 - 1.

    Raises ``TypeError`` for a value that is not a whole number.
    """
    try:
        number = operator.index(cycles)
    except TypeError:
        raise TypeError(f"cycles: {cycles!r}; expected a whole number") from None
    if not 0 <= number < 1 << 63:
        raise ValueError(f"cycles: {shown(number)}; expected 0 to 2**63 - 1")
    return number


def _ports(circuit: Elaborated) -> dict[str, PortLayout]:
    """Return the ports of a model, whose words lie in the order of the circuit's widths."""
    ports, first = ByPort[PortLayout](), 0
    inputs, signed = circuit.input_widths, circuit.signed
    for name, width in circuit.widths.items():
        port = PortLayout(name, width, name in signed, first, name in inputs, name not in inputs)
        ports[name] = port
        first += port.words
    return ports


class NamedSignals:
    """The names of ports by the signals themselves, from ``signals`` by name.

    ``fields`` has by name the port that a field is a part of, its lowest bit and its shape; without
    it, fields are not ports. Errors list ``names``, by default those of all signals.
    """

    def __init__(
        self,
        signals: Mapping[str, Any],
        fields: Mapping[str, tuple[str, int, Any]] | None = None,
        names: Collection[str] | None = None,
    ) -> None:
        self._names = {id(signal): name for name, signal in signals.items()}
        self._signals = signals  # so that identities stay theirs
        self._fields: dict[tuple[str, int, int, bool], str] = {}
        for name, (port, low, shape) in (fields or {}).items():
            self._fields.setdefault((port, low, shape.width, shape.signed), name)
        self._has_fields = fields is not None
        self._listed = signals if names is None else names

    def name_of(self, port: Any) -> str:
        """Return the name of a port, which may be its name already. Raises ``PortError``."""
        if isinstance(port, str):
            return port
        found = self._names.get(id(port))
        return self._field_of(port) if found is None else found

    def _field_of(self, value: Any) -> str:
        # A compiled model needs no Amaranth.
        from ..amaranth_internals import part_of

        whole, low, width, signed = part_of(value)
        port = self._names.get(id(whole))
        if port is None:
            raise UnknownNameError(f"{value!r} is not a port; there are: {listed(self._listed)}")
        if not self._has_fields:
            raise UnknownNameError(f"{value!r} is not a port but a part of {port!r}; {NO_FIELDS}")
        found = self._fields.get((port, low, width, signed))
        if found is None:
            fields = listed(x for x in self._fields.values() if x.startswith(f"{port}."))
            raise UnknownNameError(f"{value!r} is not a field of {port!r}; there are: {fields}")
        return found
