"""Run a circuit at its pins: a compiled UART at the other end of the line, and no shortcuts."""

from .gates import GateModel
from .model import CircuitModel, PinModel
from .simulation import PinSimulation, SimulatedPort

__all__ = ["CircuitModel", "GateModel", "PinModel", "PinSimulation", "SimulatedPort"]
