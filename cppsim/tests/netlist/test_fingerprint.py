"""Designs that differ in anything that the netlist shows have different fingerprints."""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any

import pytest
from amaranth import hdl
from amaranth.hdl import (
    Array,
    Assert,
    Cat,
    ClockDomain,
    ClockSignal,
    Format,
    Fragment,
    Module,
    Print,
    Signal,
)
from amaranth.hdl import _ast as ast
from amaranth.lib.memory import Memory

from cppsim.errors import SimulationError
from cppsim.netlist import NotPlain
from cppsim.netlist.fingerprint import _FIELDS, fingerprint
from cppsim.netlist.lowering import lower
from cppsim.testing import random_circuit, random_machine, random_system
from support.processes import succeed
from support.seeds import seeds
from support.small import foreign

Design = Module | Fragment
Make = Callable[[], Design]


def prepared(module: Design) -> Any:
    return Fragment.get(module, None).prepare()


def digest_of(module: Design) -> str:
    return fingerprint(prepared(module)).digest


def expect_different(designs: dict[str, Make]) -> None:
    """Expect that designs have different fingerprints, each the same when it is made again."""
    found = {name: digest_of(make()) for name, make in designs.items()}
    assert found == {name: digest_of(make()) for name, make in designs.items()}
    known: dict[str, str] = {}
    for name, digest in found.items():
        assert known.setdefault(digest, name) == name


# --- each kind of node ----------------------------------------------------------------------------

EXPRESSIONS = """
a; b; ~a; -a; a.bool(); a.any(); a.all(); a.xor(); a.as_signed(); a.as_signed() + b; a + b; b + a
a + a; a - b; a * b; a // b; a % b; a << b; a >> b; a & b; a | b; a ^ b; a == b; a != b; a < b
a <= b; a > b; a >= b; a[1:3]; a[1:4]; a[2:4]; b[1:3]; a.bit_select(b, 2); a.bit_select(b, 3)
b.bit_select(a, 2); a.word_select(b, 2); Cat(a, b); Cat(b, a); Cat(a, b, a); Mux(a, b, 3)
Mux(b, b, 3); Mux(a, 3, b); Array([a, b, 3])[b]; Array([3, b, a])[b]
SwitchValue(a, [("1-----", b), (None, a)]); SwitchValue(a, [("-1----", b), (None, a)])
SwitchValue(a, [(("1-----", "0----1"), b)]); C(1, 4); C(2, 4); C(1, 5); C(1, signed(4))
C(-1, signed(4))
"""
STATEMENTS = """
[]; a.eq(1); b.eq(1); a.eq(b); [a.eq(1), b.eq(1)]; [b.eq(1), a.eq(1)]; [a.eq(1), a.eq(2)]
[a.eq(2), a.eq(1)]; a[1:3].eq(1); a[2:4].eq(1); Cat(a, b).eq(1); a.bit_select(b, 2).eq(1)
a.word_select(b, 2).eq(1); Array([a, b])[a].eq(1); a.as_signed().eq(1)
Switch(b, [("1-----", a.eq(1), None)]); Switch(b, [("0-----", a.eq(1), None)])
Switch(b, [(None, a.eq(1), None)]); Switch(b, [((), a.eq(1), None)])
Switch(a, [("1-----", a.eq(1), None)])
Switch(b, [("1-----", a.eq(1), None), ("0-----", a.eq(1), None)])
[Switch(b, [("1-----", [], None)]), a.eq(1)]; Print(a); Print(b); Print("a", a)
Print(Format("{:x}", a)); Print(a, end=""); [Print(a), Print(a)]; Assert(a); Assume(a); Cover(a)
Assert(b); Assert(a, "a"); Assert(a, Format("{}", a))
"""


def parts(texts: str) -> list[str]:
    """Return expressions that semicolons and ends of lines separate."""
    return [text.strip() for line in texts.strip().splitlines() for text in line.split(";")]


def made(texts: str, design: Callable[[Any], Design]) -> dict[str, Make]:
    """Return, by expression in ``texts``, a function that makes ``design`` of it."""

    def make(text: str) -> Design:
        signals = {"a": Signal(6), "b": Signal(6, init=1)}
        return design(eval(text, {**vars(ast), **vars(hdl), **signals}))

    return {text: partial(make, text) for text in parts(texts)}


def test_expressions() -> None:
    def design(value: Any) -> Module:
        m = Module()
        m.d.comb += Signal(8).eq(value)
        return m

    expect_different(made(EXPRESSIONS, design))


@pytest.mark.parametrize("domain", ["comb", "sync"])
def test_statements(domain: str) -> None:
    def design(statements: Any) -> Fragment:
        fragment: Any = Fragment()
        fragment.add_statements(domain, statements)
        return fragment

    expect_different(made(STATEMENTS, design))


def register(domain: str = "sync", *, name: str = "value") -> Module:
    m, value = Module(), Signal(4, name=name)
    m.domains.sync = ClockDomain()
    m.d[domain] += value.eq(value + 1)
    return m


