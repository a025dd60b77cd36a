"""`bitlane validate` passes on devices that obey the contract, and finds each planted fault."""

import re
from collections.abc import Callable, Container, Sequence
from typing import Any

import pytest

import bitlane
import bitlane.command_line.validate
from bitlane import reference
from bitlane.driver import Driver
from bitlane.errors import BitlaneError, LinkError
from bitlane.links import BytesLike
from bitlane.validate import Session, check_bandwidth, report, validate
from bitlane_rtl.abi import (
    BIT_OPS,
    COMPLETION_OFFSET,
    MAX_LOOPS,
    Lane,
    Mode,
    Op,
    Rows,
    Status,
    register,
)
from bitlane_rtl.configuration import Search
from support.board.line import DriverDevice, ModelPort, Noise, connected
from support.board.model import BoardModel
from support.command_line import CommandLine
from support.host import faulty_link as faults
from support.host.faulty_link import FEW, FaultyLink, blind, reticent, spoil, sticky
from support.host.model_link import Bytes, Fault, ModelLink
from support.record import Record
from support.seeds import seeds, slow

KIB = 1 << 10

CHECKS, FEW_CHECKS = 9 + len(BIT_OPS), 9 + len(FEW)
"""Checks of a device without a search array, one of them for each of all or few operations."""


@pytest.fixture(autouse=True)
def _unguarded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let validation read and write all memory, which it tests, also beside allocations."""
    monkeypatch.setattr(ModelLink, "access", lambda *_: None)


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the check of overlaps, in tests of other checks."""
    monkeypatch.setattr("bitlane.validate.operators.QUICK_ROUNDS", 2)


def leave_only(names: Container[str], patch: pytest.MonkeyPatch) -> None:
    """Let validations make the checks with these names alone."""
    every = report.steps_of
    patch.setattr(report, "steps_of", lambda at: [x for x in every(at) if x.name in names])


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


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("rate", [slow(0), 1 / 500])
def test_a_board_behind_a_serial_link_passes(rate: float) -> None:
    board = BoardModel(DriverDevice(memory_bytes=4 * KIB, slots=4, ops=FEW))
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
    {"ops": frozenset({Op.SHIFT_LEFT, Op.SHIFT_RIGHT}), "modes": frozenset({Mode.DENSE})},
    {"ops": frozenset({Op.XOR, Op.COUNT}), "lanes": frozenset({Lane.BITS_8, Lane.BITS_32})},
    {"data_bytes": 16, "loops": MAX_LOOPS, "memory_bytes": 16 * KIB},
    {"length_bits": 12, "count_bits": 1, "memory_bytes": 4 * KIB},
]
OTHER_RESULTS = {"ops": frozenset({Op.COUNT}), "lanes": frozenset({Lane.BITS_64})}
"""A circuit whose first operation has results of another type."""


@pytest.mark.parametrize("circuit", [OTHER_RESULTS, *map(slow, LEAN)], ids=str)
def test_circuits_of_all_sizes_pass(circuit: dict[str, Any]) -> None:
    for seed in seeds(1, 3):
        passed, lines = lines_of(small(**circuit), seed=seed, quick=seed != 1)
        assert passed, (seed, lines)


@pytest.mark.usefixtures("brief")
def test_it_may_be_repeated_and_repeats_itself() -> None:
    link = small(ops=FEW)
    first, second = ([x for x in lines_of(link)[1] if "bytes/s" not in x] for _ in range(2))
    assert first[2:-1] == second[2:-1]


