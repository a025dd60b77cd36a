"""What the simulator raises."""

__all__ = ["SimulationError"]


class SimulationError(Exception):
    """A circuit could not be built, or broke a rule while it ran. One line."""
