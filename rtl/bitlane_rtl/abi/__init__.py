"""The contract between circuit and driver: records, registers, codes and frames. Plain data only.

The circuit's layouts, the driver's packing and the register page of the documentation are all
derived from this package, so that they cannot drift. Nothing here may depend on another package.
`frames` has the codes of the serial line, `rows` the layout of SDRAM; import the rest from here.

Units: addresses and sizes in bytes unless a name says otherwise; a *word* is 32 bits.
"""

from .bits import (
    Bits,
)
from .codes import (
    ABI_VERSION,
    BASE_OPS,
    BEATS_PER_BLOCK,
    BIT_OPS,
    COUNT_OPS,
    IDENTITY,
    LOGIC_OPS,
    SEARCH_ENTRY_BYTES,
    SHIFT_OPS,
    WORD_BYTES,
    Code,
    Lane,
    Mode,
    Op,
    Port,
    Status,
)
from .record import (
    MAX_LOOPS,
    RECORD,
    RECORD_BYTES,
    RECORD_SEAL,
    RECORD_WORDS,
    STREAMS,
    RecordField,
    WordKind,
    loop_word,
    record_words,
    seal,
)
from .registers import (
    COMPLETION,
    COMPLETION_OFFSET,
    CONTROL_BASE,
    CONTROL_SIZE,
    REGISTERS,
    RING_OFFSET,
    Access,
    Register,
    register,
)
from .rules import RULES, Rule

__all__ = [
    "ABI_VERSION",
    "BASE_OPS",
    "BEATS_PER_BLOCK",
    "BIT_OPS",
    "COMPLETION",
    "COMPLETION_OFFSET",
    "CONTROL_BASE",
    "CONTROL_SIZE",
    "COUNT_OPS",
    "IDENTITY",
    "LOGIC_OPS",
    "MAX_LOOPS",
    "RECORD",
    "RECORD_BYTES",
    "RECORD_SEAL",
    "RECORD_WORDS",
    "REGISTERS",
    "RING_OFFSET",
    "RULES",
    "SEARCH_ENTRY_BYTES",
    "SHIFT_OPS",
    "STREAMS",
    "WORD_BYTES",
    "Access",
    "Bits",
    "Code",
    "Lane",
    "Mode",
    "Op",
    "Port",
    "RecordField",
    "Register",
    "Rule",
    "Status",
    "WordKind",
    "loop_word",
    "record_words",
    "register",
    "seal",
]
