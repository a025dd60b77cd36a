"""The circuit of a campaign as text: written to a folder, and run from it without Amaranth.

FOLDER/circuit.json  what it is: options of the configuration, RAM, ports
FOLDER/circuit.h     what the backends compile
FOLDER/memories.bin  memories of an instance at power-on
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitlane.driver.geometry import Geometry
from bitlane.errors import BitlaneError
from bitlane_rtl.configuration import Configuration
from cppsim.batch.description import Description, Source
from cppsim.batch.runner import Backend, Runner

from ..device.link import configuration_of

RAM = "ram"
"""Name of the memory that is the RAM."""

Bytes = NDArray[np.uint8]

_ABOUT, _TEXT, _MEMORIES = "circuit.json", "circuit.h", "memories.bin"


@dataclass(frozen=True, slots=True)
class CircuitOptions:
    """``options`` are those of a simulator's URL; ``ram_bytes`` of RAM, a power of two.

    A RAM smaller than the memory ignores the upper bits of addresses.
    """

    options: str
    configuration: Configuration
    ram_bytes: int


@dataclass(frozen=True, slots=True)
class HarnessCircuit(CircuitOptions):
    """A circuit as text, which backends compile; many instances of it run at once."""

    text: str
    description: Description
    rows: bytes
    """Memories of an instance at power-on."""

    def runner(
        self, instances: int, backend: Backend | str = "auto", threads: int | None = None
    ) -> Runner:
        """Return instances at power-on. A backend of this circuit can be used again."""
        return Runner(self, instances, backend, threads)

    def source(self, backend: str | None = None) -> Source:
        """Return the C++, which compiles for each ``backend``."""
        return Source(self.text, self.description)

    def write(self, folder: Path) -> None:
        """Raises ``BitlaneError`` if ``folder`` cannot be written."""
        about = {
            "options": self.options,
            "ram_bytes": self.ram_bytes,
            "description": self.description.as_dict(),
        }
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / _TEXT).write_text(self.text, encoding="utf-8")
            (folder / _MEMORIES).write_bytes(self.rows)
            (folder / _ABOUT).write_text(json.dumps(about), encoding="utf-8")
        except OSError as error:
            raise BitlaneError(f"{folder} cannot be written: {error.strerror}") from error

    @property
    def _words(self) -> tuple[str, int]:
        """Return the type of an element of RAM, and the elements of a row."""
        width = self.configuration.data_width
        return f"<u{min(width, 64) // 8}", -(-width // 64)

    def put_ram(self, runner: Runner, content: Bytes) -> None:
        """Set the RAM of every instance, from (instances, bytes), or of all from (bytes,)."""
        kind, words = self._words
        whole = np.broadcast_to(content, (runner.instances, content.shape[-1]))
        rows = np.ascontiguousarray(whole).view(kind)
        runner.set_memory(RAM, rows.reshape(runner.instances, -1, words) if words > 1 else rows)

    def ram(self, runner: Runner) -> Bytes:
        """Return the RAM of every instance: (instances, bytes)."""
        kind, _ = self._words
        rows = runner.memory(RAM)
        return np.ascontiguousarray(rows.astype(kind)).reshape(len(rows), -1).view(np.uint8)


def circuit_of(options: str, ram_bytes: int | None = None) -> CircuitOptions:
    """Return the circuit of ``options`` without its text; one instance of it can run alone.

    It has as much RAM as memory, or ``ram_bytes``. Raises ``LinkError`` for options that no circuit
    has.
    """
    configuration = configuration_of(f"sim:compiled?{options}")
    size = configuration.memory_bytes if ram_bytes is None else ram_bytes
    return CircuitOptions(options, configuration, size)


def make_circuit(options: str, ram_bytes: int | None = None) -> HarnessCircuit:
    """Return the same circuit with its text. Raises ``SimulationError``, too."""
    # Amaranth, which nobody needs who opens a folder.
    from cppsim.batch.circuit import batch_circuit
    from cppsim.batch.source import write_batch

    from .harness import Harness

    bare = circuit_of(options, ram_bytes)
    configuration, size = bare.configuration, bare.ram_bytes
    harness = Harness(configuration, size // configuration.data_bytes)
    written = write_batch(batch_circuit(harness))
    source = written.source()
    content = source.text, source.description, written.rows
    return HarnessCircuit(options, configuration, size, *content)


def open_circuit(folder: Path) -> HarnessCircuit:
    """Read the files of `HarnessCircuit.write`. Raises ``BitlaneError`` if they are missing."""
    try:
        about: dict[str, Any] = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
        return HarnessCircuit(
            about["options"],
            configuration_of(f"sim:compiled?{about['options']}"),
            int(about["ram_bytes"]),
            (folder / _TEXT).read_text(encoding="utf-8"),
            Description.from_dict(about["description"]),
            (folder / _MEMORIES).read_bytes(),
        )
    except BitlaneError:
        raise
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}"
    except (ValueError, KeyError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}"
    raise BitlaneError(f"--circuit: {folder} holds no circuit ({reason}); write it with --export")


def geometry_of(configuration: Configuration) -> Geometry:
    """Return the geometry that a device of this configuration reports, without a search array."""
    return Geometry(
        data_bytes=configuration.data_bytes,
        loops=configuration.loops,
        slots=configuration.slots,
        length_bits=configuration.length_bits,
        count_bits=configuration.count_bits,
        memory_base=configuration.memory_base,
        memory_last=configuration.memory_last,
        ops=configuration.bit_ops,
        lanes=configuration.lanes,
        modes=configuration.modes,
        read_ports=1 + configuration.two_ports,
        counters=configuration.counters,
    )
