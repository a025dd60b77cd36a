"""C++ text: headers of this package, and tables of numbers."""

from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files


def header(package: str, name: str) -> str:
    """Return a header without its #include lines."""
    text = (files("cppsim") / package / name).read_text(encoding="utf-8")
    return "\n".join(line for line in text.splitlines() if not line.startswith("#include"))


def table(
    name: str, values: Sequence[int], plural: str | None = None, kind: str = "uint32_t"
) -> Iterator[str]:
    """Yield a table and its size; an empty table has one entry, as C++ needs."""
    suffix = "ull" if kind == "uint64_t" else "u"
    texts = ", ".join(f"{x}{suffix}" for x in values) or "0"
    yield f"constexpr uint32_t {name}_COUNT = {len(values)};"
    yield f"TABLE {kind} {plural or name}[] = {{{texts}}};"


def pairs(name: str, values: Sequence[tuple[int, int]], plural: str | None = None) -> Iterator[str]:
    """Yield a table of pairs and its size."""
    texts = ", ".join(f"{{{a}u, {b}u}}" for a, b in values) or "{0, 0}"
    yield f"constexpr uint32_t {name}_COUNT = {len(values)};"
    yield f"TABLE uint32_t {plural or name}[][2] = {{{texts}}};"


def structures(values: Iterable[Iterable[int]]) -> str:
    """Return a C++ initializer for an array of structures."""
    return "{" + ", ".join("{" + ", ".join(f"{x}u" for x in row) + "}" for row in values) + "}"
