"""Designs that differ in anything that the netlist shows have different fingerprints."""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any

import pytest
from amaranth.hdl import (
    Array,
    Assert,
    Assume,
    C,
    Cat,
    ClockDomain,
    ClockSignal,
    Cover,
    EnableInserter,
    Format,
    Fragment,
    Instance,
    Module,
    Mux,
    Print,
    Shape,
    Signal,
    signed,
    unsigned,
)
from amaranth.hdl import _ast as ast
from amaranth.lib.memory import Memory

from cppsim.errors import SimulationError
from cppsim.netlist.design import NotPlain
from cppsim.netlist.fingerprint import _FIELDS, fingerprint
from cppsim.netlist.lowering import lower
from cppsim.testing import random_circuit, random_machine, random_system
from support.processes import succeed
from support.seeds import seeds

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

EXPRESSIONS: dict[str, Callable[[Signal, Signal], Any]] = {
    "a": lambda a, b: a,
    "b": lambda a, b: b,
    "~a": lambda a, b: ~a,
    "-a": lambda a, b: -a,
    "bool": lambda a, b: a.bool(),
    "any": lambda a, b: a.any(),
    "all": lambda a, b: a.all(),
    "xor": lambda a, b: a.xor(),
    "signed": lambda a, b: a.as_signed(),
    "signed + b": lambda a, b: a.as_signed() + b,
    "a + b": lambda a, b: a + b,
    "b + a": lambda a, b: b + a,
    "a + a": lambda a, b: a + a,
    "a - b": lambda a, b: a - b,
    "a * b": lambda a, b: a * b,
    "a // b": lambda a, b: a // b,
    "a % b": lambda a, b: a % b,
    "a << b": lambda a, b: a << b,
    "a >> b": lambda a, b: a >> b,
    "a & b": lambda a, b: a & b,
    "a | b": lambda a, b: a | b,
    "a ^ b": lambda a, b: a ^ b,
    "a == b": lambda a, b: a == b,
    "a != b": lambda a, b: a != b,
    "a < b": lambda a, b: a < b,
    "a <= b": lambda a, b: a <= b,
    "a > b": lambda a, b: a > b,
    "a >= b": lambda a, b: a >= b,
    "a[1:3]": lambda a, b: a[1:3],
    "a[1:4]": lambda a, b: a[1:4],
    "a[2:4]": lambda a, b: a[2:4],
    "b[1:3]": lambda a, b: b[1:3],
    "bit_select 2": lambda a, b: a.bit_select(b, 2),
    "bit_select 3": lambda a, b: a.bit_select(b, 3),
    "word_select 2": lambda a, b: a.word_select(b, 2),
    "bit_select of b": lambda a, b: b.bit_select(a, 2),
    "Cat(a, b)": Cat,
    "Cat(b, a)": lambda a, b: Cat(b, a),
    "Cat(a, b, a)": lambda a, b: Cat(a, b, a),
    "Mux": lambda a, b: Mux(a, b, 3),
    "Mux of b": lambda a, b: Mux(b, b, 3),
    "Mux swapped": lambda a, b: Mux(a, 3, b),
    "Array": lambda a, b: Array([a, b, 3])[b],
    "Array reversed": lambda a, b: Array([3, b, a])[b],
    "choice": lambda a, b: ast.SwitchValue(a, [("1-----", b), (None, a)]),
    "choice by another pattern": lambda a, b: ast.SwitchValue(a, [("-1----", b), (None, a)]),
    "choice by two patterns": lambda a, b: ast.SwitchValue(a, [(("1-----", "0----1"), b)]),
    "1": lambda a, b: C(1, 4),
    "2": lambda a, b: C(2, 4),
    "1 of five bits": lambda a, b: C(1, 5),
    "1, signed": lambda a, b: C(1, signed(4)),
    "-1": lambda a, b: C(-1, signed(4)),
}


def test_expressions() -> None:
    def design(value: Callable[[Signal, Signal], Any]) -> Module:
        m, a, b, out = Module(), Signal(6), Signal(6, init=1), Signal(8)
        m.d.comb += out.eq(value(a, b))
        return m

    expect_different({name: partial(design, value) for name, value in EXPRESSIONS.items()})


