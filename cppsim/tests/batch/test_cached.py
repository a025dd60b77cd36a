"""A batch writes C++ for the backend that runs it, and a design in the cache is not written."""

from collections.abc import Callable
from inspect import unwrap
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import ClockDomain, Module, Shape, Signal, Value, signed
from amaranth.lib.data import StructLayout
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from cppsim import Batch, Program
from cppsim.batch import cached, circuit, source
from cppsim.batch.circuit import PortChoice, PreparedBatch
from cppsim.errors import BatchError
from cppsim.netlist.fingerprint import Fingerprint
from support.carriers import Part
from support.recomputed import SALT, expect_same_batch


def test_a_design_in_the_cache_is_not_lowered(
    monkeypatch: pytest.MonkeyPatch, fresh_cache: Path, backend: str
) -> None:
    def run() -> tuple[Any, ...]:
        batch = Batch(SyncFIFO(width=8, depth=4), 3, backend)
        batch.set("w_en", [0, 1, 1])
        batch.step(2)
        return batch.description, batch.get("level").tolist(), batch.memory("storage").tolist()

    cold = run()
    assert cold[1] == [0, 2, 2]

    def lower(_: Any) -> None:
        raise AssertionError("lowered")

    # Without the comparison with the design written anew.
    monkeypatch.setattr(cached.CachedBatch, "source", unwrap(cached.CachedBatch.source))
    monkeypatch.setattr(circuit, "lower", lower)
    assert run() == cold
    with monkeypatch.context() as patch:
        patch.setattr(cached, "CODE_DIGEST", "the compiler has changed")
        with pytest.raises(BatchError, match="lowered"):
            run()


def test_the_source_of_another_design_is_found_out(fresh_cache: Path) -> None:
    right, wrong = (cached.CachedBatch(PreparedBatch.of(PortChoice(part(step=x)))) for x in (1, 2))
    expect_same_batch(right, "threads", right.source("threads"))
    wrong.source("threads")
    with pytest.raises(AssertionError, match="is not that of this design"):
        expect_same_batch(wrong, "threads", right.source("threads"))


def test_batches_with_one_key_for_two_designs_are_found_out(
    monkeypatch: pytest.MonkeyPatch, fresh_cache: Path
) -> None:
    monkeypatch.setenv(SALT, "all")
    monkeypatch.setattr(circuit, "fingerprint", lambda _: Fingerprint("one for all", []))
    Batch(part(step=1), 2, "threads")
    with pytest.raises(AssertionError, match="is not that of this design"):
        Batch(part(step=2), 2, "threads")


def test_a_batch_from_the_cache_exports_the_same(fresh_cache: Path, tmp_path: Path) -> None:
    for name in ("cold", "warm"):
        batch = Batch(SyncFIFO(width=8, depth=4), 3, "threads")
        batch.export(tmp_path / name, Program().set("w_en", 1).step(3).get("level"))
    for file in ("source.h", "batch.json"):
        assert (tmp_path / "cold" / file).read_bytes() == (tmp_path / "warm" / file).read_bytes()
    # That of both backends.
    assert (tmp_path / "cold" / "source.h").read_text() == batch.written.source().text


def test_a_batch_runs_without_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        """A cache on a disk without space."""

        def cached(self, *_: Any) -> Path:
            raise OSError("no space left on device")

    monkeypatch.setattr(cached, "CACHE", Full())
    batch = Batch(SyncFIFO(width=8, depth=4), 2, "threads")
    batch.set("w_en", 1)
    batch.step(3)
    assert batch.get("level").tolist() == [3, 3]


def part(
    *,
    port: str = "data",
    shape: Any = 8,
    unread: Shape | int = 3,
    init: int = 0,
    memory: str = "rows",
    submodule: str = "inner",
    domains: tuple[str, ...] = ("sync", "other"),
    step: int = 1,
) -> Part:
    """Return a register, a memory and an input that no logic reads, with names to choose."""

    def build(m: Module, x: Any) -> None:
        m.submodules[submodule] = inner = Module()
        inner.submodules[memory] = rows = Memory(shape=8, depth=4, init=[1, 2, 3, 4])
        read = rows.read_port(domain="comb")
        for number, domain in enumerate(domains):
            m.domains += (made := ClockDomain(domain, reset_less=True))
            made.clk = Signal(name=f"clock{number}")
            count = Signal(8, name=f"count{number}")
            m.d[domain] += count.eq(count + step)
        m.d.comb += [read.addr.eq(count), Value.cast(getattr(x, port)).eq(read.data)]

    return Part({port: Out(shape), "unread": In(unread, init=init)}, build=build)


