"""Compiled simulations write waveforms into files of all kinds, also if they end early."""

import gzip
import os
import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from amaranth.hdl import Assert, Module, Signal
from vcd.writer import VCDPhaseError

from cppsim.errors import SimulationError
from cppsim.testing import EXECUTORS, Bench, same_on, ticks, waveforms
from support.fuzz import write_once
from support.small import body, counter, interrupts, many_registers, text_of


@pytest.fixture(autouse=True)
def _written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    write_once(monkeypatch.setattr)


@cache
def expected_text(cycles: int) -> str:
    return text_of(many_registers(cycles))


FILES: dict[str, Callable[[Path], Any]] = {
    "path": str,
    "text": lambda path: path.open("w"),
    "latin": lambda path: path.open("w", encoding="latin-1"),
    "both": lambda path: path.open("w+", encoding="utf-8"),
    "archive": partial(gzip.open, mode="wt", compresslevel=1),
}


@pytest.mark.parametrize("kind", FILES)
def test_files_of_all_kinds(kind: str, tmp_path: Path) -> None:
    path, made = tmp_path / "wave.vcd", many_registers(300)
    file = FILES[kind](path)
    with made.write_vcd(file):
        made.run()
    if kind != "path":
        file.close()
    content = path.read_bytes()
    text = (gzip.decompress(content) if kind == "archive" else content).decode()
    assert body(text) == body(expected_text(300))


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_words_in_the_encoding_of_the_file(encoding: str, tmp_path: Path) -> None:
    m, _ = counter(2, decoder="aäÄß".__getitem__)
    made, path = Bench(EXECUTORS["always"]).simulator(m, ticks(3)), tmp_path / "wave.vcd"
    with path.open("w", encoding=encoding) as file, made.write_vcd(file):
        made.run()
    waveform = waveforms(path.read_text(encoding=encoding))["bench.top.count: string 1"]
    assert [value for _, value in waveform] == ["a", "ä", "Ä", "ß"]


def test_the_file_of_a_viewer_knows_how_long_the_waveforms_are(tmp_path: Path) -> None:
    wave, save = tmp_path / "wave.vcd", tmp_path / "wave.gtkw"
    made = many_registers(20)
    with made.write_vcd(str(wave), str(save), traces=[Signal(3, name="traced")]):
        made.run()
    assert f"[dumpfile_size] {wave.stat().st_size}\n" in save.read_text()
    assert "bench.traced[2:0]\n" in save.read_text()


def test_several_files_at_once() -> None:
    made, files = many_registers(10), (StringIO(), StringIO())
    with made.write_vcd(files[0]), made.write_vcd(files[1]):
        made.run()
    assert body(files[0].getvalue()) == body(files[1].getvalue()) != ""


# --- waveforms that end early -----------------------------------------------------------------


def whole_steps(text: str, complete: str) -> int:
    """Return the number of time steps in ``text``, a prefix of ``complete`` that ends at a step."""
    assert body(complete).startswith(body(text))
    assert body(complete)[len(body(text)) :].startswith("#")
    return body(text).count("#")


@pytest.mark.parametrize("fast_forwarding", [False, True])
def test_a_full_disk(fast_forwarding: bool, tmp_path: Path) -> None:
    path, complete = tmp_path / "wave.vcd", expected_text(700)
    made = many_registers(700)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 19, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large") as failure, made.write_vcd(str(path)):
            made.run_until(700e-6) if fast_forwarding else made.run()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert failure.value.__context__ is None
    assert whole_steps(path.read_text(), complete) > 400
    assert made._engine.now < 690e9


def test_a_disk_that_is_full_from_the_beginning() -> None:
    made = many_registers(10)
    with pytest.raises(OSError, match="No space left on device") as failure:
        with made.write_vcd("/dev/full"):
            made.run()
    assert failure.value.__context__ is None