STATEMENTS: dict[str, Callable[[Signal, Signal], Any]] = {
    "nothing": lambda a, b: [],
    "a": lambda a, b: a.eq(1),
    "b": lambda a, b: b.eq(1),
    "a by b": lambda a, b: a.eq(b),
    "a, b": lambda a, b: [a.eq(1), b.eq(1)],
    "b, a": lambda a, b: [b.eq(1), a.eq(1)],
    "a twice": lambda a, b: [a.eq(1), a.eq(2)],
    "a twice, swapped": lambda a, b: [a.eq(2), a.eq(1)],
    "slice": lambda a, b: a[1:3].eq(1),
    "another slice": lambda a, b: a[2:4].eq(1),
    "Cat": lambda a, b: Cat(a, b).eq(1),
    "part": lambda a, b: a.bit_select(b, 2).eq(1),
    "word": lambda a, b: a.word_select(b, 2).eq(1),
    "Array": lambda a, b: Array([a, b])[a].eq(1),
    "signed": lambda a, b: a.as_signed().eq(1),
    "Switch": lambda a, b: ast.Switch(b, [("1-----", a.eq(1), None)]),
    "Switch, another pattern": lambda a, b: ast.Switch(b, [("0-----", a.eq(1), None)]),
    "Switch, default": lambda a, b: ast.Switch(b, [(None, a.eq(1), None)]),
    "Switch, no pattern": lambda a, b: ast.Switch(b, [((), a.eq(1), None)]),
    "Switch on a": lambda a, b: ast.Switch(a, [("1-----", a.eq(1), None)]),
    "Switch, two cases": lambda a, b: ast.Switch(
        b, [("1-----", a.eq(1), None), ("0-----", a.eq(1), None)]
    ),
    "Switch, statement after": lambda a, b: [
        ast.Switch(b, [("1-----", [], None)]),
        a.eq(1),
    ],
    "Print": lambda a, b: Print(a),
    "Print b": lambda a, b: Print(b),
    "Print text": lambda a, b: Print("a", a),
    "Print by another description": lambda a, b: Print(Format("{:x}", a)),
    "Print, end": lambda a, b: Print(a, end=""),
    "Print twice": lambda a, b: [Print(a), Print(a)],
    "Assert": lambda a, b: Assert(a),
    "Assume": lambda a, b: Assume(a),
    "Cover": lambda a, b: Cover(a),
    "Assert b": lambda a, b: Assert(b),
    "Assert, text": lambda a, b: Assert(a, "a"),
    "Assert, value": lambda a, b: Assert(a, Format("{}", a)),
}


@pytest.mark.parametrize("domain", ["comb", "sync"])
def test_statements(domain: str) -> None:
    def design(statement: Callable[[Signal, Signal], Any]) -> Fragment:
        fragment: Any = Fragment()
        fragment.add_statements(domain, statement(Signal(6), Signal(6, init=1)))
        return fragment

    expect_different({name: partial(design, x) for name, x in STATEMENTS.items()})


def register(domain: str = "sync", *, name: str = "value", **options: Any) -> Module:
    m = Module()
    m.domains.sync = ClockDomain()
    m.domains.other = ClockDomain()
    value = Signal(**{"shape": 4, **options}, name=name)
    m.d[domain] += value.eq(value + 1)
    return m


def test_signals_and_their_domains() -> None:
    expect_different(
        {
            "register": register,
            "combinational": partial(register, "comb"),
            "width": partial(register, shape=5),
            "signed": partial(register, shape=signed(4)),
            "init": partial(register, init=3),
            "reset_less": partial(register, reset_less=True),
            "without a name": partial(register, name=""),
        }
    )


def clocked(other: str = "sync", **options: Any) -> Module:
    m, a, b = Module(), Signal(4), Signal(4)
    m.domains.sync = ClockDomain(**options)
    m.domains.other = ClockDomain()
    m.d.sync += a.eq(a + 1)
    m.d[other] += b.eq(b + 1)
    return m


def derived(*, init: int = 0) -> Module:
    m = clocked("other")
    clock = Signal(init=init)
    m.domains.made = made = ClockDomain(reset_less=True)
    made.clk = clock
    m.d.sync += clock.eq(~clock)
    m.d.made += Signal(4).eq(1)
    return m


def test_domains() -> None:
    expect_different(
        {
            "one": clocked,
            "two": partial(clocked, "other"),
            "falling": partial(clocked, clk_edge="neg"),
            "asynchronous": partial(clocked, async_reset=True),
            "without a reset": partial(clocked, reset_less=True),
            "derived": derived,
            "derived, high": partial(derived, init=1),
        }
    )


