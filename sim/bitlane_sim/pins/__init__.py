"""Run a circuit at its pins: a compiled UART at the other end of the line, and no shortcuts."""

from .gates import GateModel
from .model import CircuitModel, PinModel
from .port import SimulatedPort
from .simulation import PinSimulation

__all__ = ["CircuitModel", "GateModel", "PinModel", "PinSimulation", "SimulatedPort"]
