"""`bitlane validate` passes on devices that obey the contract, and finds each planted fault."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import bitlane
import bitlane.command_line.validate
from bitlane import reference
from bitlane.driver.driver import Driver
from bitlane.errors import BitlaneError, LinkError
from bitlane.links.link import BytesLike
from bitlane.validate.link import check_bandwidth
from bitlane.validate.report import validate
from bitlane.validate.session import Session
from bitlane_rtl.abi import (
    BIT_OPS,
    COMPLETION_OFFSET,
    CONTROL_BASE,
    LOGIC_OPS,
    MAX_LOOPS,
    RECORD,
    Lane,
    Mode,
    Op,
    Status,
    register,
)
from bitlane_rtl.abi.rows import Rows
from bitlane_rtl.configuration import Search
from support.board.driver import DriverDevice
from support.board.line import ModelPort, Noise, connected
from support.board.model import BoardModel
from support.command_line import CommandLine
from support.host.model_link import Bytes, Fault, ModelLink
from support.record import Record
from support.rtl.records import reseal
from support.seeds import slow

KIB = 1 << 10

CHECKS = 9 + len(BIT_OPS)
"""Number of checks of a device with all operations and no search array; each operation has one."""


@pytest.fixture(autouse=True)
def _unguarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let validation read and write all memory, which it tests, also beside allocations."""
    monkeypatch.setattr(ModelLink, "access", lambda *_: None)


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the check of overlaps, in tests of other checks."""
    monkeypatch.setattr("bitlane.validate.operators._QUICK_ROUNDS", 2)


FEW = frozenset({Op.COPY, Op.NOT, Op.XOR, Op.COUNT})
"""Operations of a device in a test of other checks than those of operations."""


def small(kind: type[ModelLink] = ModelLink, **changes: Any) -> ModelLink:
    return kind(**{"memory_bytes": 16 * KIB} | changes)


def lines_of(link: ModelLink, **options: Any) -> tuple[bool, list[str]]:
    """Return whether the device behind ``link`` passes, and the output."""
    lines: list[str] = []
    session = Session(Driver(link, timeout=0.1), **{"quick": True, "seed": 3} | options)
    passed = validate(session, lines.append)
    assert session.driver.allocator.pieces == 0
    for line in lines:
        assert "\n" not in line
    return passed, lines


def failures(link: ModelLink, **options: Any) -> dict[str, str]:
    """Return the checks that fail, with their messages."""
    passed, lines = lines_of(link, **options)
    found = {line[:16].strip(): line[22:] for line in lines if line[16:20] == "FAIL"}
    assert passed is (not found)
    for name in found:
        assert name in lines[-1] or lines[-1].startswith("Stopped")
    return found


class SlowLink(ModelLink):
    """A device that takes minutes for a megabyte."""

    slow = True


# --- devices that pass ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "memory_bytes", "size"),
    [
        (ModelLink, 16 * KIB, "5,440"),
        (ModelLink, 256 * KIB, "65,536"),
        (SlowLink, 16 * KIB, "1,024"),
    ],
)
def test_a_simulator_is_measured_with_as_many_bytes_as_it_has_time_for(
    kind: type[ModelLink], memory_bytes: int, size: str
) -> None:
    """Three operands share the memory."""
    link = kind(memory_bytes=memory_bytes, busy_cycles=0)
    measured = check_bandwidth(Session(Driver(link), quick=True, seed=3))
    assert measured.startswith(f"XOR of {size} bytes in ")


@pytest.mark.parametrize("quick", [True, False])
def test_a_device_that_obeys_the_contract_passes(quick: bool) -> None:
    passed, lines = lines_of(ModelLink(memory_bytes=64 * KIB), quick=quick)
    assert passed, lines
    steps = [line[:16].strip() for line in lines if line[16:20] == "pass"]
    operations = [op.name for op in sorted(BIT_OPS)]
    assert steps == [
        *["link", "known answers", "memory"],
        *operations,
        "row sums",
        *["DMA", "overlap", "error recovery", "registers", "bandwidth"],
    ]
    assert lines[-1].startswith(f"All {CHECKS} checks passed in ")
    text = "\n".join(lines)
    tested = "16,384" if quick else "65,536"
    for status in Status:
        provoked = Status.OK < status < Status.READ_ERROR
        assert (status.name in text) is provoked or status is Status.OK
    for part in (f"{tested} of 65,536 bytes", "lanes of 8, 16, 32, 64 bits", "64-bit beats"):
        assert part in text
    # None is left out of a device that can do all.
    for number in ("28 answers, 2 of them", "14 bad records refused"):
        assert number in text


@pytest.mark.parametrize("rate", [slow(0), 1 / 500])
def test_a_board_behind_a_serial_link_passes(rate: float) -> None:
    board = BoardModel(DriverDevice(memory_bytes=16 * KIB, slots=4))
    port = ModelPort(board, up=Noise(rate, 1), down=Noise(rate, 2))
    lines: list[str] = []
    assert validate(Session(Driver(connected(port)), quick=True), lines.append), lines


@pytest.mark.parametrize("width", [32, 64, 128])
def test_the_least_memory_suffices_and_less_is_refused(width: int) -> None:
    with bitlane.open(f"numpy?width={width}&memory=512") as device:
        lines: list[str] = []
        assert validate(Session(device.driver, quick=True), lines.append), lines
    with (
        bitlane.open(f"numpy?width={width}&memory={512 - 2 * width}") as device,
        pytest.raises(
            BitlaneError, match=r"no circuit: \d+ bytes of memory; a validation needs 512"
        ),
    ):
        Session(device.driver)


LEAN: list[dict[str, Any]] = [
    {"memory_bytes": 8 * KIB, "data_bytes": 4, "read_ports": 1, "loops": 1, "slots": 2},
    {"memory_bytes": 8 * KIB, "data_bytes": 4, "loops": 2, "memory_base": 0x4040},
    {"ops": frozenset({Op.NOT}), "modes": frozenset({Mode.DENSE}), "lanes": frozenset[Lane]()},
    {"ops": frozenset({Op.COUNT}), "lanes": frozenset({Lane.BITS_64})},
    {"ops": frozenset({Op.SHIFT_LEFT, Op.SHIFT_RIGHT}), "modes": frozenset({Mode.DENSE})},
    {"ops": frozenset({Op.XOR, Op.COUNT}), "lanes": frozenset({Lane.BITS_8, Lane.BITS_32})},
    {"data_bytes": 16, "loops": MAX_LOOPS, "memory_bytes": 16 * KIB},
    {"length_bits": 12, "count_bits": 1, "memory_bytes": 4 * KIB},
]


QUICK = (LEAN[3],)
"""A circuit whose first operation has results of another type."""


@pytest.mark.parametrize(
    "circuit", [each if each in QUICK else slow(each) for each in LEAN], ids=str
)
def test_circuits_of_all_sizes_pass(circuit: dict[str, Any]) -> None:
    for seed in range(3):
        passed, lines = lines_of(small(**circuit), seed=seed, quick=seed > 0)
        assert passed, (seed, lines)


def test_it_may_be_repeated_and_repeats_itself() -> None:
    link = small()
    first, second = ([x for x in lines_of(link)[1] if "bytes/s" not in x] for _ in range(2))
    assert first[2:-1] == second[2:-1]


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize(("size", "tested"), [(4096, 4096), (9, 8), (1 << 30, 16384)])
def test_the_march_covers_as_much_as_is_asked_for(size: int, tested: int) -> None:
    link = small(ops=FEW)
    _, lines = lines_of(link, memory_bytes=size)
    assert any(f"{tested:,} of 16,384 bytes" in line for line in lines)


@pytest.mark.parametrize(("remote", "tested"), [slow(True, 64), (True, 8), (False, 4)])
def test_the_march_covers_a_boards_memory_and_a_part_of_the_hosts_own(
    remote: bool, tested: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bitlane.validate.memory._NEAR_BYTES", 4 * KIB)
    monkeypatch.setattr("bitlane.validate.memory._FAR_BYTES", tested * KIB)
    link = ModelLink(memory_bytes=64 * KIB, ops=FEW)
    link.remote = remote
    _, lines = lines_of(link, quick=False)
    assert any(f"{tested * KIB:,} of 65,536 bytes" in line for line in lines)


# --- devices that fail ------------------------------------------------------------------------


class FlippingLink(ModelLink):
    """A link whose byte at ``WEAK`` has one bit stuck at 1."""

    WEAK = 0x2345

    def write(self, address: int, data: BytesLike) -> None:
        super().write(address, data)
        self.memory[self.WEAK] |= 0x10


class AliasingLink(ModelLink):
    """A link to a memory whose address line 12 is not connected."""

    def read(self, address: int, size: int) -> Bytes:
        return super().read(self._meant(address), size)

    def write(self, address: int, data: BytesLike) -> None:
        super().write(self._meant(address), data)

    @staticmethod
    def _meant(address: int) -> int:
        return address if address >= CONTROL_BASE else address & ~0x1000


class CoupledLink(ModelLink):
    """A link on which 0xFF, written to ``AGGRESSOR``, clears the byte at ``VICTIM``."""

    AGGRESSOR, VICTIM = 0x1000, 0x3000

    def write(self, address: int, data: BytesLike) -> None:
        super().write(address, data)
        hit = address <= self.AGGRESSOR < address + np.frombuffer(data, np.uint8).size
        if hit and self.memory[self.AGGRESSOR] == 0xFF:
            self.memory[self.VICTIM] = 0


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize(
    ("link", "address", "options"),
    [
        (FlippingLink, "0x2345: 0x", {}),
        (AliasingLink, "first at 0x", {}),
        (CoupledLink, "0x3000: 0x00, expected 0xff", {"quick": False}),
    ],
)
def test_memory_that_changes(link: type[ModelLink], address: str, options: dict[str, Any]) -> None:
    found = failures(small(link, ops=FEW), **options)
    assert address in found["memory"]


class TwoLinesLink(ModelLink):
    """A link to a 16-bit memory whose data lines 3 and 12 are stuck at 1 in a block."""

    def write(self, address: int, data: BytesLike) -> None:
        super().write(address, data)
        self.memory[0x2300:0x2380:2] |= 0x08
        self.memory[0x2301:0x2380:2] |= 0x10


@pytest.mark.usefixtures("brief")
def test_memory_with_rows_is_named_by_bank_row_and_bits() -> None:
    rows = Rows(size_log2=12, banks_log2=2, word_bytes_log2=1)
    found = failures(small(TwoLinesLink, rows=rows, data_bytes=8, ops=FEW))
    assert "bits 3, 12 from bank 2, row 2 on" in found["memory"]
    assert "first at 0x23" in found["memory"]
    found = failures(small(TwoLinesLink, ops=FEW))
    assert "bank" not in found["memory"]


def test_a_byte_of_memory_with_rows_is_found() -> None:
    rows = Rows(size_log2=12, banks_log2=2, word_bytes_log2=1)
    assert rows.locate(0, 8) == (0, 0, 0)
    assert rows.locate(0x7F, 8) == (0, 0, 8)
    assert rows.locate(0x80, 8) == (1, 0, 0)
    assert rows.locate(0x1F80, 8) == (3, 1, 0)
    assert rows.locate(0x1F80, 4) == (2, 1, 0)


class WrongLink(ModelLink):
    """A device on which ``wrong`` changes the memory after every command of ``op``."""

    def __init__(self, op: Op, wrong: Callable[[Record, Bytes], None], **changes: Any) -> None:
        super().__init__(**{"memory_bytes": 16 * KIB} | changes)
        self.op, self.wrong = op, wrong

    def execute(self, record: Record) -> None:
        super().execute(record)
        if record.op == self.op:
            self.wrong(record, self.memory)


def spoil(name: str, offset: int = 0, mask: int = 1) -> Callable[[Record, Bytes], None]:
    """Return a function that changes the byte ``offset`` from where a record has ``name``."""

    def wrong(record: Record, memory: Bytes) -> None:
        memory[record.word(name) + offset] ^= mask

    return wrong


def forget_full_counts(record: Record, memory: Bytes) -> None:
    """Replace counts of 64 in bytes by 0, as a counter of six bits does."""
    if record.control["LANE"] == Lane.BITS_64 and record.control["OUT_LANE"] == Lane.BITS_8:
        y = memory[record.word("Y_BASE") : record.word("Y_LAST") + 1]
        y[y == 64] = 0


@pytest.mark.parametrize(
    "op", [op if op in (Op.XOR, Op.COUNT) else slow(op) for op in sorted(BIT_OPS)]
)
def test_a_wrong_operation_fails_alone(op: Op) -> None:
    found = failures(WrongLink(op, spoil("Y_BASE")))
    # Others may lean on it: DMA and error recovery take the first that the circuit has.
    assert {op.name, "known answers", "overlap"} <= set(found)
    others = {"row sums"} if op.counts else {"DMA", "error recovery"}
    assert set(found) <= {op.name, "known answers", "overlap"} | others
    assert f"output of {op.name} of " in found[op.name]


@pytest.mark.parametrize(
    ("op", "name"), [(Op.COUNT, "cardinality"), (Op.COUNT_XOR, "hamming"), (Op.COUNT_OR, "jaccard")]
)
def test_wrong_sums_fail_alone(op: Op, name: str) -> None:
    def spoil_sum(record: Record, memory: Bytes) -> None:
        if record.control["Y_MODE"] == Mode.SUM:
            spoil("Y_BASE")(record, memory)

    found = failures(WrongLink(op, spoil_sum))
    assert set(found) == {"row sums"}
    assert f"{name} of 5 rows of 1 bytes: [" in found["row sums"]


ARRAY = Search(units=3, row_bits=64, queries=4, nearest=2)


def test_a_device_with_a_search_array_passes() -> None:
    passed, lines = lines_of(small(ModelLink, search=ARRAY))
    assert passed, lines
    (line,) = [line for line in lines if line.startswith("SEARCH")]
    assert line.endswith("pass  the 2 nearest to each of 4 queries in 10 rows of 64 bits")


def test_a_wrong_search_fails_alone() -> None:
    found = failures(WrongLink(Op.SEARCH, spoil("Y_BASE", 4), search=ARRAY))
    assert set(found) == {"SEARCH"}
    assert found["SEARCH"].startswith("rows nearest to query 0: [")


@pytest.mark.parametrize("wrong", [spoil("Y_LAST", 1, 0x80), spoil("Y_BASE", -1)])
def test_a_byte_beside_the_tensor(wrong: Callable[[Record, Bytes], None]) -> None:
    found = failures(WrongLink(Op.COPY, wrong))
    assert "beside the output of COPY" in found["DMA"]
    assert "beside the output of COPY" in found["COPY"]


def test_a_count_that_noise_never_shows() -> None:
    found = failures(WrongLink(Op.COUNT, forget_full_counts))
    assert "gave [0, 1, 4]; expected [64, 1, 4]" in found["known answers"]
    assert "COUNT" in found


@pytest.mark.parametrize("op", [Op.SHIFT_RIGHT, Op.XNOR, Op.COUNT])
def test_a_model_that_disagrees_is_noticed(op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    compute = reference.compute

    def wrong(of: Op, *operands: Any, **options: Any) -> Any:
        result = compute(of, *operands, **options)
        return result + result.dtype.type(1) if of is op else result

    monkeypatch.setattr(reference, "compute", wrong)
    assert set(failures(small())) == {op.name, "overlap"}


class LaxLink(ModelLink):
    """A device that refuses with ``code`` in place of ``status``; None: does not refuse."""

    def __init__(self, status: Status, code: Status | None) -> None:
        super().__init__(memory_bytes=16 * KIB, ops=FEW)
        self.status, self.code = status, code

    def execute(self, record: Record) -> None:
        try:
            super().execute(record)
        except Fault as fault:
            if fault.status is not self.status:
                raise
            if self.code is not None:
                raise Fault(self.code) from fault


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize(
    ("status", "code"),
    [
        *((x, None) for x in Status if 0 < x < Status.READ_ERROR),
        (Status.BAD_SEAL, Status.TIMEOUT),
        *(slow(x, Status.TIMEOUT) for x in Status if Status.BAD_SEAL < x < Status.READ_ERROR),
    ],
)
def test_bad_records_that_are_not_refused_right(status: Status, code: Status | None) -> None:
    found = failures(LaxLink(status, code))
    assert {"error recovery"} <= set(found) <= {"error recovery", "registers"}
    text = found["error recovery"]
    assert f"expected {status.name}" in text or f"command 1 and {status.name}" in text
    assert "was executed" in text or "refused with TIMEOUT" in text


class LaxLoops(ModelLink):
    """A device that executes a loop of no iteration."""

    def execute(self, record: Record) -> None:
        try:
            super().execute(record)
        except Fault as fault:
            if fault.status is not Status.BAD_SIZE or record.word("RUN") == 0:
                raise


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("loops", [2, 3])
def test_a_loop_of_no_iteration_has_to_be_refused(loops: int) -> None:
    text = failures(small(LaxLoops, loops=loops, ops=FEW))["error recovery"]
    assert "a loop of no iteration: the record was executed" in text


class Eager(ModelLink):
    """A device that also executes a part of the command behind a refused one."""

    def execute(self, record: Record) -> None:
        try:
            super().execute(record)
        except Fault:
            self.memory[(record.word("Y_BASE") + 64) % self.memory.size] ^= 1
            raise


class Sticky(ModelLink):
    """A device that repeats the previous command's logic if no FENCE is in between."""

    before = Op.COUNT

    def execute(self, record: Record) -> None:
        before, self.before = self.before, Op(record.op) if record.op in self.ops else Op.COUNT
        repeats = not record.control["FENCE"] and {before, self.before} <= LOGIC_OPS
        if repeats and before.reads_b is self.before.reads_b:
            words = [record.words[0] ^ record.op ^ before, *record.words[1:]]
            record = Record(reseal(words, record.used))
        super().execute(record)