def aliased(*, first: int) -> Module:
    """Return a module whose clocks are one net, with different levels at power-on."""
    m, count = Module(), Signal(4)
    domains = [ClockDomain("high", reset_less=True), ClockDomain("low", reset_less=True)]
    domains[0].clk = Signal(name="high_clk", init=1)
    m.domains += domains if first else reversed(domains)
    m.d.comb += ClockSignal("high").eq(ClockSignal("low"))
    m.d.high += count.eq(count + 1)
    return m


def test_the_order_of_domains_gives_a_clock_its_level() -> None:
    expect_different({str(first): partial(aliased, first=first) for first in range(2)})


def hierarchy(*, halves: int = 1, inside: bool = True) -> Module:
    m, value = Module(), Signal(8)
    for half in range(2):
        m.submodules[f"half{half}"] = part = Module()
        (part if inside else m).d.sync += value[4 * half : 4 * half + 4].eq(half * halves)
    return m


def test_modules() -> None:
    expect_different(
        {
            "two": hierarchy,
            "one": partial(hierarchy, inside=False),
            "values": partial(hierarchy, halves=2),
        }
    )


def memory(
    *,
    ports: str = "wr",
    shape: Any = 8,
    depth: int = 4,
    init: Any = (1, 2),
    granularity: int | None = None,
    domain: str = "sync",
    transparent: bool = False,
    copies: int = 1,
) -> Module:
    m = Module()
    m.domains.sync = ClockDomain()
    m.domains.other = ClockDomain()
    for number in range(copies):
        m.submodules[f"memory{number}"] = made = Memory(shape=shape, depth=depth, init=init)
        written = []
        for port in ports:
            if port == "w":
                written.append(made.write_port(granularity=granularity))
            else:
                seen = written if transparent else ()
                made.read_port(domain=domain, transparent_for=seen)
    return m


def test_memories() -> None:
    expect_different(
        {
            "memory": memory,
            "only reads": partial(memory, ports="r"),
            "only writes": partial(memory, ports="w"),
            "two writes": partial(memory, ports="wwr"),
            "two reads": partial(memory, ports="wrr"),
            "shape": partial(memory, shape=16),
            "signed": partial(memory, shape=signed(8)),
            "depth": partial(memory, depth=3),
            "granularity": partial(memory, granularity=4),
            "combinational": partial(memory, domain="comb"),
            "another domain": partial(memory, domain="other"),
            "transparent": partial(memory, transparent=True),
            "copies": partial(memory, copies=2),
        }
    )


# --- any attribute of any node --------------------------------------------------------------------

_OTHERS = {"+": "-", "==": "!="}

MUTATIONS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "Const": {"_value": lambda x: x + 1, "_shape": lambda x: Shape(x.width + 1, x.signed)},
    "Signal": {
        "_width": lambda x: x + 1,
        "_signed": lambda x: not x,
        "_init": lambda x: x ^ 1,
        "_reset_less": lambda x: not x,
    },
    "Operator": {
        "_operator": lambda x: _OTHERS.get(x, "+"),
        "_operands": lambda x: (ast.Const(0, 77), *x[1:]),
    },
    "Slice": {
        "_value": lambda x: ~x,
        "_start": lambda x: x - 1,
        "_stop": lambda x: x + 1,
    },
    "Part": {
        "_value": lambda x: ~x,
        "_offset": lambda x: ~x,
        "_width": lambda x: x + 1,
        "_stride": lambda x: x + 1,
    },
    "Concat": {"_parts": lambda x: (*x, C(0, 77))},
    "SwitchValue": {
        "_test": lambda x: ~x,
        "_cases": lambda x: ((("0" * 9,), x[0][1]), *x[1:]),
    },
    "Assign": {"_lhs": lambda x: x.as_unsigned() if len(x) else ~x, "_rhs": lambda x: ~x},
    "Switch": {
        "_test": lambda x: ~x,
        "_cases": lambda x: ((("0" * 9,), *x[0][1:]), *x[1:]),
    },
    "Print": {"_message": lambda x: Format("another")},
    "Property": {
        "_kind": lambda x: next(kind for kind in type(x) if kind is not x),
        "_test": lambda x: ~x,
        "_message": lambda x: Format("another"),
    },
    "Format": {"_chunks": lambda x: (*x, "more")},
    "ClockDomain": {
        "clk": lambda x: Signal(init=1),
        "rst": lambda x: None if x is not None else Signal(),
        "clk_edge": lambda x: "neg" if x == "pos" else "pos",
        "async_reset": lambda x: not x,
    },
    "MemoryData": {
        "_shape": lambda x: unsigned(77),
        "_depth": lambda x: x + 1,
    },
    "MemoryInstance": {
        "_read_ports": lambda x: [*x, *x],
        "_write_ports": lambda x: [*x, *x],
    },
    "_ReadPort": {
        "_domain": lambda x: "comb" if x != "comb" else "sync",
        "_addr": lambda x: ~x,
        "_data": lambda x: ~x,
        "_en": lambda x: ~x,
        "_transparent_for": lambda x: (*x, 5),
    },
    "_WritePort": {
        "_domain": lambda x: "fall" if x != "fall" else "sync",
        "_addr": lambda x: ~x,
        "_data": lambda x: ~x,
        "_en": lambda x: ~x,
    },
    "Fragment": {
        "statements": lambda x: {
            "comb": [*x.get("comb", ()), ast.Assign(Signal(), 1)],
            **{name: inner for name, inner in x.items() if name != "comb"},
        },
        "subfragments": lambda x: [*x, (Fragment(), "more", None)],
    },
}
"""By type and attribute, another value than that of a node."""

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
                setattr(node, name, other(before))
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
    assert (
        len({digest_of(counter()), digest_of(counter("other")), digest_of(counter(twice=True))})
        == 1
    )


