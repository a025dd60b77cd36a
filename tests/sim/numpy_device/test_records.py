"""Records and walks on the device `numpy`, against Python's integers and the campaigns' model."""

import random
from collections import Counter
from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bitlane_rtl.abi import MAX_LOOPS, RECORD_BYTES, Lane, Mode, Op, Port, Status
from bitlane_rtl.configuration import Configuration, Search
from bitlane_sim.campaigns import CircuitOptions, RecordPlan, Stage, execute, noise
from bitlane_sim.circuit_options import configuration_of
from bitlane_sim.numpy_device import AddressWalk, Interpreter, Stop, nearest
from bitlane_sim.numpy_device.interpreter import _BLOCK
from support import oracle
from support.commands import RandomCommands
from support.record import Record
from support.rtl.records import Task, apply, pack, reseal
from support.rtl.walks import Walk
from support.seeds import seeds, slow
from support.sim.beside import raw_record
from support.watched import expect_order, places_of, walk_of

pytestmark = pytest.mark.any_face

BASE, SIZE = 0x4000, 1024

CONFIGURATIONS = {
    width: Configuration(data_width=width, memory_base=BASE, memory_bytes=4 * SIZE, loops=MAX_LOOPS)
    for width in (32, 64, 128)
}


def expect_task(interpreter: Interpreter, task: Task, chance: random.Random, by: str = "") -> None:
    """Execute ``task`` on the memory as it is, and expect the bytes of `apply`."""
    first = interpreter.configuration.memory_base
    want = np.concatenate([np.zeros(first, np.uint8), interpreter.memory])
    apply(task, want)
    assert interpreter.execute(padded(pack(task), chance)) is None, f"{by}: {task}"
    assert np.array_equal(interpreter.memory, want[first:]), f"{by}: {task}"


