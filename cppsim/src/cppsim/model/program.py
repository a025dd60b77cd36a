"""A program: set, step, until, get and repeat, executed in one call.

`Model` executes it on one instance of a circuit, `Batch` on many, `ReferenceModel` in Amaranth's
simulator. All instances follow the same instructions, each with its own values, and each waits as
long as its own conditions take. Compiled code takes instructions, input columns and result columns.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from enum import Enum, IntEnum
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import BatchError, PortTypeError
from ..netlist import from_words, to_words
from .ports import (
    PortLayout,
    Words,
    as_array,
    counted,
    expect_fit,
    expect_input,
    extended,
    fill,
    found,
    whole_number,
)

_DEPTH = 8

_SHOWN = 12
"""Instructions that the ``repr`` of a program shows, of it and of each repeat."""

REPEATS = 1 << 32
"""Most times that an instruction is executed by the repeats around it."""


Port = Any
"""A port's name, or the signal itself, for which `Program.named` finds the name."""


class Opcode(IntEnum):
    """The instructions, as in batch.h and ported.h."""

    SET = 0
    TAKE = 1
    GET = 2
    STEP = 3
    UNTIL = 4
    REPEAT = 5
    AGAIN = 6


_ON_PORTS = (Opcode.SET, Opcode.GET, Opcode.UNTIL)


@dataclass(frozen=True, slots=True)
class Item:
    """An instruction. ``amount`` is of cycles, or of repetitions of ``body``."""

    code: Opcode
    port: Port = ""
    values: Any = None
    amount: int = 0
    body: "tuple[Item, ...]" = ()


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of an instruction in the order of execution: a base, and a stride for each loop.

    A turn has columns for ``words`` words.
    """

    base: int
    loops: tuple[int, ...]
    strides: tuple[int, ...]
    words: int

    def of(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return them of ``array`` (columns, instances), without a copy.

        The view is of shape (instances, loops..., words).
        """
        column, instance = array.strides
        strides = (instance, *(stride * column for stride in self.strides), column)
        shape = (array.shape[1], *self.loops, self.words)
        return np.lib.stride_tricks.as_strided(array[self.base :], shape, strides)


@dataclass(frozen=True, slots=True)
class Result:
    """A named result, and its columns."""

    name: str
    columns: Columns
    signed: bool
    width: int

    def taken(self, output: Words) -> NDArray[Any]:
        """Return values as (instances, loops...), or (instances, loops..., words) of wide ports.

        Words of signed values are those of two's complement: above their bits is their sign.
        """
        values = self.columns.of(output)
        if self.signed:
            values = values.copy()
            values[..., -1] = extended(values[..., -1], self.width, signed=True)
        if self.columns.words > 1:
            return values
        return values[..., 0].view(np.int64) if self.signed else values[..., 0]

    def alone(self, output: Words) -> Any:
        """Return values of the only instance: an int, or within loops `taken` without its axis."""
        values, words = self.taken(output)[0], self.columns.words
        if self.columns.loops:
            return values
        if words == 1:
            return int(values)
        number = from_words(values)
        return number - (number >> 64 * words - 1 << 64 * words if self.signed else 0)


@dataclass(frozen=True, slots=True)
class Encoded:
    """A program for a number of instances: instructions, input columns and results.

    ``instructions`` has rows as in batch.h; ``input`` is of shape (columns, instances), and of the
    narrowest type for the values of its widest port.
    """

    instructions: Words
    input: NDArray[Any]
    results: tuple[Result, ...]
    columns: int

    def about(self) -> dict[str, Any]:
        """Return all but the arrays, for JSON."""
        return {"columns": self.columns, "results": [asdict(x) for x in self.results]}

    @staticmethod
    def from_parts(about: Mapping[str, Any], instructions: Words, taken: NDArray[Any]) -> "Encoded":
        """Return the program of the result of `about` and the arrays."""
        results = []
        for result in about["results"]:
            base, loops, strides, words = result["columns"].values()
            columns = Columns(base, tuple(loops), tuple(strides), words)
            results.append(Result(**{**result, "columns": columns}))
        return Encoded(instructions, taken, tuple(results), about["columns"])