def aliased(*, first: int) -> Module:
    """Return a module whose clocks are one net, with different levels at power-on."""
    m, count = Module(), Signal(4)
    domains = [ClockDomain("high", reset_less=True), ClockDomain("low", reset_less=True)]
    domains[0].clk = Signal(name="high_clk", init=1)
    m.domains += domains if first else reversed(domains)
    m.d.comb += ClockSignal("high").eq(ClockSignal("low"))
    m.d.high += count.eq(count + 1)
    return m


@pytest.mark.parametrize(
    "texts",
    [
        'register(); register("comb"); register(name=""); register("comb", name="")',
        "aliased(first=0); aliased(first=1)",
    ],
    ids=["a name", "an order"],
)
def test_designs(texts: str) -> None:
    expect_different({text: partial(eval, text, globals()) for text in parts(texts)})


# --- any attribute of any node --------------------------------------------------------------------

MUTATIONS: dict[str, dict[str, str]] = {}
"""By type and attribute, another value than ``x``, that of a node."""

for _line in """
Const _value: x + 1
Const _shape: Shape(x.width + 1, x.signed)
Signal _width: x + 1
Signal _signed: not x
Signal _init: x ^ 1
Signal _reset_less: not x
Operator _operator: {"+": "-", "==": "!="}.get(x, "+")
Operator _operands: (C(0, 77), *x[1:])
Slice _value: ~x
Slice _start: x - 1
Slice _stop: x + 1
Part _value: ~x
Part _offset: ~x
Part _width: x + 1
Part _stride: x + 1
Concat _parts: (*x, C(0, 77))
SwitchValue _test: ~x
SwitchValue _cases: ((("0" * 9,), x[0][1]), *x[1:])
Assign _lhs: x.as_unsigned() if len(x) else ~x
Assign _rhs: ~x
Switch _test: ~x
Switch _cases: ((("0" * 9,), *x[0][1:]), *x[1:])
Print _message: Format("another")
Property _kind: next(kind for kind in type(x) if kind is not x)
Property _test: ~x
Property _message: Format("another")
Format _chunks: (*x, "more")
ClockDomain clk: Signal(init=1)
ClockDomain rst: None if x is not None else Signal()
ClockDomain clk_edge: "neg" if x == "pos" else "pos"
ClockDomain async_reset: not x
MemoryData _shape: unsigned(77)
MemoryData _depth: x + 1
MemoryInstance _read_ports: [*x, *x]
MemoryInstance _write_ports: [*x, *x]
_ReadPort _domain: "comb" if x != "comb" else "sync"
_ReadPort _addr: ~x
_ReadPort _data: ~x
_ReadPort _en: ~x
_ReadPort _transparent_for: (*x, 5)
_WritePort _domain: "fall" if x != "fall" else "sync"
_WritePort _addr: ~x
_WritePort _data: ~x
_WritePort _en: ~x
Fragment statements: {**x, "comb": [*x.get("comb", ()), Assign(Signal(), 1)]}
Fragment subfragments: [*x, (Fragment(), "more", None)]
""".strip().splitlines():
    _place, _, _text = _line.partition(": ")
    _kind, _name = _place.split()
    MUTATIONS.setdefault(_kind, {})[_name] = _text

IGNORED = {
    "Const": {"src_loc"},
    "Signal": {"duid", "name", "src_loc", "_attrs", "_decoder", "_format"},
    "ClockDomain": {"name", "local"},
    "MemoryData": {"src_loc", "name", "_frozen", "_init"},
    "MemoryInstance": {*vars(Fragment()), "_data", "_attrs"},
    "Fragment": {
        *("domains", "attrs", "generated", "src_loc", "origins"),
        *("domains_propagated_up", "domain_renames"),
    },
}
"""Attributes that the netlist does not show, or that other nodes have."""


def nodes_of(design: Any) -> Iterator[Any]:
    """Yield all nodes of a design, once each."""
    left, seen = [design.fragment], set[int]()
    while left:
        node = left.pop()
        if isinstance(node, list | tuple):
            left += node
        elif isinstance(node, dict | MappingProxyType):
            left += node.values()
        elif type(node).__name__ in MUTATIONS and id(node) not in seen:
            seen.add(id(node))
            yield node
            left += (value for name, value in vars(node).items() if name != "_format")


def shown(seed: int) -> Module:
    """Return a random system with a node of each type."""
    m = random_system(seed).module
    value, part = Signal(9), Signal(5)
    m.d.sync += [Print(Format("{:x}", value)), Assert(value[1:5] < 7, Format("{}", part))]
    m.d.sync += value.eq(Array([value, part, 5])[part] + value.bit_select(part, 3))
    m.submodules.memory = memory = Memory(shape=9, depth=4, init=[1, 2, 3])
    write = memory.write_port()
    read = memory.read_port(transparent_for=(write,))
    m.d.comb += [
        write.data.eq(value),
        part.eq(Cat(read.data, memory.read_port(domain="comb").data)),
    ]
    return m