def test_a_pipe_that_nobody_reads() -> None:
    reader, writer = os.pipe()
    made = many_registers(400)
    os.close(reader)
    file = os.fdopen(writer, "w")
    with pytest.raises(BrokenPipeError) as failure, made.write_vcd(file):
        made.run()
    assert failure.value.__context__ is None
    with suppress(BrokenPipeError):
        file.close()


def test_a_file_that_is_closed_meanwhile() -> None:
    made, file = many_registers(400), StringIO()

    def run() -> None:
        with made.write_vcd(file):
            file.close()
            made.run()

    with pytest.raises(ValueError, match="I/O operation on closed file") as failure:
        run()
    assert failure.value.__context__ is None


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@same_on()
def test_a_testbench_that_ends_early(sim: Bench, error: type[BaseException]) -> None:
    m, given = Module(), Signal(8, name="given")
    m.d.sync += (count := Signal(8)).eq(count + given)

    async def work(ctx: Any) -> None:
        for step in range(9):
            ctx.set(given, step)
            await ctx.tick()
        ctx.set(given, 99)
        raise error

    with pytest.raises(error):
        sim.run(m, work, traces=())
    assert sim.seen[-1]["bench.top.given: wire 8"][-1][1] == f"{99:b}"


@same_on()
def test_what_leads_to_a_failed_check_shows(sim: Bench) -> None:
    m, count = counter()
    m.d.sync += Assert(count < 20)
    with pytest.raises(AssertionError):
        sim.run(m, sim.reads(99, count), traces=())
    shown = sim.seen.pop()["bench.top.count: wire 8"]
    assert len(shown) >= 20
    sim.seen.append(shown[:20])


def test_a_decoder_that_raises() -> None:
    def decode(value: int) -> str:
        return "x" * (100 // (5 - value))

    m, count = counter(decoder=decode)
    sim = Bench(EXECUTORS["always"])
    with pytest.raises(ZeroDivisionError) as failure:
        sim.run(m, sim.reads(99, count), traces=())
    assert failure.value.__context__ is None
    shown = sim.seen[-1]
    assert [len(x) for _, x in shown["bench.top.count: string 1"]] == [20, 25, 33, 50, 100]
    assert shown["bench.top.clk: wire 1"][-1] == (4_000_000_000, "0")


@pytest.mark.parametrize("executor", ["pysim", "engine", "always"])
def test_a_reset_while_waveforms_are_written(executor: str) -> None:
    made = many_registers(5, executor)

    def run() -> None:
        with made.write_vcd(StringIO()):
            made.run()
            made.reset()
            made.run()

    if executor == "pysim":
        refusal = pytest.raises(VCDPhaseError, match="Out of order timestamp")
    else:
        refusal = pytest.raises(SimulationError, match="its time cannot go back; close it first")
    with refusal:
        run()


DROPS = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""Python tells that it drops an interrupt which comes as the library begins to call it."""


@DROPS
def test_an_interrupt_that_python_drops_is_raised_and_loses_nothing(tmp_path: Path) -> None:
    def interrupt(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name == "_write":
            sys.setprofile(None)
            raise KeyboardInterrupt

    def written(path: Path, interrupted: bool) -> str:
        made = many_registers(20_000)
        with made.write_vcd(str(path)):
            if interrupted:
                sys.setprofile(interrupt)
                with pytest.raises(KeyboardInterrupt):
                    made.run()
            made.run()
        return body(path.read_text(encoding="utf-8"))

    whole = written(tmp_path / "whole.vcd", interrupted=False)
    assert written(tmp_path / "interrupted.vcd", interrupted=True) == whole


@DROPS
def test_an_interrupt_is_raised_while_waveforms_are_written(tmp_path: Path) -> None:
    m, count = counter(40)

    async def work(ctx: Any) -> None:
        await ctx.tick().until(count[39])

    made = Bench(EXECUTORS["always"]).simulator(m, work)
    with interrupts() as interrupt_after, made.write_vcd(str(tmp_path / "wave.vcd")):
        for _ in range(20):
            with pytest.raises(KeyboardInterrupt):  # noqa: PT012, the signal may come at once
                interrupt_after(0.01)
                made.run()
