"""One contract of everything that runs a design: each case on each carrier. No tests here.

A new carrier is an entry of `CARRIERS`. A new rule is an entry of `CASES` or of `REFUSED`.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import count
from math import prod
from typing import Any

import numpy as np
from amaranth.hdl import Assert, Module, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from cppsim import Batch, BatchError, Model, Program, ReferenceModel
from cppsim.model import PortLayout
from cppsim.netlist import from_words

from .small import refused


class Part(wiring.Component):
    """A component with ``members`` and the assignments that ``comb`` and ``sync`` return.

    ``build`` adds further logic to the module.
    """

    def __init__(
        self,
        members: Mapping[str, Any],
        *,
        comb: Callable[[Any], Any] | None = None,
        sync: Callable[[Any], Any] | None = None,
        build: Callable[[Module, Any], object] = lambda m, part: None,
    ) -> None:
        self._logic, self._build = {"comb": comb, "sync": sync}, build
        super().__init__(dict(members))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._build(m, self)
        for domain, assignments in self._logic.items():
            if assignments:
                m.d[domain] += assignments(self)
        return m


def inverter(width: int = 3) -> Part:
    """Return an inverter, without a register."""
    return Part({"i": In(width), "o": Out(width)}, comb=lambda x: x.o.eq(~x.i))


def comparer() -> Part:
    """Return a register with an assertion that its input is not 7."""
    return Part(
        {"value": In(4), "last": Out(4)},
        sync=lambda x: [x.last.eq(x.value), Assert(x.value != 7, "seven is not allowed")],
    )


def streamed() -> Part:
    """Return a register of the sum of the fields of a stream's payload, which is a structure."""
    layout = data.StructLayout({"low": 3, "pair": data.ArrayLayout(signed(4), 2)})
    return Part(
        {"i": In(stream.Signature(layout)), "total": Out(signed(8))},
        sync=lambda x: x.total.eq(x.i.payload.low + x.i.payload.pair[0] + x.i.payload.pair[1]),
    )


CARRIERS: dict[str, Callable[[Any], Any]] = {
    "reference": ReferenceModel,
    "model": Model,
    "threads": lambda design: Batch(design, 2, "threads"),
    "cuda": lambda design: Batch(design, 2, "cuda"),
}

WIDTHS = (1, 8, 64, 100)
"""Widths of the signed inputs of `sampler`."""


