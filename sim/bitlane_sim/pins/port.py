"""The simulated pins as a serial port: the part of pyserial's interface that the host link uses."""

from .simulation import PinSimulation


class SimulatedPort:
    """A port whose time is simulated: the clock runs only while ``read`` or ``flush`` waits.

    Parameters
    ----------
    simulation
        The circuit; closed with the port.
    clock_hz
        Cycles in a second of ``timeout``.
    timeout
        Most simulated seconds that ``read`` waits for the first byte; ``None``: a minute, because
        a wait without an end would be a hang.
    """

    def __init__(
        self, simulation: PinSimulation, clock_hz: float, timeout: float | None = None
    ) -> None:
        self.simulation = simulation
        self.clock_hz = clock_hz
        self.timeout = timeout
        self.is_open = True

    @property
    def in_waiting(self) -> int:
        """Bytes that ``read`` would give at once."""
        self._expect_open()
        return self.simulation.arrived

    @property
    def out_waiting(self) -> int:
        """Bytes written that have not gone out."""
        self._expect_open()
        return self.simulation.unsent

    @property
    def seconds(self) -> float:
        """Simulated time since power-on."""
        return self.simulation.cycle / self.clock_hz

    def read(self, size: int = 1) -> bytes:
        """Up to ``size`` bytes: what there is, at least 1 unless ``timeout`` passes first."""
        self._expect_open()
        if not self.simulation.arrived:
            timeout = 60 if self.timeout is None else self.timeout
            self.simulation.wait(1, round(timeout * self.clock_hz))
        return self.simulation.receive(size)

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Queue ``data``; returns its size."""
        self._expect_open()
        content = bytes(data)
        self.simulation.send(content)
        return len(content)

    def flush(self) -> None:
        """Run until all that was written has gone out."""
        self._expect_open()
        bits = 10 * (self.simulation.unsent + 1)
        while self.simulation.unsent:
            self.simulation.run(round(bits * self.simulation.divider))

    def reset_input_buffer(self) -> None:
        """Drop what has arrived."""
        self._expect_open()
        self.simulation.receive()

    def close(self) -> None:
        """Close the simulation. May be called twice."""
        if self.is_open:
            self.is_open = False
            self.simulation.close()

    def _expect_open(self) -> None:
        if not self.is_open:
            raise OSError("the simulated port is closed")