@dataclass(frozen=True, slots=True)
class _Turns:
    """The loops around an instruction, and the strides of their columns of input and of results."""

    loops: tuple[int, ...] = ()
    input: tuple[int, ...] = ()
    output: tuple[int, ...] = ()


class Encoder:
    """Encodes the items of a program for a circuit with ``ports``, and for ``instances`` of it."""

    def __init__(self, ports: Mapping[str, PortLayout], instances: int) -> None:
        self._ports = ports
        self._instances = instances
        self.rows: list[tuple[int, int, int, int]] = []
        self.results: list[Result] = []
        self._operands: list[tuple[Item, Columns]] = []

    def block(self, items: Sequence[Item], base: tuple[int, int], turns: _Turns) -> None:
        """Write ``items``, with columns of input and of results from ``base`` on."""
        if len(turns.loops) > _DEPTH:
            raise BatchError(f"more than {_DEPTH} repeats lie within one another")
        if prod(turns.loops) > REPEATS:
            raise BatchError(
                f"repeats within one another: {prod(turns.loops)} is more than {REPEATS}"
            )
        for item in items:
            match item.code:
                case Opcode.SET:
                    self._set(item, Columns(base[0], turns.loops, turns.input, self._words(item)))
                case Opcode.STEP:
                    self.rows.append((Opcode.STEP, 0, item.amount, 0))
                case Opcode.REPEAT:
                    self.rows.append((Opcode.REPEAT, 0, item.amount, 0))
                    start = len(self.rows)
                    inputs, outputs = self.size(item.body)
                    inner = _Turns(
                        (*turns.loops, item.amount),
                        (*turns.input, inputs),
                        (*turns.output, outputs),
                    )
                    self.block(item.body, base, inner)
                    self.rows.append((Opcode.AGAIN, start, 0, 0))
                case _:
                    self._look(item, Columns(base[1], turns.loops, turns.output, self._words(item)))
            inputs, outputs = self.size([item])
            base = base[0] + inputs, base[1] + outputs

    def size(self, items: Sequence[Item]) -> tuple[int, int]:
        """Return how many columns of input and of results ``items`` have."""
        inputs = outputs = 0
        for item in items:
            if item.code is Opcode.REPEAT:
                inner = self.size(item.body)
                inputs += inner[0] * item.amount
                outputs += inner[1] * item.amount
            elif item.code is Opcode.SET and not _is_number(item.values):
                inputs += self._words(item)
            elif item.code in (Opcode.GET, Opcode.UNTIL):
                outputs += self._words(item)
        return inputs, outputs

    def input(self, columns: int) -> NDArray[Any]:
        """Return all values that are set by arrays, as (columns, instances)."""
        widest = max((self._ports[item.port].width for item, _ in self._operands), default=1)
        size = next(size for size in (1, 2, 4, 8) if 8 * size >= min(widest, 64))
        values = np.empty((columns, self._instances), f"u{size}")
        for item, target in self._operands:
            shape = (self._instances, *target.loops)
            fill(self._ports[item.port], item.values, target.of(values), shape)
        return values

    def _words(self, item: Item) -> int:
        """Return the columns that an item has in a turn."""
        return 1 if item.code is Opcode.UNTIL else found(self._ports, item.port, "port").words

    def _look(self, item: Item, columns: Columns) -> None:
        port = found(self._ports, item.port, "port")
        last = port.first + port.words - 1
        if item.code is Opcode.UNTIL:
            row = (Opcode.UNTIL, port.first | last << 32, item.amount, int(port.settled))
            self.rows.append(row)
            self.results.append(Result(item.values, columns, False, 64))
            return
        for word in range(port.first, last + 1):
            self.rows.append((Opcode.GET, word, 0, int(port.settled)))
        self.results.append(Result(item.values, columns, port.signed, port.width))

    def _set(self, item: Item, columns: Columns) -> None:
        port = found(self._ports, item.port, "port")
        expect_input(port)
        numbers = range(port.first, port.first + port.words)
        looks = [int(port.active and number == numbers[-1]) for number in numbers]
        if _is_number(item.values):
            value = item.values
            expect_fit(port, value, value)
            value &= (1 << port.width) - 1
            words = to_words(value, port.words)
            for number, word, look in zip(numbers, words, looks, strict=True):
                self.rows.append((Opcode.SET, number, word, look))
            return
        self.rows += [
            (Opcode.TAKE, number, 0, look) for number, look in zip(numbers, looks, strict=True)
        ]
        self._operands.append((item, columns))