def sampler() -> Part:
    """Return a component with ports of every kind.

    ``echo`` is five times ``wide``, ``aboveN`` follows ``numberN`` by an edge and is higher by 1,
    ``count`` counts edges at which ``go`` is 1, and ``rare`` is 1 in one of 32 counts.
    """
    inputs = {"go": 1, "wide": 100, "i": 64, "store": 1, "value": 8, "a": 60, "b": 60, "cycles": 8}
    outputs = {"count": 16, "rare": 1, "echo": 100, "o": 64, "kept": 8, "quotient": 60}
    members: dict[str, Any] = {name: In(width) for name, width in inputs.items()}
    members |= {name: Out(width) for name, width in outputs.items()}
    members |= {"constant": Out(40, init=0x12_3456_789A), "negated": Out(signed(130))}
    for width in WIDTHS:
        members |= {f"number{width}": In(signed(width)), f"above{width}": Out(signed(width + 1))}

    def build(m: Module, x: Any) -> None:
        m.submodules.memory = memory = Memory(shape=8, depth=4, init=[])
        write, read = memory.write_port(), memory.read_port(domain="comb")
        m.d.comb += [write.en.eq(x.store), write.data.eq(x.value), x.kept.eq(read.data)]
        m.d.comb += [x.echo.eq(x.wide * 5 + x.count), x.rare.eq((x.count[:5] == 21) & x.go)]
        m.d.comb += [x.o.eq(x.i), x.negated.eq(-x.number100), x.quotient.eq(x.a // x.b)]
        m.d.sync += x.count.eq(x.count + x.go)
        for width in WIDTHS:
            m.d.sync += getattr(x, f"above{width}").eq(getattr(x, f"number{width}") + 1)

    return Part(members, build=build)


Case = tuple[str, Mapping[str, int], int]
"""Steps, the results by name, and the cycles.

A step is a method of `Program` and its arguments; a result is called as the last word says.
"""

ONES, WIDE = (1 << 100) - 1, (1 << 99) + 12345
LEAST = -1 << 99


def _signed(width: int) -> Case:
    least, most = -(1 << width - 1), (1 << width - 1) - 1
    text = "set number{0} {1}; get number{0} held{1}; step 1; get above{0} above{1}; "
    numbers = sorted({0, most, -1, least})
    expected = {f"held{x}": x for x in numbers} | {f"above{x}": x + 1 for x in numbers}
    return "".join(text.format(width, x) for x in numbers), expected, len(numbers)


CASES: dict[str, Case] = {
    "nothing": ("", {}, 0),
    "an output follows an input without an edge": (
        (
            f"set wide 3; get echo low; set wide {ONES}; get wide; get echo; get constant; set i 7;"
            f"get o; set number100 {LEAST}; get negated"
        ),
        {"low": 15, "wide": ONES, "echo": ONES * 5 % (1 << 100), "constant": 0x12_3456_789A}
        | {"o": 7, "negated": -LEAST},
        0,
    ),
    "a get leaves no trace in a memory": (
        (
            "set store 1; set value 7; get kept before; set store 0; step 1; get kept not_stored;"
            "set store 1; get kept again; set value 9; step 1; get kept"
        ),
        {"before": 0, "not_stored": 0, "again": 0, "kept": 9},
        2,
    ),
    "a wait includes the edge at which its condition is high": (
        "set go 1; until rare 1000; get count; get rare low; until rare 31 never; until rare 1 one",
        {"rare": 22, "count": 22, "low": 0, "never": 0, "one": 1},
        54,
    ),
    "a wait in vain is 0, and what follows goes on": (
        "until rare 12; step 100; get go",
        {"rare": 0, "go": 0},
        112,
    ),
    "what is set holds until it is set again": (
        (
            f"get count first; set go 1; set wide {WIDE}; get echo; step 3;"
            "get echo later; until rare 30; set go 0; step 10; get count"
        ),
        {"first": 0, "echo": 5 * WIDE % (1 << 100), "later": (5 * WIDE + 3) % (1 << 100)}
        | {"rare": 19, "count": 22},
        32,
    ),
    "a port may be called cycles": ("set cycles 200; step 5; get cycles", {"cycles": 200}, 5),
    "a division has all bits": (
        (
            f"set a {1 << 59}; get quotient by_0; set b 1; get quotient by_1; set b {1 << 58};"
            f"get quotient few; set a {10**17}; set b 12345; get quotient many"
        ),
        {"by_0": 0, "by_1": 1 << 59, "few": 2, "many": 10**17 // 12_345},
        0,
    ),
} | {f"signed numbers of {width} bits": _signed(width) for width in WIDTHS}


REFUSED: dict[str, tuple[type[Exception], str]] = {
    "set go 2": (ValueError, "^port 'go': 2 does not fit 1 bits"),
    "set count 1": (ValueError, "^port 'count' is driven by the design; only inputs can be set$"),
    **{
        f"{step} q{number}": (KeyError, "^no port 'q'; there are: .*a, above1, ")
        for step, number in (("set", " 1"), ("get", ""), ("until", " 1"))
    },
    "get counts": (KeyError, r"^no port 'counts'; did you mean 'count'\? There are: [^?]*$"),
    **{
        f"set number{width} {number}": (ValueError, f": {number} does not fit {width} bits, signed")
        for width in WIDTHS
        for number in (-(1 << width - 1) - 1, 1 << width - 1)
    },
}
"""Steps that every carrier refuses, by a `BatchError` that is of another type, too."""

RULES = (*CASES, "a step that is refused is a line and does nothing")


@cache
def _sampler(carrier: str) -> Any:
    return CARRIERS[carrier](sampler())


def _at_power_on(carrier: str) -> Any:
    """Return the carrier's only sampler, after a reset: a case has to leave no trace."""
    made = _sampler(carrier)
    made.reset()
    return made


def expect_rule(name: str, carrier: str) -> None:
    """Expect that a carrier obeys one of `RULES`."""
    if name in CASES:
        _expect_case(name, carrier)
        return
    made = _at_power_on(carrier)
    for text, (kind, words) in REFUSED.items():
        for run, steps in (
            (_as_program, [["step", "3"], text.split()]),
            (_by_calls, [text.split()]),
        ):
            assert isinstance(refused(kind, words, run, made, steps), BatchError)
            assert not np.any(made.cycles), f"{run.__name__}: {text}"
            assert not np.any(made.get("go")), f"{run.__name__}: {text}"
    made.set("go", np.uint8(1))
    made.step()
    assert np.all(made.get("count") == 1)


def _expect_case(name: str, carrier: str) -> None:
    """Expect the results and the cycles of a case, as a program and by single calls."""
    text, expected, cycles = CASES[name]
    steps = [words.split() for words in text.split(";") if words.strip()]
    for run in (_as_program, _by_calls):
        made = _at_power_on(carrier)
        found = run(made, steps)
        assert found.keys() == expected.keys()
        wrong = {each: x for each, x in found.items() if not _all_are(x, expected[each])}
        assert not wrong, f"{run.__name__}: {wrong}; expected {expected}"
        assert set(np.ravel(made.cycles).tolist()) == {cycles}, run.__name__


def _all_are(found: Any, number: int) -> bool:
    """Return whether a result, or each of a batch's, is ``number``: whole, or as its words."""
    for each in np.asarray(found) if isinstance(found, np.ndarray) else [found]:
        words = np.ravel(each).tolist()
        wanted = number % (1 << 64 * len(words)) if len(words) > 1 else number
        if (from_words(words) if len(words) > 1 else words[0]) != wanted:
            return False
    return True


def _as_program(made: Any, steps: Sequence[Sequence[str]]) -> dict[str, Any]:
    program = Program()
    for method, *words in steps:
        getattr(program, method)(*(int(x) if x.lstrip("-").isdigit() else x for x in words))
    results: dict[str, Any] = made.run(program)
    return results


def _by_calls(made: Any, steps: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return the results of single calls: for a wait the cycles that it took, or 0 in vain."""
    found: dict[str, Any] = {}
    for method, *words in steps:
        before = made.cycles
        match method:
            case "set":
                made.set(words[0], int(words[1]))
            case "step":
                made.step(int(words[0]))
            case "get":
                found[words[-1]] = made.get(words[0])
            case _:
                port, limit, *name = words
                found[(name or [port])[0]] = made.until(port, int(limit)) * (made.cycles - before)
    return found


class RandomProgram:
    """A program drawn from a seed, with other values for each of ``count`` instances."""

    def __init__(self, ports: Sequence[PortLayout], seed: int, count: int, steps: int = 30) -> None:
        self._ports, self._seed, self._count, self._steps = ports, seed, count, steps

    def of(self, instances: slice = slice(None)) -> Program:
        """Return the program with the values of some instances."""
        self._chance, self._names, self._instances = random.Random(self._seed), count(), instances
        self._program = Program()
        self._add(self._steps, ())
        return self._program

    def _add(self, steps: int, loops: tuple[int, ...]) -> None:
        kinds = ("set", "set", "set", "step", "until", "get", "get", "repeat")
        for _ in range(steps):
            port = self._chance.choice(self._ports)
            name = f"{port.name} {next(self._names)}"
            match self._chance.choice(kinds):
                case "set" if port.input:
                    self._program.set(port.name, self._values(port, loops))
                case "step":
                    self._program.step(self._chance.choice((0, 1, 2, 5)))
                case "until":
                    self._program.until(port.name, self._chance.choice((1, 2, 7)), name)
                case "repeat" if len(loops) < 2:
                    times = self._chance.randint(1, 3)
                    with self._program.repeat(times):
                        self._add(3, (*loops, times))
                case _:
                    self._program.get(port.name, name)

    def _values(self, port: PortLayout, loops: tuple[int, ...]) -> Any:
        """Return one number for all instances, or one for each instance and turn."""
        least = -(1 << port.width >> 1) if port.signed else 0
        if (port.words > 1 and loops) or self._chance.random() < 0.2:
            return least + self._chance.getrandbits(port.width)
        shape = (self._count, *loops)
        numbers = [least + self._chance.getrandbits(port.width) for _ in range(prod(shape))]
        return np.array(numbers, object).reshape(shape)[self._instances]