class ForgetfulLink(ModelLink):
    """A device with a register that loses a bit."""

    def write(self, address: int, data: BytesLike) -> None:
        if address == CONTROL_BASE + register("TIMEOUT").offset:
            data = np.frombuffer(data, "<u4") & np.uint32(0x7FFF_FFFF)
        super().write(address, data)


class LossyLink(ModelLink):
    """A link whose long reads end with zeros, as if the last frame were lost."""

    def read(self, address: int, size: int) -> Bytes:
        data = super().read(address, size)
        if size > 6000:
            data[-100:] = 0
        return data


@pytest.mark.parametrize(
    ("link", "name", "message"),
    [
        (Eager, "error recovery", ""),
        (Sticky, "overlap", ""),
        (ForgetfulLink, "link", "TIMEOUT is 0x7fffffff; 0xffffffff was written"),
        (LossyLink, "bandwidth", "100 of 8192 bytes are wrong as they came back"),
    ],
)
def test_one_check_alone_fails(link: type[ModelLink], name: str, message: str) -> None:
    found = failures(small(link))
    assert set(found) == {name}
    assert message in found[name]


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize(
    ("offset", "mask"),
    [
        (register("FAULT").offset, 0xFFFF_FCFF),
        (register("FAULT_ADDRESS").offset, 0),
        (register("INTERRUPT").offset, 1),
        (COMPLETION_OFFSET, 0xFF),
    ],
)
def test_registers_that_tell_less_than_they_should(offset: int, mask: int) -> None:
    class Reticent(ModelLink):
        def read(self, address: int, size: int) -> Bytes:
            data = super().read(address, size)
            if address >= CONTROL_BASE:
                at = address - CONTROL_BASE + np.arange(0, size, 4)
                data.view("<u4")[np.minimum(at, COMPLETION_OFFSET) == offset] &= mask
            return data

    assert set(failures(small(Reticent, ops=FEW))) == {"registers"}


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("name", ["RUN", "COUNT_1", "COUNT_3", "RESERVED", "A_BASE", "B_LAST"])
def test_a_bit_of_a_record_that_is_overlooked(name: str) -> None:
    class Blind(ModelLink):
        """A device that reads bit 30 of a word as 0."""

        def execute(self, record: Record) -> None:
            words = list(record.words)
            if record.uses(name) and record.word(name) >> 30 & 1:
                words[RECORD[name].word] ^= 1 << 30
                words[0] ^= 1 << 30  # The seal fits again.
            super().execute(Record(words))

    assert set(failures(small(Blind, ops=FEW))) == {"registers"}