class Program:
    """Instructions in order; each method adds one.

    >>> program = Program()
    >>> program.set("w_data", [1, 2, 3]).set("w_en", 1).step()
    >>> with program.repeat(4):
    ...     program.step(10).get("level")
    """

    def __init__(self) -> None:
        self._items: list[Item] = []
        self.replacements: list[tuple[int, Port, Any]] = []
        """Replacements that wait for `named`: the number of items before them, port and values."""

    def __repr__(self) -> str:
        return f"Program({_shown(self._items)})"

    def set(self, port: Port, values: ArrayLike | Enum) -> "Program":
        """Set an input: one number for all, or an array of integers with an axis of instances.

        ``port`` is a name or a signal, here and elsewhere. Members of enums are numbers, too.
        Within ``repeat`` the array may have an axis for each loop behind it. Ports of more than 64
        bits take whole numbers, or have a last axis of words, the least significant first, in two's
        complement if they are signed. A shape that both forms have is refused.
        """
        return self._add(Item(Opcode.SET, port_key(port), _plain(values)))

    def step(self, cycles: int = 1) -> "Program":
        """Let ``cycles`` pass."""
        return self._add(Item(Opcode.STEP, amount=counted(cycles, "cycles", 0)))

    def until(self, port: Port, limit: int, name: str | None = None) -> "Program":
        """Let cycles pass up to the first edge before which ``port`` is not 0, ``limit`` at most.

        The result ``name``, by default the name of the port, is the number of cycles that passed,
        or 0 if the port was 0 at every edge.
        """
        amount = counted(limit, "limit", 1)
        return self._add(Item(Opcode.UNTIL, *_port_and_name(port, name), amount))

    def get(self, port: Port, name: str | None = None) -> "Program":
        """Read a port; the name of the result is ``name``, by default that of the port."""
        return self._add(Item(Opcode.GET, *_port_and_name(port, name)))

    @contextmanager
    def repeat(self, times: int) -> Iterator["Program"]:
        """Repeat the instructions that are added in the ``with`` block ``times`` times."""
        before, self._items = self._items, []
        try:
            yield self
        finally:
            body, self._items = tuple(self._items), before
        self._add(Item(Opcode.REPEAT, amount=counted(times, "times", 1, REPEATS), body=body))

    def replaced(self, port: Port, values: ArrayLike | Enum) -> "Program":
        """Return the program with other values wherever it sets ``port``, by name or by signal.

        If it does so once, ``values`` are as `set` takes them; else a number is for every time, and
        an array has a second axis with one value for each time, in order. Raises ``BatchError`` if
        that does not fit; where signals are ports, the run of the program raises it.
        """
        port, values, other = port_key(port), _plain(values), Program()
        ports = [port, *(x.port for x in _all(self._items) if x.code is Opcode.SET)]
        if self.replacements or not all(isinstance(x, str) for x in ports):
            other._items = list(self._items)
            other.replacements = [*self.replacements, (len(self._items), port, values)]
        else:
            other._items = _replaced(self._items, port, values)
        return other

    def named(self, name_of: Callable[[Port], str]) -> "Program":
        """Return the program with the name of each port, which ``name_of`` returns."""
        other = Program()
        other._items = _named(self._items, name_of)
        for count, port, values in self.replacements:
            other._items[:count] = _replaced(other._items[:count], name_of(port), values)
        return other

    def _add(self, item: Item) -> "Program":
        self._items.append(item)
        return self

    @property
    def items(self) -> tuple[Item, ...]:
        """The instructions, in order."""
        return tuple(self._items)

    def encoded(self, ports: Mapping[str, PortLayout], instances: int) -> Encoded:
        """Return the program for ``instances`` of a circuit with ``ports``.

        Raises ``BatchError`` for a port that does not exist and for values that do not fit it.
        """
        assert not self.replacements, "the program is encoded before it is named"
        encoder = Encoder(ports, instances)
        encoder.block(self._items, (0, 0), _Turns())
        inputs, outputs = encoder.size(self._items)
        known: set[str] = set()
        for result in encoder.results:
            if result.name in known:
                raise BatchError(f"two results are called {result.name!r}; give one of them a name")
            known.add(result.name)
        instructions = np.array(encoder.rows, dtype=np.uint64).reshape(-1, 4)
        return Encoded(instructions, encoder.input(inputs), tuple(encoder.results), outputs)