KEYS: dict[str, Callable[[], PortChoice]] = {
    "plain": lambda: PortChoice(part()),
    "a port's name": lambda: PortChoice(part(port="output")),
    "a sign": lambda: PortChoice(part(shape=signed(8))),
    "fields": lambda: PortChoice(part(shape=StructLayout({"low": 3, "high": 5}))),
    "a field's name": lambda: PortChoice(part(shape=StructLayout({"first": 3, "high": 5}))),
    "a field's position": lambda: PortChoice(part(shape=StructLayout({"low": 4, "high": 4}))),
    "a field's sign": lambda: PortChoice(part(shape=StructLayout({"low": signed(3), "high": 5}))),
    "an unread width": lambda: PortChoice(part(unread=4)),
    "an unread sign": lambda: PortChoice(part(unread=signed(3))),
    "an unread level at power-on": lambda: PortChoice(part(init=2)),
    "a memory's name": lambda: PortChoice(part(memory="lines")),
    "a submodule's name": lambda: PortChoice(part(submodule="within")),
    "a domain's name": lambda: PortChoice(part(domains=("sync", "third"))),
    "logic": lambda: PortChoice(part(step=2)),
    "one clock": lambda: PortChoice(part(), ["sync"]),
    "another clock": lambda: PortChoice(part(), ["other"]),
    "the clocks of two domains exchanged": lambda: PortChoice(
        part(domains=("other", "sync")), ["sync"]
    ),
    "an exposed signal": lambda: PortChoice(part(), None, ["count0"]),
    "another exposed signal": lambda: PortChoice(part(), None, ["count1"]),
}


def test_designs_that_differ_have_different_keys() -> None:
    keys, again = (
        {name: PreparedBatch.of(make()).key() for name, make in KEYS.items()} for _ in range(2)
    )
    assert keys == again
    same = [(x, y) for x, y in combinations(keys, 2) if keys[x] == keys[y]]
    assert not same


def test_the_order_of_clocks_is_not_in_the_key() -> None:
    orders = (["sync", "other"], ["other", "sync"])
    assert len({PreparedBatch.of(PortChoice(part(), order)).key() for order in orders}) == 1


# --- what is written ------------------------------------------------------------------------------


@pytest.mark.usefixtures("gpu", "fresh_cache")
@pytest.mark.parametrize(("backend", "unused"), [("threads", "Tables"), ("cuda", "Chunks")])
def test_a_batch_writes_only_the_backend_that_it_runs(
    backend: str, unused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*arguments: Any) -> None:
        raise AssertionError(f"{unused} are written")

    monkeypatch.setattr(source, unused, write)
    batch = Batch(SyncFIFO(width=8, depth=4), 3, backend)
    batch.set("w_en", np.array([0, 1, 1]))
    batch.step()
    assert batch.get("level").tolist() == [0, 1, 1]
    assert (batch.description.core_words > 0) == (backend == "threads")
    assert (batch.description.block_words > 0) == (backend == "cuda")


def test_the_source_of_both_has_the_lines_of_each() -> None:
    written = source.write_batch(PreparedBatch.of(PortChoice(SyncFIFO(width=8, depth=4))).lowered())
    sources = [written.source(), written.source("threads"), written.source("cuda")]
    both, cores, gpu = (set(x.text.splitlines()) for x in sources)
    core_words, block_words = sources[0].description.core_words, sources[0].description.block_words
    assert cores - both == {f"constexpr uint32_t CORE_WORDS = {core_words};"}
    assert gpu - both == {f"constexpr uint32_t BLOCK_WORDS = {block_words};"}
    sizes = f"constexpr uint32_t CORE_WORDS = {core_words}, BLOCK_WORDS = {block_words};"
    assert both - cores - gpu == {sizes, "#ifdef BLOCKS"}
    # So few words have short numbers, and a gate takes one 64-bit word.
    assert {"constexpr uint32_t NUMBER_BITS = 14;", "typedef uint16_t Number;"} <= both
