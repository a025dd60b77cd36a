"""The tests' model of a device asserts that commands rely on nothing that the contract leaves open.

Each case plants one violation, in one run and in several.
"""

import numpy as np
import pytest

from bitlane_rtl.abi import RECORD_WORDS, Lane, Mode, Op, Port, Status
from support.models.record import Fault, Interpreter, Record
from support.rtl.records import Task, pack
from support.rtl.walks import Walk

MEMORY = 4096
DENSE, STRIDED, REPEAT, SUM = Mode.DENSE, Mode.STRIDED, Mode.REPEAT, Mode.SUM


def walk(base: int, counts: list[int], steps: list[int], mode: Mode = DENSE, size: int = 1) -> Walk:
    return Walk(base, counts, steps, mode, Lane(size.bit_length() - 1))


def line(base: int, count: int = 64) -> Walk:
    return walk(base, [count], [1])


def rows(base: int, step: int = 16) -> Walk:
    """Return four rows of eight bytes."""
    return walk(base, [8, 4], [1, step])


def execute(*tasks: Task) -> Interpreter:
    """Execute tasks one after the other, from a memory of random bytes."""
    model = Interpreter(memory_bytes=MEMORY)
    model.memory[:] = np.random.default_rng(1).integers(0, 256, MEMORY, np.uint8)
    for task in tasks:
        words = pack(task)
        model.execute(Record(words + [0xEEEEEEEE] * (RECORD_WORDS - len(words))))
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
    "below the memory": (
        "passes the memory downwards",
        [NOT(walk(4, [8], [-1], STRIDED), line(64, 8))],
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


FAR_READ = Task(Op.NOT, rows(MEMORY - 48), None, rows(512), overrides={"A_LAST": MEMORY - 1})
FAR_WRITE = Task(Op.NOT, rows(0), None, rows(MEMORY - 16), overrides={"Y_LAST": MEMORY - 1})


READ_33, WRITE_567 = {"fail_reads": frozenset({33})}, {"fail_writes": frozenset({567})}
READ_FAILED = (Status.READ_ERROR, Port.READ_A, 32)


@pytest.mark.parametrize(
    ("task", "circuit", "fault", "done"),
    [
        (NOT(line(0), line(512)), READ_33, READ_FAILED, 0),
        (NOT(rows(0), rows(512)), READ_33, READ_FAILED, 2),
        (NOT(rows(0), rows(512)), WRITE_567, (Status.WRITE_ERROR, Port.WRITE, 560), 3),
        (FAR_READ, {}, (Status.PAST_MEMORY, Port.READ_A, MEMORY), 3),
        (FAR_WRITE, {}, (Status.PAST_MEMORY, Port.WRITE, MEMORY), 1),
    ],
)
def test_runs_before_a_fault_are_executed(
    task: Task, circuit: dict[str, frozenset[int]], fault: tuple[Status, Port, int], done: int
) -> None:
    before = execute().memory
    model = Interpreter(memory_bytes=MEMORY, **circuit)
    model.memory[:] = before
    words = pack(task)
    with pytest.raises(Fault) as found:
        model.execute(Record(words + [0] * (RECORD_WORDS - len(words))))
    assert (found.value.status, found.value.port, found.value.address) == fault
    written, read = (list(x.bytes())[: 8 * done] for x in (task.y, task.a))
    expected = before.copy()
    expected[written] = ~before[read]
    assert np.array_equal(model.memory, expected)
