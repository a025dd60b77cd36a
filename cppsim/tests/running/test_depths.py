"""The number of assignments before each signal of a design."""

from itertools import pairwise

from amaranth.hdl import Cat, Fragment, Module, Signal
from amaranth.lib.memory import Memory

from cppsim.running.depths import depths


def test_the_longest_path_counts() -> None:
    m, inner = Module(), Module()
    register, given, near, far, chosen, constant, chain = (
        Signal(4, name=name)
        for name in ("register", "given", "near", "far", "chosen", "constant", "chain")
    )
    m.submodules.inner = inner
    m.d.sync += register.eq(chosen)
    m.d.comb += [near.eq(register), constant.eq(3)]
    inner.d.comb += far.eq(near + given)
    with m.If(far[0]):
        m.d.comb += chosen.eq(register)
    # Bits of a signal may depend on others of it.
    m.d.comb += chain.eq(Cat(chosen[0], ~chain[:3]))
    m.submodules.memory = memory = Memory(shape=4, depth=4, init=[])
    port = memory.read_port(domain="comb")
    m.d.comb += port.addr.eq(near)
    found = depths(Fragment.get(m, None).prepare().fragment)
    signals = (near, far, chosen, constant, chain, port.addr, port.data)
    assert [found[x] for x in signals] == [1, 2, 3, 1, 4, 2, 3]
    assert register not in found
    assert given not in found


def test_long_chains_are_measured() -> None:
    m, signals = Module(), [Signal(name=f"signal{k}") for k in range(3000)]
    for before, signal in pairwise(signals):
        m.d.comb += signal.eq(before)
    found = depths(Fragment.get(m, None).prepare().fragment)
    assert [found[x] for x in signals[1:]] == list(range(1, 3000))
