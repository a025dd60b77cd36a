"""Known answers: DirectML's documented examples, and figures worked out by hand.

Nothing here is computed, so that an error of the NumPy model would show too.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bitlane_rtl.abi import Op

from .. import dml
from ..dml.operators import OPERATOR_DESCS
from ..errors import CheckFailed
from ..lowering import Options, Streams, View, lower
from .session import Session, plural


@dataclass(frozen=True, slots=True)
class _Answer:
    op: Op
    itemsize: int
    a: tuple[int, ...]
    b: tuple[int, ...]
    y: tuple[int, ...]
    out: int = 0
    """Bytes of an element of the result; 0 if as the operands."""
    options: Options = Options.NONE
    documented: bool = False


_SATURATE: Final = Options.SATURATE
_TEST: Final = Options.TEST
_NEGATE: Final = Options.TEST | Options.NEGATE

_ANSWERS: Final = (
    # ns-directml-dml_element_wise_bit_not_operator_desc and ..._bit_count_..., "Example".
    _Answer(Op.NOT, 1, (0, 128, 42, 255), (), (255, 127, 213, 0), documented=True),
    _Answer(Op.COUNT, 4, (0, 123, 456, 789), (), (0, 6, 4, 5), documented=True),
    _Answer(Op.COUNT, 4, (0, 123, 456, 2**32 - 1), (), (0, 6, 4, 32), out=1),
    _Answer(Op.COUNT, 8, (2**64 - 1, 2**63, 0x0F), (), (64, 1, 4), out=1),
    _Answer(Op.COUNT, 2, (0xFFFF, 0x8001, 0), (), (16, 2, 0), out=4),
    _Answer(Op.COUNT_AND, 1, (0, 128, 42, 255), (255, 129, 15, 85), (0, 1, 2, 4)),
    _Answer(Op.COUNT_AND, 4, (2**32 - 1, 0xF0F0, 1), (2**32 - 1, 0xFF00, 2), (32, 4, 0), out=1),
    _Answer(Op.COUNT_OR, 1, (0, 128, 42, 255), (255, 1, 15, 85), (8, 2, 5, 8)),
    _Answer(Op.COUNT_OR, 2, (0xFF00, 0x8001, 0), (0x00FF, 0x0001, 0), (16, 2, 0), out=4),
    _Answer(Op.COUNT_XOR, 1, (0, 128, 42, 255), (255, 128, 15, 1), (8, 0, 3, 7)),
    _Answer(Op.COUNT_XOR, 8, (2**64 - 1, 2**63, 0x0F), (0, 2**63, 0xF0), (64, 0, 8), out=1),
    _Answer(Op.COUNT, 1, (0, 128, 1, 255), (), (0, 1, 1, 1), options=_TEST),
    _Answer(Op.COUNT, 2, (0, 0x8000, 256), (), (1, 0, 0), out=4, options=_NEGATE),
    _Answer(Op.COUNT_AND, 4, (2**31, 2**31, 6), (2**31, 1, 9), (1, 0, 0), out=1, options=_TEST),
    _Answer(Op.COUNT_OR, 1, (0, 0, 16), (0, 8, 0), (1, 0, 0), options=_NEGATE),
    _Answer(Op.COUNT_XOR, 8, (2**63, 2**32, 5), (2**63, 1, 5), (1, 0, 1), out=1, options=_NEGATE),
    _Answer(Op.AND, 1, (0, 128, 42, 255), (255, 129, 15, 85), (0, 128, 10, 85)),
    _Answer(Op.OR, 1, (0, 128, 42, 255), (255, 1, 15, 85), (255, 129, 47, 255)),
    _Answer(Op.XOR, 1, (0, 128, 42, 255), (255, 128, 15, 1), (255, 0, 37, 254)),
    _Answer(Op.COPY, 1, (0, 128, 42, 255), (), (0, 128, 42, 255)),
    _Answer(Op.NAND, 1, (0, 128, 42, 255), (255, 129, 15, 85), (255, 127, 245, 170)),
    _Answer(Op.NOR, 1, (0, 128, 42, 255), (255, 1, 15, 85), (0, 126, 208, 0)),
    _Answer(Op.XNOR, 1, (0, 128, 42, 255), (255, 128, 15, 1), (0, 255, 218, 1)),
    # Counts of the width and more: modulo the width as DirectML, or saturated as NumPy.
    _Answer(Op.SHIFT_LEFT, 1, (1, 1, 129, 255), (0, 7, 1, 9), (1, 128, 2, 254)),
    _Answer(Op.SHIFT_LEFT, 1, (1, 1, 129, 255), (0, 7, 1, 9), (1, 128, 2, 0), options=_SATURATE),
    _Answer(Op.SHIFT_RIGHT, 2, (0x8000, 0xFFFF, 1, 3), (15, 16, 17, 65535), (1, 0xFFFF, 0, 0)),
    _Answer(
        Op.SHIFT_RIGHT,
        4,
        (0x8000_0000, 0x8000_0000, 0x4000_0000, 7),
        (31, 32, 32, 1),
        (2**32 - 1, 2**32 - 1, 0, 3),
        options=_SATURATE | Options.ARITHMETIC,
    ),
    _Answer(Op.SHIFT_LEFT, 8, (1, 3, 1), (63, 63, 32), (2**63, 2**63, 2**32)),
)

_DESCS: Final[dict[Op, Any]] = {desc.op: desc for desc in OPERATOR_DESCS.values()}


def check_answers(session: Session) -> str:
    """Check every answer that this circuit can give; those of DirectML by ``bitlane.dml``."""
    lanes = {lane.bytes for lane in session.geometry.lanes}
    done = documented = 0
    for answer in _ANSWERS:
        split = answer.op.splits_lanes and answer.itemsize not in lanes
        if answer.op not in session.geometry.ops or split:
            continue
        got = _dml(session, answer) if _is_directml(answer) else _raw(session, answer)
        if got != list(answer.y):
            raise CheckFailed(f"{_show(answer)} gave {got}; expected {list(answer.y)}")
        done += 1
        documented += answer.documented
    if not done:
        return "none for these operations"
    return f"{plural(done, 'answer')}, {documented} of them DirectML's documented examples"


def _is_directml(answer: _Answer) -> bool:
    return answer.op in _DESCS and not answer.options


def _show(answer: _Answer) -> str:
    flags = "".join(f", {name}" for name, is_set in answer.options.flags.items() if is_set)
    operands = f"{list(answer.a)}" + (f" and {list(answer.b)}" if answer.b else "")
    return f"{answer.op.name} of {operands} in {8 * answer.itemsize} bits{flags}"


def _arrays(answer: _Answer) -> tuple[list[np.ndarray], np.dtype[np.unsignedinteger]]:
    dtype = np.dtype(f"<u{answer.itemsize}")
    operands = [np.array(x, dtype) for x in (answer.a, answer.b) if x]
    return operands, np.dtype(f"<u{answer.out or answer.itemsize}")


def _dml(session: Session, answer: _Answer) -> list[int]:
    operands, out = _arrays(answer)
    tensor = dml.BufferTensorDesc.from_array(operands[0])
    target = dml.BufferTensorDesc(dml.DataType.from_numpy(out), tensor.sizes)
    with dml.Device(session.driver) as device:
        desc = _DESCS[answer.op](*[tensor] * len(operands), target)
        got: list[int] = device.run(desc, operands).tolist()
        return got


def _raw(session: Session, answer: _Answer) -> list[int]:
    driver = session.driver
    operands, out = _arrays(answer)
    count = len(answer.a)
    buffer = driver.allocate(3 * 64)
    try:
        views = []
        for number, operand in enumerate(operands):
            driver.write(buffer.address + 64 * number, operand.view(np.uint8))
            place = buffer.address + 64 * number
            views.append(View(place, (operand.itemsize,), operand.itemsize))
        target = buffer.address + 128
        streams = Streams(
            views[0],
            views[1] if len(views) > 1 else None,
            View(target, (out.itemsize,), out.itemsize),
        )
        has = driver.geometry
        commands = lower(answer.op, (count,), streams, has.abilities, has.memory, answer.options)
        driver.run(commands)
        got: list[int] = driver.read(target, count * out.itemsize).view(out).tolist()
        return got
    finally:
        driver.free(buffer)
