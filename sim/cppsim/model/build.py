"""Turn a circuit into a shared library: C++ that is written here, a compiler, and a cache."""

import hashlib
import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from cppsim.compiling.cache import Cache
from cppsim.compiling.flags import LIBRARY, selecting, straight
from cppsim.compiling.notice import noticed
from cppsim.compiling.toolchain import find_compiler
from cppsim.netlist.design import Bits, DesignPort, FormattedValue, Notice, PlainDesign
from cppsim.netlist.tidy import trim

from ..compiling.sources import source_digest
from ..cpp.ported import program
from ..cpp.ported_glue import program_glue
from ..netlist.elaborated import Elaborated
from ..netlist.storage import StoragePort

__all__ = ["Library", "Message", "build"]

_KIND = "compiled"
_LIBRARY = "model.so"
_ABOUT = "about.json"

_LOADED = source_digest("cppsim")
"""What runs here. The files may be newer, and the compiler reads the headers as they are."""

_HEADERS = Path(str(files("cppsim"))) / "cpp"

_FLAGS = (*LIBRARY, "-O2", "-DNDEBUG")


@dataclass(frozen=True, slots=True)
class Message:
    """What a model can tell: ``parts`` with values in them, and whether a check has failed then."""

    parts: tuple[str | FormattedValue, ...]
    failed: bool

    @property
    def sizes(self) -> list[int]:
        """Words of each value."""
        return [-(-part.width // 64) for part in self.parts if not isinstance(part, str)]


@dataclass(frozen=True, slots=True)
class Library:
    """A compiled circuit.

    ``seconds`` is what the compiler and the rest took when it was built; ``fresh`` says that this
    was just now. ``writer`` names who else wrote the C++. ``messages`` are in the order of their
    numbers. ``shown`` are the widths of all signals that a model for waveforms shows, by name, in
    the order of its words.
    """

    path: Path
    compiler: str
    seconds: float
    fresh: bool = False
    writer: str = ""
    messages: tuple[Message, ...] = ()
    shown: Mapping[str, int] = field(default_factory=dict)


def build(
    circuit: Elaborated,
    storage: Sequence[StoragePort] = (),
    *,
    waveform: bool = False,
    owner: str = "cppsim",
) -> Library:
    """Compile ``circuit``, or find it in the cache. ``waveform`` keeps what a VCD file needs.

    ``owner`` names the cache and the compiler: see `Cache` and `find_compiler`.

    Raises ``SimulationError`` if there is no compiler or it fails, and for combinational loops.
    """
    compiler = find_compiler(owner)
    flags = (*_FLAGS, *straight(compiler), *selecting(compiler))
    key = _key(
        circuit.digest,
        str(circuit.widths),
        str(storage),
        str(waveform),
        _LOADED,
        source_digest("cppsim"),
        *compiler.command,
        compiler.version,
        *flags,
    )

    fresh = False

    def fill(folder: Path) -> None:
        nonlocal fresh
        fresh = True
        started = time.monotonic()
        work = folder / "work"
        work.mkdir()
        source = work / "library.cc"
        design = circuit.design
        shown = dict(sorted(design.names.items())) if waveform else {}
        source.write_text(_source(circuit, design, storage, shown), encoding="utf-8")
        with noticed(f"{owner}: compiling the circuit, once for this computer"):
            compiler.run([*flags, f"-I{_HEADERS}", "-o", str(folder / _LIBRARY), str(source)])
        about = {
            "seconds": round(time.monotonic() - started, 3),
            "messages": list(map(_described, design.notices)),
            "shown": {name: len(bits) for name, bits in shown.items()},
        }
        (folder / _ABOUT).write_text(json.dumps(about), encoding="utf-8")
        shutil.rmtree(work)

    folder = Cache(owner).cached(_KIND, key, fill)
    about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
    about["messages"] = tuple(map(_message, about["messages"]))
    return Library(folder / _LIBRARY, compiler.name, fresh=fresh, **about)


def _key(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}:{part}".encode())
    return digest.hexdigest()[:32]


def _source(
    circuit: Elaborated,
    design: PlainDesign,
    storage: Sequence[StoragePort],
    shown: Mapping[str, Bits],
) -> str:
    """The source of a library. Leaves of ``design`` what it needs."""
    ports = design.ports
    design.ports = [*ports, *(DesignPort(name, True, bits) for name, bits in shown.items())]
    trim(design)
    design.ports = ports
    text, variables = program(design, storage, list(shown.values()))
    return program_glue(text, variables, circuit.widths, circuit.output_widths, storage)


def _described(notice: Notice) -> dict[str, Any]:
    parts = [x if isinstance(x, str) else asdict(x) for x in notice.message]
    return {"failed": notice.failed, "parts": parts}


def _message(about: Mapping[str, Any]) -> Message:
    parts = (x if isinstance(x, str) else FormattedValue(**x) for x in about["parts"])
    return Message(tuple(parts), about["failed"])
