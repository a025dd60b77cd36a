"""Run a circuit at its pins: a compiled UART at the other end of the line, and no shortcuts."""

from .cable import Cable, CableFaults
from .gates import SIGNATURES, GateModel
from .model import BUILDER, VENDOR_CELLS, CircuitModel, PinModel
from .netlist import HIGH, LOW, LUT, Netlist, NetlistBuilder
from .network import NoAnswerError, SimulatedNetwork, SimulatedSocket
from .packets import HostAddresses, content_of, framed
from .phy import CLOCK_ERROR, PhySimulation
from .pty import PtyServer
from .rgmii import RgmiiPins
from .sdram import SdramChip, SdramModel, SplitPins
from .simulation import PinSimulation, SimulatedPort
from .switch import SimulatedSwitch
from .udp import UdpServer, bound_socket, serve_all

__all__ = [
    "BUILDER",
    "CLOCK_ERROR",
    "HIGH",
    "LOW",
    "LUT",
    "SIGNATURES",
    "VENDOR_CELLS",
    "Cable",
    "CableFaults",
    "CircuitModel",
    "GateModel",
    "HostAddresses",
    "Netlist",
    "NetlistBuilder",
    "NoAnswerError",
    "PhySimulation",
    "PinModel",
    "PinSimulation",
    "PtyServer",
    "RgmiiPins",
    "SdramChip",
    "SdramModel",
    "SimulatedNetwork",
    "SimulatedPort",
    "SimulatedSocket",
    "SimulatedSwitch",
    "SplitPins",
    "UdpServer",
    "bound_socket",
    "content_of",
    "framed",
    "serve_all",
]
