"""Models of a board's circuit at its pins, from its RTL, its bitstream, or its netlist.

Each model lists the effects that it does not simulate. The pins come from the board's description,
never from the file.
"""

from pathlib import Path

from amaranth.lib import wiring

from bitlane.errors import BitlaneError
from cppsim.errors import SimulationError

from ..board import Board, Family
from ..flow.platform import load_platform
from ..flow.rgmii import LINE_HZ
from ..flow.top import Top
from ..pins import CircuitModel, GateModel, PinModel, RgmiiPins, SdramModel, SplitPins
from . import ecp5, gowin
from .asc import Bitstream, BitstreamError
from .ice40 import Ice40Netlist, extract
from .json_netlist import JsonNetlist, NetlistError, convert
from .pins import BoardPin, board_pins

__all__ = [
    "bitstream_model",
    "board_circuit",
    "board_netlist",
    "model_of",
    "netlist_model",
    "rtl_model",
]


def rtl_model(board: Board) -> PinModel:
    """Return a model of the board's RTL.

    The first call for a circuit compiles it, which takes a minute. Raises ``SimulationError``.
    """
    model = CircuitModel(board_circuit(board), description=f"{board.name}: its RTL")
    clocks = f"the clock is driven directly, at {_mhz(board.clock_hz)}"
    if board.ethernet:
        clocks = f"the clocks are driven directly, that of the engine at {_mhz(board.clock_hz)}"
    model.hidden = (
        "synthesis, placement and routing",
        f"{clocks}: no PLL, and no start-up reset",
        *(("delays of the pins to the PHY",) if board.ethernet else ()),
    )
    return _with_chips(board, model)


def board_circuit(board: Board) -> wiring.Component:
    """Return the board's circuit with the pins that a simulation needs, and one clock."""
    circuit: wiring.Component = Top(board)
    if board.sdram:
        circuit = SplitPins(circuit)
    return RgmiiPins(circuit) if board.ethernet else circuit


def _with_chips(board: Board, model: PinModel) -> PinModel:
    """Return the board's model with the SDRAM chip at its pins, if it has one."""
    if board.sdram is None:
        return model
    model = SdramModel(model, board.sdram, board.clock_hz)
    model.hidden = (*model.hidden, f"delays to {board.sdram.name} and back, and its clock's")
    return model


def bitstream_model(board: Board, path: Path) -> PinModel:
    """Return a model of the gates in the bitstream ``path``.

    Raises as ``board_netlist``.
    """
    found, clock = board_netlist(board, path)
    return GateModel(
        found.netlist,
        f"{board.name}: bitstream {path}, {found.netlist.size}",
        (f"delays; the clock is {clock}", "levels of pins that the link does not use"),
    )


def board_netlist(board: Board, path: Path) -> tuple[Ice40Netlist, str]:
    """Return the netlist of the bitstream ``path``, and its clock in words.

    Raises ``BitlaneError`` for a board of another family than iCE40, a file that is not a bitstream
    of the board, and a feature that is not simulated; ``OSError``.
    """
    if board.family is not Family.ICE40:
        raise BitlaneError(
            f"--bitstream: {board.name} is an {board.family.value}, and only bitstreams of an iCE40"
            f" can be read; expected --netlist with {_EXPECTED[board.family]}"
        )
    platform = load_platform(board)
    pins = board_pins(board)
    bits = Bitstream.read(path)
    device, package = platform.device.lower(), platform.package.lower()
    if bits.device not in _DATABASES.get(device.removeprefix("ice40"), ()):
        raise BitlaneError(f"{path}: for an iCE40 {bits.device}; expected one for {board.title}")
    package_pins = {role: pin.package_pin for role, pin in pins.items()}
    inverted = frozenset(role for role, pin in pins.items() if pin.invert)
    try:
        found = extract(bits, package, package_pins, inverted)
    except BitstreamError as error:
        raise BitlaneError(f"{path}: {error}; is it one for {board.name}?") from error
    clock_hz = float(platform.default_clk_frequency)
    if found.clock == "PLL":
        clock_hz *= found.pll_ratio()
        clock = f"the PLL, set for {_mhz(clock_hz)}: its output is driven directly, locked at once"
    elif found.clock == "clk":
        clock = f"pin {pins['clk'].package_pin}, driven directly"
    else:
        raise BitlaneError(f"{path}: its clock is {found.clock}; expected a PLL or pin clk")
    if abs(clock_hz / board.clock_hz - 1) > 1e-6:
        raise BitlaneError(
            f"{path}: runs at {_mhz(clock_hz)}; expected {_mhz(board.clock_hz)} for {board.name}"
        )
    return found, clock


def netlist_model(board: Board, path: Path) -> PinModel:
    """Return a model of the netlist ``path``: nextpnr's of an ECP5, or Yosys' of a Gowin FPGA.

    Raises ``BitlaneError`` for another family, and a file that is not such a netlist; ``OSError``.
    """
    if board.family is Family.ICE40:
        raise BitlaneError(
            f"--netlist: {board.name} is an iCE40; expected --bitstream, which shows more"
        )
    pins = board_pins(board)
    netlist = JsonNetlist.read(path)
    cells, stage = _NETLISTS[board.family]
    in_hz = float(load_platform(board).default_clk_frequency)
    ratio = board.clock_hz / in_hz
    domains: dict[str, float | BoardPin] = {}
    if board.ethernet:
        domains = {"sync": ratio, "tx": LINE_HZ / in_hz, "rx": pins["rx_clk"]}
    try:
        found = convert(netlist, cells, pins, ratio, domains)
    except NetlistError as error:
        raise BitlaneError(
            f"{path}: {error}; expected {_EXPECTED[board.family]} for {board.name}"
        ) from error
    model = GateModel(
        found,
        f"{board.name}: netlist {path}, {found.size}",
        (stage, f"delays; the PLL: its output is driven directly, at {_mhz(board.clock_hz)}"),
    )
    return _with_chips(board, model)


_FILE = "the bits of the file that is loaded"
_NETLISTS = {
    Family.ECP5: (ecp5.CELLS, _FILE),
    Family.GOWIN: (gowin.CELLS, f"placement, routing, and {_FILE}"),
}
"""Readers of the netlists' cells, and the stages that a netlist does not show."""

_EXPECTED = {
    Family.ECP5: "the routed netlist that bitlane build writes, top.routed.json",
    Family.GOWIN: "the synthesised netlist that bitlane build writes, top.json",
}

_DATABASES = {"hx8k": ("8k",), "hx4k": ("8k",), "lp8k": ("8k",), "hx1k": ("1k",), "lp1k": ("1k",)}
_DATABASES |= {"up5k": ("5k",), "up3k": ("5k",)}
"""icepack's names of the devices."""


def _mhz(hz: float) -> str:
    return f"{hz / 1e6:g} MHz"


def model_of(board: Board, bitstream: Path | None, netlist: Path | None) -> PinModel:
    """Return the model that the options select. Raises ``BitlaneError`` and ``OSError``."""
    try:
        if bitstream is not None:
            return bitstream_model(board, bitstream)
        if netlist is not None:
            return netlist_model(board, netlist)
        return rtl_model(board)
    except SimulationError as error:
        raise BitlaneError(f"{board.name}: {error}") from error
