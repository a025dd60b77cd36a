"""Turn a circuit into a shared library: generate C++, compile it, and cache the result."""

import pickle
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..compiling import Builder, selecting, source_digest, straight
from ..cpp import element_bits
from ..netlist import Bits, DesignPort, FormattedValue, PlainDesign, row_bytes, word_count
from ..netlist.passes import trim
from .interface import Elaborated
from .source import HEADERS, program, program_glue
from .storage import StoragePort

_ABOUT = "about.pickle"

CODE_DIGEST = source_digest("cppsim")
"""The digest of the modules that run here: the files may have changed since."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a circuit: text and values, and whether it reports a failed check."""

    parts: tuple[str | FormattedValue, ...]
    failed: bool

    @property
    def sizes(self) -> list[int]:
        """Return the number of words of each value."""
        return [word_count(part.width) for part in self.parts if not isinstance(part, str)]


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A memory of a circuit's library: its ``number`` in the netlist, and the bits that it has."""

    number: int
    columns: tuple[int, ...]

    def content(self, rows: Iterable[int]) -> bytes:
        """Return the bytes of its array for ``rows`` of the netlist's memory."""
        return row_bytes(rows, self.columns, element_bits(len(self.columns)))


@dataclass(frozen=True, slots=True)
class Library:
    """A compiled circuit.

    Attributes
    ----------
    seconds
        Time to write and compile it.
    fresh
        It was built by this call, not found in the cache.
    messages
        In the order of their numbers.
    shown
        Widths of the signals in a waveform by name, in the order of the model's words.
    memories
        The memories whose rows the model copies in, in the order of their numbers there.
    """

    path: Path
    compiler: str
    seconds: float
    fresh: bool = False
    messages: tuple[Message, ...] = ()
    shown: Mapping[str, int] = field(default_factory=dict)
    memories: tuple[StoredMemory, ...] = ()


def builder(owner: str) -> Builder:
    """Return the builder of a circuit's library; ``owner`` names the cache and the compiler."""
    flags = ("-O2", "-DNDEBUG")
    return Builder("compiled", "the circuit", flags, (straight, selecting), HEADERS, owner)


def build(
    circuit: Elaborated,
    storage: Sequence[StoragePort] = (),
    *,
    waveform: bool = False,
    owner: str = "cppsim",
) -> Library:
    """Compile ``circuit``, or find it in the cache. A model with ``waveform`` shows all signals.

    ``owner`` names the cache and the compiler: see `Builder`.

    Raises ``SimulationError`` for a missing or failing compiler, and for a combinational loop.
    """
    compile_as = builder(owner)
    about_circuit = (circuit.digest, str(circuit.widths), str(storage), str(waveform))
    fresh = False

    def fill(folder: Path) -> None:
        nonlocal fresh
        fresh = True
        started = time.monotonic()
        design = circuit.design
        shown = dict(sorted(design.names.items())) if waveform else {}
        compile_as.compile_text(_source(circuit, design, storage, shown), folder)
        about = {
            "seconds": round(time.monotonic() - started, 3),
            "messages": tuple(Message(x.message, x.failed) for x in design.messages),
            "shown": {name: len(bits) for name, bits in shown.items()},
            "memories": tuple(StoredMemory(x.number, x.columns) for x in design.memories),
        }
        (folder / _ABOUT).write_bytes(pickle.dumps(about))

    folder = compile_as.folder((*about_circuit, CODE_DIGEST, source_digest("cppsim")), fill)
    about = pickle.loads((folder / _ABOUT).read_bytes())
    compiler = compile_as.find_compiler().name
    return Library(compile_as.library(folder), compiler, fresh=fresh, **about)


def _source(
    circuit: Elaborated,
    design: PlainDesign,
    storage: Sequence[StoragePort],
    shown: Mapping[str, Bits],
) -> str:
    """Return the source of a library; trim ``design`` to the bits that it needs."""
    ports = design.ports
    design.ports = [*ports, *(DesignPort(name, True, bits) for name, bits in shown.items())]
    trim(design)
    design.ports = ports
    text, variables = program(design, storage, list(shown.values()))
    return program_glue(text, variables, circuit.widths, circuit.output_widths, storage)