# --- devices that stop ------------------------------------------------------------------------


class MortalLink(ModelLink):
    """A link that answers ``life`` calls and then fails."""

    life: int = 1 << 30

    def exchange(
        self, writes: Sequence[tuple[int, BytesLike]], reads: Sequence[tuple[int, int]]
    ) -> list[Bytes]:
        self._live()
        return super().exchange(writes, reads)

    def read(self, address: int, size: int) -> Bytes:
        self._live()
        return super().read(address, size)

    def _live(self) -> None:
        self.life -= 1
        if self.life < 0:
            raise LinkError("serial:/dev/x: no answer for 10 s; check cable and power")


@pytest.mark.parametrize("life", [1, 40, 60, 150, 300, 500])
def test_a_device_that_stops_answering_ends_it(life: int) -> None:
    link = small(MortalLink)
    session = Session(Driver(link), quick=True)
    link.life = life
    lines: list[str] = []
    assert not validate(session, lines.append)
    (failed,) = [line for line in lines if line[16:20] == "FAIL"]
    assert "no answer for 10 s" in failed
    assert lines[-1].startswith("Stopped: the device does not answer any more; ")
    run = sum(line[16:20] in ("pass", "FAIL") for line in lines)
    assert f"; {CHECKS - run} check" in lines[-1]


