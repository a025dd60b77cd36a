"""The exceptions of the simulator."""


class SimulationError(Exception):
    """A circuit could not be built, or broke a rule while it ran. One line."""


class BatchError(SimulationError):
    """A batch cannot be made, or a program does not fit its circuit. One line with the cure."""
