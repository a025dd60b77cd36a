"""Compile C++ into a shared library, once for its content, and bind the functions in it."""

import ctypes
import hashlib
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.resources import files
from operator import attrgetter
from pathlib import Path
from threading import Timer
from typing import Any, Literal, TypeVar

from ..errors import SimulationError
from .cache import Cache
from .toolchain import LIBRARY, Compiler, bare, find_compiler, hasty, selecting

HEADERS = Path(str(files("cppsim") / "cpp"))
"""Folder of the headers that generated C++ includes."""

_LIBRARY = "library.so"

_LEVELS = ((500_000, "-O1"), (1_250_000, "-Og"))
"""Levels of optimization, each with the longest source that has it; longer ones have ``-O0``.

GCC's time for a function grows faster than the function. Registers, most with an enable each:

- 2,000 registers, 760,000 characters: 8.3 s and 316,000 cycles/s at ``-O1``, 3.0 s and 272,000
  cycles/s at ``-Og``.
- 5,000 registers, 1,500,000 characters: 7.8 s and 50,000 cycles/s at ``-Og``, 2.9 s and 22,000
  cycles/s at ``-O0``; ``-O1`` does not end within 100 s.
- 20,000 registers, 6,200,000 characters: 21 s at ``-O0``; ``-Og`` does not end within 150 s.
"""

_SECTIONS = ((40, 48), (58, 60), (60, 62))
"""Bytes of a header of ELF: the start of the table of sections, a section's size, their number."""

_Library = TypeVar("_Library", bound=ctypes.CDLL)

Signatures = Mapping[str, tuple[Any, Sequence[Any]]]
"""The result and the arguments of functions, as types of ctypes, by name."""

_ADDRESS, _SIZE = ctypes.c_void_p, ctypes.c_size_t

_SIMULATION: Signatures = {
    "simulation_create": (_ADDRESS, ()),
    "simulation_destroy": (None, (_ADDRESS,)),
    "simulation_reset": (None, (_ADDRESS,)),
    "simulation_words": (_ADDRESS, (_ADDRESS,)),
    "simulation_memory": (_ADDRESS, (_ADDRESS, _SIZE)),
    "simulation_step": (ctypes.c_int, (_ADDRESS,)),
    "simulation_edge": (None, (_ADDRESS,)),
    "simulation_levels": (ctypes.c_int, (_ADDRESS,)),
    "simulation_settle": (None, (_ADDRESS,)),
    "simulation_messages": (_SIZE, (_ADDRESS, ctypes.POINTER(ctypes.POINTER(ctypes.c_uint64)))),
}

_COVERED_NAME = "simulation_covered"
_COVERED: Signatures = {_COVERED_NAME: (_ADDRESS, (_ADDRESS,))}
"""The function that a library has in addition if it measures coverage."""


