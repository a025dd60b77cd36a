"""The watched device of the tests asserts that commands rely on nothing left open by the contract.

Each case plants one violation, in one run and in several.
"""

import numpy as np
import pytest

from bitlane_rtl.abi import Lane, Mode, Op, Port, Status
from bitlane_rtl.configuration import Configuration
from bitlane_sim.numpy_device import Stop
from support.record import Record
from support.rtl.records import Task, pack
from support.rtl.walks import Walk
from support.watched import WatchedInterpreter

MEMORY = 4096
DENSE, STRIDED, REPEAT, SUM = Mode.DENSE, Mode.STRIDED, Mode.REPEAT, Mode.SUM


def walk(base: int, counts: list[int], steps: list[int], mode: Mode = DENSE, size: int = 1) -> Walk:
    return Walk(base, counts, steps, mode, Lane(size.bit_length() - 1))


def line(base: int, count: int = 64) -> Walk:
    return walk(base, [count], [1])


def rows(base: int, step: int = 16) -> Walk:
    """Return four rows of eight bytes."""
    return walk(base, [8, 4], [1, step])


def execute(*tasks: Task) -> WatchedInterpreter:
    """Execute tasks one after the other, from a memory of random bytes."""
    model = WatchedInterpreter(Configuration(memory_bytes=MEMORY))
    model.memory[:] = np.random.default_rng(1).integers(0, 256, MEMORY, np.uint8)
    for task in tasks:
        assert model.execute(Record(pack(task)).content) is None, task
    return model


def NOT(a: Walk, y: Walk, **options: bool) -> Task:
    return Task(Op.NOT, a, None, y, **options)


SUM_OF_ROWS = walk(64, [8, 4], [1, 4], SUM, 4)

SAME, TWICE = "reads what the same", "writes a byte twice"

BROKEN: dict[str, tuple[str, list[Task]]] = {
    "one byte after the other": (SAME, [NOT(line(0), line(1))]),
    "a strided run": (SAME, [NOT(walk(0, [8], [2], STRIDED), walk(2, [8], [4], STRIDED))]),
    "a repeated byte": (SAME, [NOT(walk(8, [8], [0], REPEAT), line(5, 8))]),
    "the operand B": (SAME, [Task(Op.XOR, line(512), line(0), line(1))]),
    "an earlier run": (SAME, [NOT(rows(0), rows(16))]),
    "an earlier run's sum": (SAME, [Task(Op.COUNT, rows(64, 0), None, SUM_OF_ROWS)]),
    "wide elements": (
        SAME,
        [Task(Op.COUNT, walk(0, [4], [8], DENSE, 8), None, walk(20, [4], [4], DENSE, 4))],
    ),
    "one element twice": (TWICE, [NOT(line(0, 8), walk(64, [8], [0], STRIDED))]),
    "one run twice": (TWICE, [NOT(rows(0), rows(512, 7))]),
    "one sum twice": (TWICE, [Task(Op.COUNT, rows(0), None, walk(64, [8, 4], [1, 0], SUM, 4))]),
    "more runs than bytes": (TWICE, [NOT(walk(0, [1, 5000], [1, 0]), walk(64, [1, 5000], [1, 0]))]),
    "what is written": ("reads what is still", [NOT(line(0), line(512)), NOT(line(575), line(0))]),
    "what rows write": ("reads what is still", [NOT(rows(0), rows(512)), NOT(rows(560), rows(0))]),
    "what others write": (
        "writes what is still being written",
        [NOT(line(0), line(512)), NOT(line(64), line(575))],
    ),
    "what others read": (
        "writes what is still being read",
        [NOT(line(0), line(512)), NOT(line(1024), line(63))],
    ),
    "a wrong LAST": (
        "WRITE: LAST is 600, not 575",
        [Task(Op.NOT, line(0), None, line(512), overrides={"Y_LAST": 600})],
    ),
    "a wrong LAST of rows": (
        "READ_A: LAST is 54, not 55",
        [Task(Op.NOT, rows(0), None, rows(512), overrides={"A_LAST": 54})],
    ),
}


@pytest.mark.parametrize(("message", "tasks"), BROKEN.values(), ids=BROKEN)
def test_what_the_contract_leaves_open_is_noticed(message: str, tasks: list[Task]) -> None:
    execute(*tasks[:-1])
    with pytest.raises(AssertionError, match=message):
        execute(*tasks)


@pytest.mark.parametrize(
    "tasks",
    [
        [NOT(line(0), line(0))],
        [NOT(line(1), line(0))],
        [NOT(rows(0), rows(0))],
        [NOT(rows(16), rows(0))],
        [Task(Op.COUNT, rows(64, 8), None, SUM_OF_ROWS)],
        [NOT(line(0), line(512)), NOT(line(512), line(0), fence=True)],
    ],
)
def test_what_the_contract_promises_is_accepted(tasks: list[Task]) -> None:
    before = execute().memory
    first = tasks[0]
    elements = list(first.a.bytes())
    model = execute(*tasks)
    if first.op is Op.NOT and len(tasks) == 1:
        assert np.array_equal(model.memory[list(first.y.bytes())], ~before[elements])
    elif first.op is Op.COUNT:
        ones = np.bitwise_count(before[elements]).reshape(4, 8).sum(axis=1)
        assert model.memory[64:80].view("<u4").tolist() == ones.tolist()
    else:
        assert np.array_equal(model.memory[:64], before[:64])


READ_33, WRITE_567 = frozenset({33}), frozenset({567})
NONE = frozenset[int]()


@pytest.mark.parametrize(
    ("task", "reads", "writes", "stop"),
    [
        (NOT(line(0), line(512)), READ_33, NONE, Stop(Status.READ_ERROR, Port.READ_A, 32)),
        (NOT(rows(0), rows(512)), READ_33, NONE, Stop(Status.READ_ERROR, Port.READ_A, 32)),
        (NOT(rows(0), rows(512)), NONE, WRITE_567, Stop(Status.WRITE_ERROR, Port.WRITE, 560)),
        (NOT(rows(0), rows(512)), READ_33, WRITE_567, Stop(Status.READ_ERROR, Port.READ_A, 32)),
    ],
)
def test_a_command_that_meets_a_failing_byte_writes_nothing(
    task: Task, reads: frozenset[int], writes: frozenset[int], stop: Stop
) -> None:
    model = execute()
    before = model.memory.copy()
    model.fail_reads, model.fail_writes = reads, writes
    assert model.execute(Record(pack(task)).content) == stop
    assert np.array_equal(model.memory, before)
    model.fail_reads = model.fail_writes = NONE
    assert model.execute(Record(pack(task)).content) is None
    assert not np.array_equal(model.memory, before)