class HangingLink(ModelLink):
    """A device that never finishes an operation."""

    def __init__(self, op: Op, **changes: Any) -> None:
        super().__init__(memory_bytes=16 * KIB, **changes)
        self.op = op

    def hangs(self, record: Record) -> bool:
        return record.op == self.op


def test_an_operation_that_hangs_fails_and_the_next_ones_are_tried() -> None:
    found = failures(HangingLink(Op.XOR))
    assert set(found) == {"known answers", "XOR", "overlap"}
    assert "has not retired within 0.1 s" in found["XOR"]


def test_a_device_that_does_not_recover_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bitlane.driver.queue._CLEAR_SECONDS", 0.05)
    passed, lines = lines_of(HangingLink(Op.NOT, deaf=True))
    assert not passed
    assert "CLEAR has had no effect" in "".join(lines)
    stopped = f"Stopped: the device does not answer any more; {CHECKS - 2} checks not run"
    assert lines[-1].startswith(stopped)


# --- the command ------------------------------------------------------------------------------


@pytest.fixture
def urls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    opened: list[str] = []

    def opener(url: str) -> ModelLink:
        opened.append(url)
        return small(FlippingLink if "bad" in url else ModelLink)

    monkeypatch.setattr(bitlane.command_line.validate, "open_link", opener)
    return opened