def test_the_contents_of_memories_do_not_matter() -> None:
    """A simulation copies them in."""
    contents = [(), (2, 1), (1, 2), (1, 2, 1)]
    assert len({digest_of(memory(init=rows)) for rows in contents}) == 1


def test_objects_of_equal_designs_correspond() -> None:
    designs = [random_machine(3).module for _ in range(2)]
    first, second = (fingerprint(prepared(design)).objects for design in designs)
    names = [[getattr(x, "name", "") for x in objects] for objects in (first, second)]
    assert names[0] == names[1]
    assert len(first) > 10


_IN_A_PROCESS = """
from amaranth.hdl import Fragment, Module, Signal
from cppsim.designs import written
from cppsim.netlist.fingerprint import fingerprint
from cppsim.testing import random_system

def missing():
    m = Module()
    for name in "abcdefgh":
        m.d[name] += Signal(4, name=name).eq(1)
    return m

for module in (missing(), *(random_system(seed).module for seed in range(3))):
    design = Fragment.get(module, None).prepare()
    print(fingerprint(design).digest, written(design)[1].text)
"""


@pytest.mark.slow
def test_other_processes_find_the_same() -> None:
    """Amaranth adds missing domains in the order of a set."""
    texts = {
        succeed(sys.executable, "-c", _IN_A_PROCESS, PYTHONHASHSEED=x) for x in ("1", "2", "7")
    }
    assert len(texts) == 1


@pytest.mark.parametrize("make", [random_circuit, random_machine, random_system])
def test_random_designs(make: Callable[[int], Any]) -> None:
    count = len(seeds(6, 30))
    expect_different({str(seed): lambda seed=seed: make(seed).module for seed in range(count)})


# --- what has no fingerprint ----------------------------------------------------------------------


def with_instance() -> Module:
    m = Module()
    m.submodules.cell = Instance("CELL", i_a=Signal(), o_o=Signal())
    return m


def with_initial() -> Module:
    m = Module()
    m.d.comb += Signal().eq(ast.Initial())
    return m


@pytest.mark.parametrize("make", [with_instance, with_initial])
def test_a_design_without_a_plain_form_is_refused_as_by_the_netlist(make: Make) -> None:
    texts = []
    for step in (fingerprint, lower):
        with pytest.raises(NotPlain, match=r"^(Instance|Initial) is not known here") as raised:
            step(prepared(make()))
        texts.append(str(raised.value))
    assert texts[0].partition(" at ")[0] == texts[1].partition(" at ")[0]
    assert issubclass(NotPlain, SimulationError)


def test_inserted_enables_are_part_of_it() -> None:
    def design(*, enabled: bool) -> Module:
        m = Module()
        m.submodules += EnableInserter(Signal())(counter()) if enabled else counter()
        return m

    expect_different({str(x): partial(design, enabled=x) for x in (False, True)})