def expect_program(program: Program, caller: str) -> None:
    """Raise ``BatchError`` unless ``program`` is a `Program`."""
    if not isinstance(program, Program):
        raise BatchError(f"{caller} takes a Program, not {program!r}")


def port_key(port: Port) -> Port:
    """Return a name, or the value of a signal. Raises ``BatchError`` for other objects."""
    signal = port.as_value() if hasattr(port, "as_value") else port
    if hasattr(signal, "eq"):
        return signal
    if hasattr(port, "signature"):
        members = ", ".join(map(str, port.signature.members))
        raise PortTypeError(f"port: an interface; expected a port of it: {members}")
    if not isinstance(port, str):
        raise PortTypeError(f"port: {port!r}; expected a string")
    return port


def _plain(values: Any) -> Any:
    """Return one number for all instances as an int, and others unchanged."""
    number = whole_number(values)
    return values if number is None else number


def _is_number(values: Any) -> bool:
    """Return whether ``values``, which are `_plain`, are one number for all instances."""
    return isinstance(values, int)


def _text(name: str, what: str) -> str:
    if not isinstance(name, str):
        raise BatchError(f"{what}: {name!r}; expected a string")
    return name


def _port_and_name(port: Port, name: str | None) -> tuple[Port, str | None]:
    if name is None:
        return port_key(port), port if isinstance(port, str) else None
    return port_key(port), _text(name, "name of a result")


def _shown(items: Sequence[Item]) -> str:
    """Return the first instructions of ``items`` in words, those of repeats in parentheses."""
    words = []
    for item in items[:_SHOWN]:
        name = "" if item.code is Opcode.STEP else f" {getattr(item.port, 'name', item.port)}"
        match item.code:
            case Opcode.REPEAT:
                words.append(f"repeat {item.amount} ({_shown(item.body)})")
            case Opcode.STEP | Opcode.UNTIL:
                words.append(f"{item.code.name.lower()}{name} {item.amount}")
            case _:
                words.append(f"{item.code.name.lower()}{name}")
    more = len(items) - len(words)
    return ", ".join([*words, f"{more} more"] if more > 0 else words)


def _named(items: Sequence[Item], name_of: Callable[[Port], str]) -> list[Item]:
    """Return ``items`` with names of ports, which also name the results that have no name."""
    named = []
    for item in items:
        port = name_of(item.port) if item.code in _ON_PORTS else ""
        values = port if item.values is None and item.code is not Opcode.SET else item.values
        body = tuple(_named(item.body, name_of))
        named.append(replace(item, port=port, values=values, body=body))
    return named


def _all(items: Sequence[Item]) -> Iterator[Item]:
    for item in items:
        yield item
        yield from _all(item.body)


def _replaced(items: Sequence[Item], port: str, values: Any) -> list[Item]:
    """Return ``items`` with other values wherever they set ``port``; see `Program.replaced`."""
    sets = [x for x in _all(items) if x.code is Opcode.SET]
    times = sum(1 for x in sets if x.port == port)
    if not times:
        names = dict.fromkeys(x.port for x in sets)
        raise BatchError(f"no port {port!r} is set; set are: {', '.join(names) or 'none'}")
    each: list[Any] = [values] * times
    if times > 1 and not _is_number(values):
        array = as_array(values, f"port {port!r}")
        if array.shape[1:2] != (times,):
            shape = f"(instances, {times})"
            raise BatchError(f"port {port!r} is set {times} times: {shape}, not {array.shape}")
        each = [array[:, k] for k in range(times)]
    return _with_values(items, port, iter(each))


def _with_values(items: Sequence[Item], port: str, each: Iterator[Any]) -> list[Item]:
    found = []
    for item in items:
        if item.code is Opcode.SET and item.port == port:
            found.append(replace(item, values=next(each)))
        else:
            found.append(replace(item, body=tuple(_with_values(item.body, port, each))))
    return found