def test_exit_codes_and_lines(urls: list[str], run: CommandLine) -> None:
    code, text, error = run("validate", "model:1", "--quick", "--seed", "9")
    assert (code, error) == (0, "")
    lines = text.splitlines()
    assert lines[0] == "Validating 'model of the contract', seed 9"
    assert lines[-1].startswith(f"All {CHECKS} checks passed")
    code, text, _ = run("validate", "model:bad", "--quick", "--memory", "8KiB")
    assert code == 1
    last = text.splitlines()[-1]
    assert last.startswith("FAILED: ")
    assert f" of {CHECKS} checks in " in last
    assert urls == ["model:1", "model:bad"]


@pytest.mark.usefixtures("urls")
def test_progress_is_shown_on_a_terminal(run: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    code, out, errors = run("validate", "model:0", "--quick")
    assert code == 0
    shown: dict[str, list[int]] = {}
    for name, percent in re.findall(r"([a-zA-Z_][\w ]*?) +(\d+) %", errors.replace("\033[K", "")):
        shown.setdefault(name, []).append(int(percent))
    checks = re.findall(r"^(\S.*?) +pass ", out, flags=re.M)
    assert list(shown) == [name for name in checks if name not in ("link", "known answers")]
    assert all(percents == sorted(percents) for percents in shown.values())
    assert {name for name, percents in shown.items() if percents[-1] < 100} == {"bandwidth"}
    assert errors.endswith("\r\033[K")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none:", "--memory", "4"), "'4' is not a size; expected 8 bytes or more"),
        (("none:", "--memory", "many"), "'many' is not a size"),
        (("none:", "--seed", "x"), "'x': expected a whole number"),
        (("none:", "--seed", "-1"), "--seed: -1; expected 0 or more"),
        (("none:x",), "no link has the scheme 'none'"),
    ],
)
def test_bad_options_and_devices(
    arguments: tuple[str, ...], message: str, run: CommandLine
) -> None:
    assert message in run.refuse("validate", *arguments)