def padded(words: list[int], chance: random.Random) -> bytes:
    """Return a slot with ``words``, and rubbish in the words that are not in use."""
    words = [*words, *(chance.getrandbits(32) for _ in range(RECORD_BYTES // 4 - len(words)))]
    return np.array(words, "<u4").tobytes()


@pytest.mark.parametrize("width", CONFIGURATIONS)
@pytest.mark.parametrize("seed", seeds(3, 200))
def test_commands_do_what_python_computes_element_by_element(width: int, seed: int) -> None:
    chance = random.Random(seed)
    configuration = CONFIGURATIONS[width]
    interpreter = Interpreter(configuration)
    interpreter.memory[:] = np.random.default_rng(seed).integers(0, 256, 4 * SIZE, np.uint8)
    draws = RandomCommands(configuration=configuration, size=SIZE, a=BASE, b=BASE + SIZE, long=0.2)
    for number in range(40):
        task = draws.draw(chance, BASE + chance.choice([2, 3]) * SIZE)
        expect_task(interpreter, task, chance, f"seed {seed}, {number}")


def is_defined(task: Task) -> bool:
    """Return whether no byte is written twice, or read after a step that writes it."""
    record = Record(pack(task))
    try:
        expect_order(record, {name: places_of(walk_of(record, name)) for name in record.streams})
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("seed", seeds(2, 60))
def test_streams_that_overlap_as_the_contract_allows(seed: int) -> None:
    """A step may read what it or a later one writes: no byte may be written too early."""
    chance = random.Random(seed)
    configuration = Configuration(memory_bytes=SIZE)
    draws = RandomCommands(configuration=configuration, size=96, runs=(8, 20), counts=(1, 2))
    interpreter, ops = Interpreter(configuration), Counter[Op]()
    while ops.total() < 60:
        task = draws.draw(chance, 0)
        if not is_defined(task):
            continue
        interpreter.memory[:] = np.random.default_rng(ops.total()).integers(0, 256, SIZE, np.uint8)
        expect_task(interpreter, task, chance, f"seed {seed}")
        ops[task.op] += 1


@pytest.mark.parametrize(("stride", "out_stride"), [(2, 1), (3, 2), (-2, -1), (-3, -2)])
@pytest.mark.parametrize("lane", Lane)
def test_a_copy_within_one_run_reads_before_it_writes(
    stride: int, out_stride: int, lane: Lane
) -> None:
    count, size, first = 20, lane.bytes, BASE + 2 * SIZE
    y = first + (size if stride > 0 else -size)
    task = Task(
        Op.COPY,
        Walk(first, [count], [stride * size], Mode.STRIDED, lane),
        None,
        Walk(y, [count], [out_stride * size], Mode.STRIDED, lane),
    )
    assert is_defined(task)
    interpreter = Interpreter(CONFIGURATIONS[64])
    interpreter.memory[:] = np.random.default_rng(1).integers(0, 256, 4 * SIZE, np.uint8)
    expect_task(interpreter, task, random.Random(1))


@pytest.mark.parametrize("lane", Lane)
@pytest.mark.parametrize(
    ("op", "saturate", "arithmetic"),
    [
        *((Op.SHIFT_LEFT, saturate, False) for saturate in (False, True)),
        *((Op.SHIFT_RIGHT, *flags) for flags in product((False, True), repeat=2)),
    ],
)
def test_shifts_by_counts_around_the_width(
    op: Op, saturate: bool, arithmetic: bool, lane: Lane
) -> None:
    """A positive and a negative value, each shifted by each count."""
    bits = lane.bits
    counts = [0, 1, bits - 1, bits, bits + 1, 2 * bits, (1 << bits) - 1]
    values = [0x5A5A5A5A5A5A5A5A, 0xA5A5A5A5A5A5A5A5]
    pairs = [(value % (1 << bits), count) for value in values for count in counts]
    interpreter = Interpreter(CONFIGURATIONS[64])
    walks = []
    for stream in range(3):
        start = stream * SIZE
        walks.append(Walk(BASE + start, [len(pairs)], [lane.bytes], Mode.DENSE, lane))
        for place, pair in enumerate(pairs):
            if stream < 2:
                at = start + place * lane.bytes
                element = np.frombuffer(pair[stream].to_bytes(lane.bytes, "little"), np.uint8)
                interpreter.memory[at : at + lane.bytes] = element
    task = Task(op, *walks, saturate=saturate, arithmetic=arithmetic)
    expect_task(interpreter, task, random.Random(1))


SEARCHING = Configuration(
    memory_bytes=1 << 14, search=Search(units=4, row_bits=64, queries=16, nearest=4)
)


def search_record(a: int, a_last: int) -> bytes:
    fields = {"OP": Op.SEARCH, "LANE": Lane.BITS_8, "OUT_LANE": Lane.BITS_32, "LOOPS": 1}
    places = {"B_LAST": 7, "Y_BASE": 256, "Y_LAST": 256 + 4 * 8 - 1}
    words = raw_record(fields, RUN=512, A_BASE=a, A_LAST=a_last, **places)
    return padded(reseal(words, 8), random.Random(1))


@pytest.mark.parametrize(("short", "a_last"), [(256, 0x3FFF), (256, 5), (252, 0x3FFF), (1, 0x3FFF)])
def test_rows_that_pass_the_end_of_the_memory_stop_a_search(short: int, a_last: int) -> None:
    interpreter = Interpreter(SEARCHING)
    record = search_record(0x4000 - short, a_last)
    assert interpreter.execute(record) == Stop(Status.PAST_MEMORY, Port.READ_A, 0x4000)
    assert not interpreter.memory.any()
    assert interpreter.execute(search_record(0x4000 - 512, a_last)) is None
    assert interpreter.memory[256 : 256 + 32].any()


@pytest.mark.parametrize("op", [Op.XOR, Op.XNOR, Op.COUNT_XOR])
def test_more_elements_than_are_computed_at_a_time(op: Op) -> None:
    """Three loops of dense runs, a row of B for each; the last part is smaller than the others."""
    shape = (7, 61, 400)
    circuit = Configuration(memory_bytes=1 << 20)
    interpreter = Interpreter(circuit)
    size = prod(shape)
    interpreter.memory[:] = np.random.default_rng(1).integers(0, 256, 1 << 20, np.uint8)
    a = interpreter.memory[:size].reshape(shape).copy()
    b = interpreter.memory[1 << 18 :][: 7 * 400].reshape(7, 1, 400).copy()
    beyond = interpreter.memory[(1 << 19) + size :].copy()
    counts = [400, 61, 7]
    task = Task(
        op,
        Walk(0, counts, [1, 400, 61 * 400], Mode.DENSE, Lane.BITS_8),
        Walk(1 << 18, counts, [1, 0, 400], Mode.DENSE, Lane.BITS_8),
        Walk(1 << 19, counts, [1, 400, 61 * 400], Mode.DENSE, Lane.BITS_8),
    )
    assert size > 2 * _BLOCK
    assert interpreter.execute(padded(pack(task), random.Random(1))) is None
    want = {Op.XOR: a ^ b, Op.XNOR: ~(a ^ b), Op.COUNT_XOR: np.bitwise_count(a ^ b)}[op]
    found = interpreter.memory[1 << 19 :][:size].reshape(shape)
    assert np.array_equal(found, want)
    assert np.array_equal(interpreter.memory[(1 << 19) + size :], beyond)


@pytest.mark.slow
@pytest.mark.parametrize("bits", ["width=64", "width=32&loops=2", "width=128"])
def test_lying_records_end_as_the_model_of_campaigns_says(bits: str) -> None:
    configuration = configuration_of(f"sim?{bits}&memory=4KiB")
    plan = RecordPlan(Stage(CircuitOptions("", configuration, 4096)), None)
    chance = np.random.default_rng(2)
    few = np.concatenate([plan.numbers()[:40], chance.integers(0, plan.instances, 2500)])
    records = plan.portion(few).work.records[:, 0]
    before = noise(1, np.arange(1), 4096)[0]
    whole = np.broadcast_to(before, (len(records), 4096)).copy()
    found = execute(whole, records[:, None], np.ones(len(records), np.int64), configuration, 20000)
    interpreter, kinds = Interpreter(configuration), Counter[str]()
    for place, record in enumerate(records):
        if found.elements[place] >= 20000:
            continue
        replay = f"record {place}: {[hex(x) for x in record.tolist()]}"
        interpreter.memory[:] = before
        stop = interpreter.execute(record.astype("<u4").tobytes()) or Stop(Status.OK)
        kinds[f"{stop.status.name} {stop.port.name}"] += 1
        assert found.status[place] == stop.status, replay
        if stop.status is Status.OK:
            sure = ~(found.optional[place] | found.loose[place])
            assert np.array_equal(found.memory[place][sure], interpreter.memory[sure]), replay
        else:
            assert np.array_equal(interpreter.memory, before), replay
    assert kinds["OK NONE"] > 30, kinds
    assert kinds["PAST_MEMORY WRITE"] + kinds["PAST_MEMORY READ_A"] > 3, kinds


@pytest.mark.parametrize("row_bytes", [8, 32, slow(128)])
@pytest.mark.parametrize("rows", [1, 3, 200])
def test_the_nearest_rows_are_those_of_a_sort_of_all(row_bytes: int, rows: int) -> None:
    chance = np.random.default_rng(rows)
    # Few different values, so that many rows are equally near.
    database = chance.integers(0, 2, (rows, row_bytes), np.uint8)
    database[rows // 2] = 255
    others = chance.integers(0, 2, (3, row_bytes), np.uint8)
    queries = np.concatenate([database[-1:], 255 - database[:2], others])
    found = nearest(database, queries, 8)
    assert np.array_equal(found, oracle.nearest(database, queries, 8))


# --- the addresses of a stream --------------------------------------------------------------------


FIRST, END = 1000, 1400

walks = st.builds(
    AddressWalk,
    st.integers(FIRST, END - 1),
    st.shared(st.integers(1, 4), key="loops").flatmap(
        lambda loops: st.tuples(*[st.integers(1, 5)] * loops)
    ),
    st.shared(st.integers(1, 4), key="loops").flatmap(
        lambda loops: st.tuples(*[st.integers(-90, 90)] * loops)
    ),
    st.integers(1, 9),
)


def addresses(walk: AddressWalk) -> list[int]:
    """Return where each iteration of the innermost loop starts, in order."""
    return [
        walk.base + sum(x * step for x, step in zip(numbers, walk.steps, strict=True))
        for numbers in product(*map(range, walk.counts))
    ]


@given(walks)
def test_bounds_hold_all_addresses_and_no_other(walk: AddressWalk) -> None:
    every = addresses(walk)
    low, high = walk.bounds()
    assert (walk.base + low, walk.base + high) == (min(every), max(every) + walk.size)


@given(walks)
@example(AddressWalk(FIRST, (3, 2), (-1, 50), 4))
def test_the_first_exit_is_that_of_all_addresses_in_order(walk: AddressWalk) -> None:
    outside = [
        (number, address)
        for number, address in enumerate(addresses(walk))
        if address < FIRST or address + walk.size > END
    ]
    assert walk.leaves(FIRST, END) == (outside[0] if outside else None)


@given(walks)
def test_a_view_has_the_elements_at_all_addresses(walk: AddressWalk) -> None:
    memory = np.arange(1 << 16, dtype="<u2").view(np.uint8)
    walk = AddressWalk(walk.base + 9000, walk.counts, walk.steps, 2)
    found = walk.view(memory, 5000, np.dtype("<u2"))
    want = [int(memory[x - 5000]) | int(memory[x - 4999]) << 8 for x in addresses(walk)]
    assert found.shape == walk.counts
    assert found.reshape(-1).tolist() == want


@given(walks, st.lists(st.tuples(st.integers(1, 4), st.integers(-300, 300)), max_size=3))
def test_a_jump_begins_where_the_loops_inside_end(
    walk: AddressWalk, loops: Sequence[tuple[int, int]]
) -> None:
    """The sum of the register page: JUMP_k is added to the last address that was generated."""
    run = walk.counts[-1], walk.steps[-1]
    found = addresses(AddressWalk.of(walk.base, run, loops, walk.size))
    address, want = walk.base, []
    for number in range(len(found)):
        if number:
            rest, jump = divmod(number, run[0])[0], run[1]
            if number % run[0] == 0:
                for count, each in loops:
                    jump = each
                    if rest % count:
                        break
                    rest //= count
            address += jump
        want.append(address)
    assert found == want
