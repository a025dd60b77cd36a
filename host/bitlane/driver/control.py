"""A device's registers by name, over a link."""

from collections.abc import Sequence
from typing import Final

from bitlane_rtl.abi import CONTROL_BASE, REGISTERS, WORD_BYTES, Access, Port, Register, Status
from bitlane_rtl.abi import register as find_register

from ..errors import LinkError
from ..links import Link
from .geometry import Geometry

_STATE_START: Final = find_register("STATUS").offset
_COUNTERS_START: Final = find_register("BUSY_CYCLES").offset


class Control:
    """The control window of the device behind ``link``."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def read(self, name: str) -> int:
        """Read the register ``name``. Raises ``KeyError`` unless it exists and can be read."""
        entry = find_register(name)
        if entry.access is Access.WRITE:
            raise KeyError(f"register {name} can only be written")
        return self._read([entry])[name]

    def write(self, name: str, value: int) -> None:
        """Set a register. Raises ``KeyError`` unless it exists and can be written."""
        entry = find_register(name)
        if entry.access is Access.READ:
            raise KeyError(f"register {name} can only be read")
        if not 0 <= value < 1 << 32:
            raise ValueError(f"register {name}: {value} does not fit in 32 bits")
        self._link.write(CONTROL_BASE + entry.offset, value.to_bytes(WORD_BYTES, "little"))

    def registers(self) -> dict[str, int]:
        """Return every register that can be read, by name."""
        return self._read([x for x in REGISTERS if x.access is not Access.WRITE])

    def counters(self) -> dict[str, int]:
        """Return the performance counters by name; all 0 in a circuit without counters."""
        return self._read([x for x in REGISTERS if x.offset >= _COUNTERS_START])

    def geometry(self) -> Geometry:
        """Return the device's geometry. Raises ``LinkError`` for one that no circuit has."""
        names = ("CAPABILITIES", "GEOMETRY", "MEMORY_BASE", "MEMORY_LAST", "SEARCH")
        return Geometry.from_registers(
            *self._read([find_register(name) for name in names]).values()
        )

    def _read(self, entries: Sequence[Register]) -> dict[str, int]:
        """Read registers in one exchange; return them by name."""
        reads = [(CONTROL_BASE + entry.offset, WORD_BYTES) for entry in entries]
        words = {}
        for entry, data in zip(entries, self._link.exchange((), reads), strict=True):
            if len(data) != WORD_BYTES:
                raise LinkError(
                    f"control window: {len(data)} bytes came from offset {entry.offset:#x};"
                    f" expected {WORD_BYTES}"
                )
            words[entry.name] = int.from_bytes(bytes(data), "little")
        return words


def describe(registers: dict[str, int]) -> str:
    """Return the registers of the engine's state, with their fields, in one line."""
    return " ".join(
        _describe(find_register(name), value)
        for name, value in registers.items()
        if _STATE_START <= find_register(name).offset < _COUNTERS_START
    )


def _describe(entry: Register, value: int) -> str:
    if value == 0 or len(entry.bits) < 2:
        return f"{entry.name}={value:#x}"
    fields = []
    for bits in entry.bits:
        number = bits.extract(value)
        text = str(number)
        if entry.name == "FAULT" and bits.name == "CODE":
            text = status_name(number)
        elif entry.name == "FAULT" and bits.name == "PORT":
            text = Port(number).name
        fields.append(f"{bits.name}={text}")
    return f"{entry.name}={value:#x}({','.join(fields)})"


def status_name(code: int) -> str:
    """Return the name of a ``Status`` code, or ``code 77`` for one outside the contract."""
    return Status(code).name if code in Status.__members__.values() else f"code {code}"
