"""The circuit of a campaign as text: written to a folder, and run from it without Amaranth.

The folder is one that `cppsim.Batch.export` writes, whose program is empty. FOLDER/circuit.json has
the options of the circuit's configuration, and the bytes of its RAM.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bitlane.driver import Geometry
from bitlane.errors import BitlaneError
from bitlane_rtl.configuration import Configuration
from cppsim import Program
from cppsim.errors import BatchError
from cppsim.stored import Backend, Runner, StoredDesign, read_folder, store, write_folder

from ..circuit_options import configuration_of
from .arrays import Bytes

RAM = "ram"
"""Name of the memory that is the RAM."""

_ABOUT = "circuit.json"


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

    design: StoredDesign

    def runner(self, instances: int, backend: Backend | str = "auto") -> Runner:
        """Return instances at power-on. A backend of this circuit can be used again."""
        return Runner(self.design, instances, backend)

    def write(self, folder: Path) -> None:
        """Raises ``BitlaneError`` if ``folder`` cannot be written."""
        about = {"options": self.options, "ram_bytes": self.ram_bytes}
        rows = np.frombuffer(self.design.rows, np.uint8)[None]
        try:
            write_folder(folder, self.design, 1, rows, Program())
            (folder / _ABOUT).write_text(json.dumps(about), encoding="utf-8")
        except BatchError as error:
            raise BitlaneError(str(error)) from error
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
    from .harness import Harness

    bare = circuit_of(options, ram_bytes)
    configuration, size = bare.configuration, bare.ram_bytes
    harness = Harness(configuration, size // configuration.data_bytes)
    return HarnessCircuit(options, configuration, size, store(harness))


def open_circuit(folder: Path) -> HarnessCircuit:
    """Read the files of `HarnessCircuit.write`. Raises ``BitlaneError`` if they are missing."""
    try:
        about: dict[str, Any] = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
        options, ram_bytes = about["options"], int(about["ram_bytes"])
        design = read_folder(folder).design
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}"
    except (ValueError, KeyError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}"
    except BatchError as error:
        reason = str(error)
    else:
        configuration = circuit_of(options, ram_bytes).configuration
        return HarnessCircuit(options, configuration, ram_bytes, design)
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