@pytest.mark.parametrize("seed", seeds(1, 4))
def test_any_other_attribute_of_any_node_is_another_fingerprint(seed: int) -> None:
    design = prepared(shown(seed))
    found = fingerprint(design)
    whole, objects = found.digest, found.objects
    changed = set[tuple[str, str]]()
    by_type: dict[str, list[Any]] = {}
    for node in nodes_of(design):
        # The netlist shows no domain that has neither statements nor ports of memories.
        if not isinstance(node, ClockDomain) or any(node is x for x in objects):
            by_type.setdefault(type(node).__name__, []).append(node)
    for kind, nodes in by_type.items():
        nodes = [node for node in nodes if kind != "Signal" or len(node)]
        for node in nodes[:: max(1, len(nodes) // 6)]:
            for name, other in MUTATIONS[kind].items():
                before = getattr(node, name)
                setattr(node, name, eval(other, {**vars(ast), **vars(hdl), "x": before}))
                assert fingerprint(design).digest != whole, (node, name)
                setattr(node, name, before)
                changed.add((kind, name))
    assert changed == {(kind, name) for kind, names in MUTATIONS.items() for name in names}
    assert fingerprint(design).digest == whole


def test_no_attribute_of_a_node_is_forgotten() -> None:
    """A version of Amaranth with another attribute fails here."""
    for node in nodes_of(prepared(shown(0))):
        kind = type(node).__name__
        known = MUTATIONS[kind].keys() | IGNORED.get(kind, {"src_loc"})
        assert {name for name in vars(node) if "MustUse" not in name} <= known, kind


def test_no_type_of_node_is_forgotten() -> None:
    """A version of Amaranth with another value or statement fails here."""
    kinds = set(chain(ast.Value.__subclasses__(), ast.Statement.__subclasses__()))
    left = {kind.__name__ for kind in kinds - _FIELDS.keys() if kind.__module__ == ast.__name__}
    # Preparation lowers the first two; no design has a row, and nothing has a plain form of others.
    assert left == {"ClockSignal", "ResetSignal", "AnyValue", "Initial", "_LateBoundStatement"}


# --- what does not matter -------------------------------------------------------------------------


def counter(name: str = "count", *, twice: bool = False) -> Module:
    m, count, step = Module(), Signal(8, name=name), Signal(8, name=f"{name}_step")
    total = count + step
    m.d.sync += count.eq(total + (count + step if twice else total))
    return m


def test_names_and_shared_objects_do_not_matter() -> None:
    assert len(set(map(digest_of, (counter(), counter("other"), counter(twice=True))))) == 1


def test_the_contents_of_memories_do_not_matter() -> None:
    """A simulation copies them in."""
    digests = set()
    for rows in ((), (2, 1), (1, 2), (1, 2, 1)):
        m = Module()
        m.submodules.memory = memory = Memory(shape=8, depth=4, init=rows)
        memory.read_port()
        digests.add(digest_of(m))
    assert len(digests) == 1


def test_objects_of_equal_designs_correspond() -> None:
    designs = [random_machine(3).module for _ in range(2)]
    first, second = (fingerprint(prepared(design)).objects for design in designs)
    names = [[getattr(x, "name", "") for x in objects] for objects in (first, second)]
    assert names[0] == names[1]
    assert len(first) > 10


_IN_A_PROCESS = """
import sys
from amaranth.hdl import Fragment, Module, Signal
from cppsim.designs import written
from cppsim.netlist.fingerprint import fingerprint
from cppsim.testing import random_machine, random_system

missing = Module()
for name in "abcdefgh":
    missing.d[name] += Signal(4, name=name).eq(1)
makers = [random_machine, random_system, random_system, random_machine]
for module in (missing, *(make(7).module for make in makers[: int(sys.argv[1])])):
    design = Fragment.get(module, None).prepare()
    print(fingerprint(design).digest, written(design)[1].text)
"""


def test_other_processes_find_and_write_the_same() -> None:
    """Amaranth adds missing domains in the order of a set."""
    count, environments = len(seeds(1, 4)), ("1", "77", "2")[: len(seeds(2, 3))]
    command = (sys.executable, "-c", _IN_A_PROCESS, str(count))
    (text,) = {succeed(*command, PYTHONHASHSEED=each) for each in environments}
    assert text.count("int step()") == 1 + min(count, 4)


@pytest.mark.parametrize("make", [random_circuit, random_machine, random_system])
def test_random_designs(make: Callable[[int], Any]) -> None:
    count = len(seeds(3, 30))
    expect_different({str(seed): lambda seed=seed: make(seed).module for seed in range(count)})


# --- what has no fingerprint ----------------------------------------------------------------------


def with_initial() -> Module:
    m = Module()
    m.d.comb += Signal().eq(ast.Initial())
    return m


@pytest.mark.parametrize("make", [foreign, with_initial])
def test_a_design_without_a_plain_form_is_refused_as_by_the_netlist(make: Make) -> None:
    texts = []
    for step in (fingerprint, lower):
        with pytest.raises(NotPlain, match=r"^(Instance|Initial) is not known here") as raised:
            step(prepared(make()))
        texts.append(str(raised.value))
    assert texts[0].partition(" at ")[0] == texts[1].partition(" at ")[0]
    assert issubclass(NotPlain, SimulationError)