def content_key(*parts: str) -> str:
    """Return 32 hexadecimal digits of the SHA-256 of ``parts`` and their boundaries."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode()
        digest.update(b"%d:" % len(content))
        digest.update(content)
    return digest.hexdigest()[:32]


def bind(library: _Library, signatures: Signatures) -> _Library:
    """Give the functions of ``library`` their ``signatures``; return it."""
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


@dataclass(frozen=True, slots=True)
class Builder:
    """Compiles libraries of one kind; their cache is that of ``owner``.

    Attributes
    ----------
    kind
        The folder in the cache.
    subject
        The noun in the line on standard error when a compilation takes long: "a design".
    flags
        For every compiler, besides `toolchain.LIBRARY`.
    tuning
        Functions that return more flags for a compiler: see `toolchain`.
    headers
        Folders of headers. Their content is part of every key.
    owner
        The Python package whose environment variables name the cache and the compiler.
    """

    kind: str
    subject: str
    flags: tuple[str, ...]
    tuning: tuple[Callable[[Compiler], tuple[str, ...]], ...] = ()
    headers: tuple[Path, ...] = ()
    owner: str = "cppsim"

    def find_compiler(self) -> Compiler:
        """Return the owner's compiler. Raises ``SimulationError`` if there is none."""
        return find_compiler(self.owner)

    def folder(self, content: Iterable[str], fill: Callable[[Path], None]) -> Path:
        """Return the cached folder of ``content``; ``fill`` fills it on the first call.

        The key is made of ``content``, the kind of machine, the compiler, its flags and headers.

        Raises ``SimulationError`` if the files cannot be written.
        """
        key = self._key(content)
        with self._writing():
            return Cache(self.owner).cached(self.kind, key, fill)

    def known(self, content: Iterable[str]) -> Path | None:
        """Return the folder of ``content``, None if it does not exist or is damaged."""
        return Cache(self.owner).known(self.kind, self._key(content))

    def _key(self, content: Iterable[str]) -> str:
        compiler = self.find_compiler()
        # A home folder may be that of machines of several kinds.
        parts = [platform.machine(), *compiler.command, compiler.version]
        parts += self.flags_for(compiler)
        for folder in self.headers:
            for file in sorted(os.scandir(folder), key=_name):
                if file.name.endswith(".h"):
                    state = file.stat()
                    parts += [file.name, _header(file.path, state.st_mtime_ns, state.st_size)]
        return content_key(*parts, *content)

    def compile(self, sources: Sequence[Path], folder: Path) -> None:
        """Compile ``sources`` to the library in ``folder``. Raises ``SimulationError``."""
        compiler = self.find_compiler()
        library = self.library(folder)
        # Libraries among the flags have to follow the sources that need them.
        arguments = [*map(str, sources), *self.flags_for(compiler), "-o", str(library)]
        line = f"{self.owner}: compiling {self.subject}, once for this circuit"
        if compiler.is_zig:
            line += "; zig's first compilation takes minutes, as it builds its C++ library, too"
        with noticed(line):
            compiler.run(arguments, scratch=folder)
        if not _is_complete(library):
            raise SimulationError(f"{compiler.name} reported success, but wrote no whole library")

    def compile_text(self, text: str, folder: Path) -> None:
        """Compile a C++ source to the library in ``folder``. Raises ``SimulationError``."""
        source = folder / "source.cc"
        source.write_text(text, encoding="utf-8")
        self.compile([source], folder)
        source.unlink()

    @staticmethod
    def library(folder: Path) -> Path:
        """Return the path of the library in ``folder``."""
        return folder / _LIBRARY

    def from_text(self, text: str) -> Path:
        """Return the path of the library of a C++ source. Raises ``SimulationError``."""
        return self.library(self.folder([text], partial(self.compile_text, text)))

    def from_files(self, *sources: Path) -> Path:
        """Return the path of the library of C++ files. Raises ``SimulationError``.

        The files find headers beside them; these belong in ``headers`` to be part of the key.
        """
        content = [path.read_text(encoding="utf-8") for path in sources]
        return self.library(self.folder(content, lambda folder: self.compile(sources, folder)))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Turn the errors of files in the cache into one line."""
        try:
            yield
        except OSError as error:
            cache = Cache(self.owner)
            path, reason = error.filename or "the cache", error.strerror or str(error)
            cure = f"free space, or set {cache.variable} to another folder"
            raise SimulationError(f"{path}: {reason}; {cure}") from error

    def flags_for(self, compiler: Compiler) -> tuple[str, ...]:
        """Return all flags for ``compiler``."""
        tuned = (flag for tune in self.tuning for flag in tune(compiler))
        return (*LIBRARY, *self.flags, *tuned, *(f"-I{folder}" for folder in self.headers))


_name = attrgetter("name")


@lru_cache(maxsize=256)
def _header(path: str, _modified: int, _size: int) -> str:
    """Return the text of a header, which has been modified at a time, and has a size."""
    return Path(path).read_text(encoding="utf-8")


def builder(source: str = "", flags: tuple[str, ...] = ()) -> Builder:
    """Return the builder of libraries for designs like ``source``, with ``flags`` more."""
    level = "-O1" if flags else next((x for most, x in _LEVELS if len(source) <= most), "-O0")
    tuning = (selecting, hasty, bare) if level == "-Og" else (selecting, bare)
    return Builder("cppsim", "a design", (level, *flags), tuning, (HEADERS,))


def provide(source: str, flags: tuple[str, ...] = ()) -> Path:
    """Return the path of the library of a design's C++ ``source``.

    ``flags`` are for this source alone. Raises ``SimulationError`` if it cannot be compiled.
    """
    return builder(source, flags).from_text(source)


@lru_cache(maxsize=256)
def load(path: Path) -> Any:
    """Return the library of a design, with its functions. Raises ``SimulationError``."""
    # PyDLL holds the interpreter's lock: calls are many, and shorter than giving the lock up.
    try:
        library = bind(ctypes.PyDLL(str(path)), _SIMULATION)
        return bind(library, _COVERED) if hasattr(library, _COVERED_NAME) else library
    except (AttributeError, OSError) as error:
        raise SimulationError(f"{path}: not a library of a design: {error}") from error


NOTICE_SECONDS = 1.0
"""Seconds before a compilation is reported. Most designs are compiled sooner."""


@contextmanager
def noticed(line: str) -> Iterator[None]:
    """Print ``line`` on standard error if the ``with`` block takes longer than a second."""
    timer = Timer(NOTICE_SECONDS, _say, [line])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _say(line: str) -> None:
    if sys.stderr is not None:
        with suppress(AttributeError, OSError, ValueError):
            print(line, file=sys.stderr, flush=True)


def _is_complete(library: Path) -> bool:
    """Return whether a library has all bytes of which its header knows.

    The system ends a process that loads half a library. In the 64-bit files of ELF, the table of
    sections is at the end; of other formats only emptiness is found.
    """
    if not library.is_file():
        return False
    with library.open("rb") as file:
        head = file.read(64)
    if head[:5] != b"\x7fELF\x02" or len(head) < 64:
        return len(head) == 64 and sys.platform != "linux"
    order: Literal["little", "big"] = "little" if head[5] == 1 else "big"
    start, each, count = (int.from_bytes(head[a:b], order) for a, b in _SECTIONS)
    return library.stat().st_size >= start + each * count
