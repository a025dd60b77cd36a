"""Make CXXRTL's output faster without changing what it computes.

Only for models that settle in one pass. On the full engine this takes a third of the time away
from g++, and more than half of it from the model.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from ..evaluator import SimulationError

__all__ = ["State", "state_of", "tune_model", "wide_headers"]

_LITERAL = r"(?:0x[0-9a-f]+|\d+)u"
_LITERALS = re.compile(rf"\b(value|wire)<(\d+)>\s?\{{({_LITERAL}(?:,\s*{_LITERAL})+)\}}")
_UPDATE = re.compile(r"\bmemory_\w+\.update\(")
_COMMIT = re.compile(r"if \((\w+)\.commit\(observer\)\) changed = true;")


class State:
    """Names of a model's registers and memories, as members of its C++ structure."""

    def __init__(self, names: list[str]) -> None:
        self.memories = [name for name in names if name.startswith("memory_")]
        self.registers = [name for name in names if not name.startswith("memory_")]


def state_of(model: str) -> State:
    """What ``commit()`` of ``model`` carries over from one cycle to the next."""
    return State(_COMMIT.findall(model))


_WIDER = {
    "cxxrtl/cxxrtl.h": {
        "typedef uint32_t chunk_t;": "typedef uint64_t chunk_t;",
        "typedef uint64_t wide_chunk_t;": "typedef unsigned __int128 wide_chunk_t;",
    },
    "cxxrtl/capi/cxxrtl_capi.h": {
        "uint32_t *curr;": "uint64_t *curr;",
        "uint32_t *next;": "uint64_t *next;",
    },
}


def wide_headers(folder: Path) -> dict[str, str]:
    """CXXRTL's headers in ``folder``, by path, that change for values in chunks of 64 bits.

    They have chunks of 32 and allow for others. Raises ``SimulationError`` if they are others.
    """
    headers = {}
    for name, changes in _WIDER.items():
        headers[name] = (folder / name).read_text()
        for old, new in changes.items():
            if headers[name].count(old) != 1:
                raise SimulationError(f"{name} of this Yosys is not known here: no {old!r}")
            headers[name] = headers[name].replace(old, new)
    return headers


def tune_model(model: str) -> str:
    """``model`` for chunks of 64 bits, with every evaluation at a rising edge."""
    model = _LITERALS.sub(_join_literals, model)
    # A constant takes hundreds of branches away. The driver undoes edges that it does not want.
    model = re.sub(
        r"bool (posedge_\w+) = this->\1\(\);", r"constexpr bool \1 = true; (void)\1;", model
    )
    return "".join(_guard_updates(model))


def _join_literals(match: re.Match[str]) -> str:
    chunks = [int(chunk.strip().rstrip("u"), 0) for chunk in match[3].split(",")]
    chunks += [0] * (len(chunks) % 2)
    pairs = zip(chunks[::2], chunks[1::2], strict=True)
    wide = ",".join(f"{low | high << 32:#x}ull" for low, high in pairs)
    return f"{match[1]}<{match[2]}>{{{wide}}}"


def _guard_updates(model: str) -> Iterator[str]:
    """Skip writes to memories that change nothing: most of them, in most cycles."""
    done = 0
    for match in _UPDATE.finditer(model):
        mask = _arguments(model, match.end())[2]
        yield model[done : match.start()]
        yield f"if (!({mask}).is_zero()) "
        done = match.start()
    yield model[done:]


def _arguments(text: str, start: int) -> list[str]:
    """Arguments of the call whose opening parenthesis ends at ``start``."""
    arguments: list[str] = []
    depth, begin = 0, start
    for position in range(start, len(text)):
        character = text[position]
        if character in "({[":
            depth += 1
        elif character in ")}]":
            if depth == 0:
                return [*arguments, text[begin:position].strip()]
            depth -= 1
        # The comma of slice<7,0> is none between arguments.
        elif character == "," and not depth and not re.match(r",\d+>", text[position:][:12]):
            arguments.append(text[begin:position].strip())
            begin = position + 1
    raise SimulationError("the C++ of this Yosys is not known here: a call without an end")