@pytest.mark.parametrize(
    ("options", "remote", "tested"),
    [
        *(({"memory_bytes": size}, False, size // 4 * 4) for size in (9, 4 * KIB, 64 * KIB)),
        ({"memory_bytes": 1 << 30}, False, 64 * KIB),
        ({"quick": False}, False, 4 * KIB),
        ({"quick": False}, True, 8 * KIB),
    ],
)
def test_the_march_covers_the_requested_memory_or_a_boards_or_a_part_of_the_hosts(
    options: dict[str, Any], remote: bool, tested: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_only({"memory"}, monkeypatch)
    monkeypatch.setattr("bitlane.validate.memory.NEAR_BYTES", 4 * KIB)
    monkeypatch.setattr("bitlane.validate.memory.FAR_BYTES", 8 * KIB)
    link = ModelLink(memory_bytes=64 * KIB)
    link.remote = remote
    _, lines = lines_of(link, **options)
    assert lines[0].startswith(f"memory          pass  {tested:,} of 65,536 bytes; ")


# --- devices that fail ------------------------------------------------------------------------


def lax(status: Status, code: Status | None, others: set[str]) -> tuple[Any, ...]:
    """Return a row: a device that refuses with ``code`` for ``status``; None: not at all."""

    def instead(record: Record, fault: Fault, memory: Bytes) -> Fault | None:
        return fault if fault.status is not status else code and Fault(code)

    wanted = f"(?=.*(expected|command 1 and) {status.name})"
    how = "(?=.*(was executed|refused with TIMEOUT))"
    return {"lax": instead}, {RECOVERY: wanted + how}, others


plain: Callable[..., Any] = pytest.param
ANY, ALONE = {"any others"}, set[str]()
RECOVERY, KNOWN = "error recovery", "known answers"
ARRAY = Search(units=3, row_bits=64, queries=4, nearest=2)
LINES: dict[str, Any] = {"written": faults.two_lines}
BANKS = Rows(size_log2=12, banks_log2=2, word_bytes_log2=1)
REFUSED = [x for x in Status if 0 < x < Status.READ_ERROR]


@pytest.mark.parametrize(
    ("planted", "fails", "others"),
    [
        ({"written": faults.stuck}, {"memory": "0x2345: 0x"}, ANY),
        ({"meant": faults.without_line_12}, {"memory": "first at 0x"}, ANY),
        ({"written": faults.coupled}, {"memory": "0x3000: 0x00, expected 0xff"}, ANY),
        # Bits are named by bank and row if the memory has any.
        (
            LINES | {"rows": BANKS, "data_bytes": 8},
            {"memory": "(?=.*bits 3, 12 from bank 2, row 2 on).*first at 0x23"},
            ANY,
        ),
        (LINES, {"memory": "^((?!bank).)*$"}, ANY),
        *(
            (plain if op in (Op.XOR, Op.COUNT) else slow)(
                spoil(op), {op.name: f"output of {op.name} of ", KNOWN: "", "overlap": ""},
                # DMA and error recovery take the first operation that the circuit has.
                {"row sums"} if op.counts else {"DMA", RECOVERY},
            )
            for op in sorted(BIT_OPS)
        ),
        *(
            (spoil(op, sums=True), {"row sums": rf"{name} of 5 rows of 1 bytes: \["}, ALONE)
            for op, name in (
                (Op.COUNT, "cardinality"), (Op.COUNT_XOR, "hamming"), (Op.COUNT_OR, "jaccard")
            )
        ),
        (
            spoil(Op.SEARCH, offset=4) | {"search": ARRAY},
            {"SEARCH": r"^rows nearest to query 0: \["},
            ALONE,
        ),
        *(
            (spoil(Op.COPY, *place), dict.fromkeys(("DMA", "COPY"), "beside the output of C"), ANY)
            for place in (("Y_LAST", 1, 0x80), ("Y_BASE", -1))
        ),
        # Noise never shows a count of all bits.
        (
            {"after": faults.forget_full_counts},
            {KNOWN: r"gave \[0, 1, 4\]; expected \[64, 1, 4\]", "COUNT": ""},
            ANY,
        ),
        *(lax(status, None, ANY) for status in REFUSED),
        lax(Status.BAD_SEAL, Status.TIMEOUT, {"registers"}),
        *(slow(*lax(each, Status.TIMEOUT, {"registers"})) for each in REFUSED[1:]),
        *(
            ({"lax": faults.no_iteration, "loops": each}, {RECOVERY: "of no iteration: the r"}, ANY)
            for each in (2, 3)
        ),
        ({"lax": faults.eager}, {RECOVERY: ""}, ALONE),
        (sticky(), {"overlap": ""}, ALONE),
        ({"sent": faults.forgetful}, {"link": "TIMEOUT is 0x7fffffff; 0xffffffff was"}, ALONE),
        ({"got": faults.lossy}, {"bandwidth": "100 of 8192 bytes are wrong as they came"}, ALONE),
        (reticent(register("FAULT").offset, 0xFFFF_FCFF), {"registers": ""}, ALONE),
        (reticent(register("FAULT_ADDRESS").offset, 0), {"registers": ""}, ANY),
        (reticent(register("INTERRUPT").offset, 1), {"registers": ""}, ANY),
        (reticent(COMPLETION_OFFSET, 0xFF), {"registers": ""}, ANY),
        *(
            (blind(name), {"registers": ""}, ALONE if name == "RUN" else ANY)
            for name in ("RUN", "COUNT_1", "COUNT_3", "RESERVED", "A_BASE", "B_LAST")
        ),
        (
            {"hung": Op.XOR, "ops": {*FEW, Op.AND}},
            {"XOR": "has not retired within 0.1 s", KNOWN: "", "overlap": ""},
            ALONE,
        ),
    ],
    ids=lambda names: " ".join(sorted(names)),
)  # fmt: skip
def test_a_planted_fault_is_found(
    planted: dict[str, Any], fails: dict[str, str], others: set[str], request: Any, monkeypatch: Any
) -> None:
    """Each check of ``fails`` fails with its words, and no others than ``others``.

    ``ANY`` others are left out: they need not find the fault.
    """
    if others is ANY:
        leave_only(fails.keys(), monkeypatch)
    if "overlap" not in fails:
        request.getfixturevalue("brief")
    found = failures(
        FaultyLink(**{"ops": FEW} | planted), quick=planted.get("written") is not faults.coupled
    )
    assert fails.keys() <= found.keys()
    assert found.keys() <= fails.keys() | others
    for name, words in fails.items():
        assert re.search(words, found[name]), found[name]


def test_a_byte_of_memory_with_rows_is_found() -> None:
    places = {0: (0, 0, 0), 0x7F: (0, 0, 8), 0x80: (1, 0, 0), 0x1F80: (3, 1, 0)}
    assert {address: BANKS.locate(address, 8) for address in places} == places
    assert BANKS.locate(0x1F80, 4) == (2, 1, 0)


@pytest.mark.usefixtures("brief")
def test_a_device_with_a_search_array_passes() -> None:
    passed, lines = lines_of(small(search=ARRAY, ops=FEW))
    assert passed, lines
    (line,) = [line for line in lines if line.startswith("SEARCH")]
    assert line.endswith("pass  the 2 nearest to each of 4 queries in 10 rows of 64 bits")


@pytest.mark.parametrize("op", [Op.SHIFT_RIGHT, Op.XNOR, Op.COUNT])
def test_a_model_that_disagrees_is_noticed(op: Op, monkeypatch: pytest.MonkeyPatch) -> None:
    compute = reference.compute

    def wrong(of: Op, *operands: Any, **options: Any) -> Any:
        result = compute(of, *operands, **options)
        return result + result.dtype.type(1) if of is op else result

    monkeypatch.setattr(reference, "compute", wrong)
    assert set(failures(small(ops=frozenset({Op.COPY, op})))) == {op.name, "overlap"}


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


def test_a_device_that_does_not_recover_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bitlane.driver.queue.CLEAR_SECONDS", 0.05)
    passed, lines = lines_of(FaultyLink(hung=Op.NOT, deaf=True))
    assert not passed
    assert "CLEAR has had no effect" in "".join(lines)
    stopped = f"Stopped: the device does not answer any more; {CHECKS - 2} checks not run"
    assert lines[-1].startswith(stopped)


# --- the command ------------------------------------------------------------------------------


@pytest.fixture
def urls(brief: None, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    opened: list[str] = []

    def opener(url: str) -> ModelLink:
        opened.append(url)
        return FaultyLink(written=faults.stuck, ops=FEW) if "bad" in url else small(ops=FEW)

    monkeypatch.setattr(bitlane.command_line.validate, "open_link", opener)
    return opened


def test_exit_codes_and_lines(urls: list[str], run: CommandLine) -> None:
    code, text, error = run("validate", "model:1", "--quick", "--seed", "9", "--memory", "8KiB")
    assert (code, error) == (0, "")
    assert "8,192 of 16,384 bytes" in text
    lines = text.splitlines()
    assert lines[0] == "Validating 'model of the contract', seed 9"
    assert lines[-1].startswith(f"All {FEW_CHECKS} checks passed")
    code, text, _ = run("validate", "model:bad", "--quick")
    assert code == 1
    last = text.splitlines()[-1]
    assert last.startswith("FAILED: ")
    assert f" of {FEW_CHECKS} checks in " in last
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
