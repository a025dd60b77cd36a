"""URLs of the device `numpy`, and the seconds that a board's circuit and line would take."""

import gc
import json
import random
import sys
from collections.abc import Iterator
from weakref import ref

import numpy as np
import pytest
from numpy.typing import NDArray

import bitlane
from bitlane.command_line import DONE, main
from bitlane.errors import LinkError
from bitlane.links import Link, Predicted, duration
from bitlane_boards import boards
from bitlane_boards.predicted import predicted_boards
from bitlane_rtl.abi import (
    CONTROL_BASE,
    FRAME_DATA_BYTES,
    RING_OFFSET,
    Lane,
    Mode,
    Op,
    Status,
    record_words,
    register,
)
from bitlane_sim.numpy_device import (
    NumpyLink,
    PredictedCounters,
    gigabit_line,
    open_link,
    serial_line,
)
from support.commands import RandomCommands
from support.docs.pages import ROOT
from support.processes import succeed
from support.rtl.records import pack, reseal
from support.serial.frames import frame, write
from support.sim.beside import raw_record, submit


@pytest.fixture
def link() -> Iterator[NumpyLink]:
    with open_link("numpy?memory=4KiB") as link:
        yield link


def test_it_says_what_it_is() -> None:
    with bitlane.open("numpy?width=128") as device:
        assert device.driver.link.description == "numpy model, 128 bits, no circuit"
        assert device.driver.link.cycles is None
        assert device.driver.link.predicted


def test_options_are_those_of_a_circuit() -> None:
    options = "width=32&ports=1&memory=64KiB&loops=2&slots=8&ops=xor,count&modes=dense&lanes=8,32"
    with bitlane.open(f"numpy?{options}&search=3,128,64,8") as device:
        geometry = device.driver.geometry
        assert (geometry.data_bytes, geometry.read_ports, geometry.loops) == (4, 1, 2)
        assert (geometry.memory_bytes, geometry.slots) == (1 << 16, 8)
        assert geometry.ops == {Op.XOR, Op.COUNT, Op.SEARCH}
        assert geometry.modes == {Mode.DENSE}
        assert geometry.lanes == {Lane.BITS_8, Lane.BITS_32}
        assert geometry.search is not None
        assert (geometry.search.units, geometry.search.row_bytes) == (3, 16)


_BESIDE = "beside board=hx8k, which has a circuit; "


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (":compiled", "'compiled' after numpy; expected numpy?OPTION"),
        ("?stall=3", "no option 'stall'; choose width, ports,"),
        ("?latency=-1", "latency: -1; expected 0 to 255"),
        ("?latency=256", "latency: 256; expected 0 to 255"),
        ("?width=7", "option width: 7 is not supported; expected 32,"),
        ("?memory=4GiB", "option memory: 4294967296; expected up"),
        ("?memory=3GiB", "option memory: 3221225472; expected up to"),
        ("?memory=5", "option memory: 5; expected a multiple of"),
        ("?board=hx9k", "option board: 'hx9k'; choose icebreaker, icebreaker-bram, hx8k, ulx3s,"),
        ("?board=", "option board: ''; choose icebreaker,"),
        ("?board=hx8k&width=64", f"option width: {_BESIDE}expected"),
        ("?memory=1MiB&board=hx8k", f"option memory: {_BESIDE}"),
        ("?board=ulx3s&record=-1", "option record: -1; expected 0 or more entries"),
    ],
)
def test_other_urls_are_refused_in_one_line(options: str, message: str) -> None:
    with pytest.raises(LinkError) as error:
        bitlane.open(f"numpy{options}")
    assert str(error.value).startswith(f"device 'numpy{options}': {message}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("address", "size", "message"),
    [
        *(
            (x, n, f"{n} bytes at {x:#x} are outside the memory")
            for x, n in ((4000, 97), (4096, 1))
        ),
        (1 << 31, 4, "outside the memory, 0x0 to 0xfff"),
        *(
            (CONTROL_BASE + x, n, "not whole words of the control window")
            for x, n in ((2, 4), (0, 3), (0x3FFC, 8))
        ),
    ],
)
def test_other_accesses_are_refused(link: NumpyLink, address: int, size: int, message: str) -> None:
    with pytest.raises(LinkError, match=message):
        link.read(address, size)
    with pytest.raises(LinkError, match=message):
        link.write(address, bytes(size))


def test_a_read_is_a_copy(link: NumpyLink) -> None:
    before = link.read(0, 8)
    link.write(0, bytes(range(8)))
    assert before.tolist() == [0] * 8
    assert link.read(0, 8).tolist() == list(range(8))


def test_the_memory_of_a_dropped_device_is_free_at_once() -> None:
    gc.disable()  # it comes seldom, and the memory may be large
    try:
        device = bitlane.open("numpy?memory=1MiB")
        assert int((device.asarray([1, 2]) ^ 1).sum()) == 3
        device.driver.counters()
        assert device.driver.link.memory_view is not None
        memory = ref(device.driver.link.memory_view)
        del device
        assert memory() is None
    finally:
        gc.enable()


def test_a_closed_link_refuses_all_calls(link: NumpyLink) -> None:
    link.close()
    link.close()
    link.forget(0, 4096)
    for call in (lambda: link.read(0, 4), lambda: link.write(0, bytes(4)), lambda: link.wait(0)):
        with pytest.raises(LinkError, match="numpy model, 64 bits, no circuit: the link is closed"):
            call()


@pytest.mark.parametrize(("mib", "left"), [(64, 0), (1, 7)])
def test_much_memory_that_is_forgotten_takes_no_room(mib: int, left: int) -> None:
    with open_link("numpy?memory=128MiB") as link:
        link.memory_view[:] = 7
        link.forget(0, mib << 20)
        assert np.unique(link.memory_view[: mib << 20]).tolist() == [left]
        assert link.memory_view[mib << 20] == 7


def endless(op: Op) -> NDArray[np.uint32]:
    """Return the record of 2**60 steps over the same bytes."""
    size = 1 << (2 if op.counts else 0)
    counts = {f"COUNT_{loop}": (1 << 20) - 1 for loop in (1, 2, 3)}
    addresses = {"B_BASE": 64, "B_LAST": 64, "Y_BASE": 128, "Y_LAST": 131}
    words = raw_record({"OP": op, "OUT_LANE": size // 2, "LOOPS": 4}, RUN=1, **addresses, **counts)
    return np.array(reseal(words, record_words(op, 4, (0, 0, 0))), "<u4")


@pytest.mark.parametrize("op", [Op.XOR, Op.XNOR, Op.COUNT_XOR])
def test_a_command_without_an_end_is_pending(op: Op) -> None:
    """Until CLEAR."""
    with bitlane.open("numpy?memory=4KiB") as device:
        driver = device.driver
        driver.timeout = 0.2
        link = driver.link
        link.write(CONTROL_BASE + RING_OFFSET, endless(op))
        driver.write_register("DOORBELL", 1)
        assert driver.read_register("STATUS") == 0b101
        assert driver.read_register("RETIRED") == 0
        assert link.wait(0.01) is False
        driver.write_register("CLEAR", 1)
        assert driver.read_register("STATUS") == 0b100
        assert device.bit_not(np.uint8([1])).tolist() == [254]


def test_a_doorbell_that_goes_back_behind_a_command_without_an_end_is_refused() -> None:
    with bitlane.open("numpy?memory=4KiB") as device:
        driver = device.driver
        driver.link.write(CONTROL_BASE + RING_OFFSET, endless(Op.XOR))
        driver.write_register("DOORBELL", 2)
        assert driver.read_register("FAULT") == 0
        driver.write_register("DOORBELL", 1)
        assert register("FAULT")["CODE"].extract(driver.read_register("FAULT")) == (
            Status.BAD_DOORBELL
        )


def test_jobs_are_predicted_one_by_one_when_there_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No call predicts all those before, and the sum is the same."""

    def sums(most: int) -> tuple[int, int]:
        monkeypatch.setattr("bitlane_sim.numpy_device.counters.MOST_POSTPONED", most)
        with bitlane.open("numpy?memory=64KiB") as device:
            stored = 0
            for size in range(1, 12):
                device.bit_not(np.zeros(size * 16, np.uint8))
                stored = max(stored, len(device.driver.link._counters._jobs))
            return stored, device.driver.counters()["BUSY_CYCLES"]

    assert sums(100)[0] > 4
    assert sums(4) == (4, sums(100)[1])


def test_neither_amaranth_nor_cppsim_is_imported() -> None:
    code = """
import sys
import numpy as np
import bitlane
with bitlane.open("numpy") as device:
    assert device.bit_xor(np.uint8([1, 2]), np.uint8([3, 3])).tolist() == [2, 1]
print(*sorted(name for name in sys.modules if name.partition(".")[0] in ("amaranth", "cppsim")))
"""
    assert succeed(sys.executable, "-c", code) == "\n"


# --- the predicted seconds of a board -------------------------------------------------------------


EXAMPLES = ROOT / "examples"


def opened(board: str) -> NumpyLink:
    return open_link(f"numpy?board={board}")


def prediction_of(link: Link) -> Predicted:
    assert link.prediction is not None
    return link.prediction


@pytest.mark.parametrize("name", boards())
def test_it_has_the_circuit_of_the_board(name: str) -> None:
    board = boards()[name]
    with bitlane.open(f"numpy?board={name}") as device:
        geometry, circuit = device.driver.geometry, board.configuration
        assert device.driver.link.description == (
            f"numpy model of {name}, {circuit.data_width} bits, no circuit"
        )
        assert geometry.data_bytes * 8 == circuit.data_width
        assert geometry.memory_bytes == circuit.memory_bytes
        assert (geometry.search is None) == (circuit.search is None)
        predicted = device.driver.link.prediction
    assert predicted is not None
    assert (predicted.board, predicted.clock_hz) == (name, board.clock_hz)
    assert predicted.line == (
        "gigabit Ethernet" if board.ethernet else f"serial line of {board.baud:,} baud"
    )


@pytest.mark.parametrize("name", boards())
def test_each_command_of_a_board_has_cycles(name: str) -> None:
    """As many as its busiest port carries beats, or more."""
    board = predicted_boards()[name]
    circuit, chance = board.configuration, random.Random(1)
    counters = PredictedCounters(circuit, board.memory)
    base = circuit.memory_base
    draws = RandomCommands(configuration=circuit, size=1024, a=base, b=base + 1024, long=0.2)
    for number in range(40):
        task = draws.draw(chance, base + 2048)
        words = pack(task)
        spent = submit(counters, [words], [(len(words), True)])
        a, b, y = spent.a_beats, spent.b_beats, spent.y_beats
        assert min(a, y) > 0, f"{number}: {task}"
        assert spent.busy > max(a, b, y), f"{number}: {task}"


@pytest.mark.parametrize(("name", "counted"), [("icebreaker", False), ("ulx3s", True)])
def test_registers_count_only_where_the_circuit_does(name: str, counted: bool) -> None:
    with bitlane.open(f"numpy?board={name}") as device:
        assert device.bit_not(np.arange(100, dtype=np.uint8))[3] == 252
        assert any(device.driver.counters().values()) == counted
        assert device.driver.geometry.counters == counted
        predicted = device.driver.link.prediction
    assert predicted is not None
    assert predicted.cycles > 25


def test_without_a_board_nothing_is_predicted_in_seconds() -> None:
    with open_link("numpy") as link:
        assert link.prediction is None


@pytest.mark.parametrize("name", ["hx8k", "colorlight-i5"])
def test_each_call_takes_its_time_on_the_line(name: str) -> None:
    line = predicted_boards()[name].line
    with opened(name) as link:
        before = prediction_of(link)
        link.write(0, bytes(4000))
        written = prediction_of(link)
        assert (written - before).line_seconds == pytest.approx(line.write(4000))
        link.read(0, 1000)
        read = prediction_of(link)
        assert (read - written).line_seconds == pytest.approx(line.read(1000))
        link.wait(0)
        waited = prediction_of(link)
        assert (waited - read).line_seconds == pytest.approx(line.read(0))
        # Both directions at once: the slower one counts.
        link.exchange([(0, bytes(3000))], [(4096, 2000)])
        moved = (prediction_of(link) - waited).line_seconds
        assert moved == pytest.approx(max(line.write(3000), line.read(2000)))
        assert link.byte_seconds == pytest.approx(line.read(200_000) / 200_000, rel=0.02)


def test_a_run_ends_with_what_is_predicted(capsys: pytest.CaptureFixture[str]) -> None:
    model, device = str(EXAMPLES / "bit_xor.json"), "numpy?board=hx8k"
    assert main(["run", model, "--device", device]) == DONE
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("Predicted, not measured: ")
    assert last.endswith("of serial line of 8,000,000 baud")
    assert "cycles at 72 MHz of hx8k)" in last
    assert main(["run", model, "--device", device, "--json"]) == DONE
    found = json.loads(capsys.readouterr().out)["predicted"]
    assert found["board"] == "hx8k"
    assert found["circuit_seconds"] == found["cycles"] / 72e6 > 0
    assert found["line_seconds"] > 0
    assert main(["run", model, "--device", "numpy"]) == DONE
    assert "Predicted" not in capsys.readouterr().out


@pytest.mark.parametrize("url", ["numpy", "numpy?board=ulx3s", "numpy?board=ulx3s-sdram"])
def test_explain_has_the_cycles_that_the_device_predicts(url: str) -> None:
    with bitlane.open(url) as device:
        x = device.asarray(np.arange(6250, dtype=np.uint64))
        y = ~(x >> 3)
        lines = str(bitlane.explain(y)).splitlines()
        device.driver.clear_counters()
        bitlane.compute(y)
        predicted = device.driver.link.prediction
        busy = device.driver.counters()["BUSY_CYCLES"]
    end = -2 if predicted is None else -3
    passes = [int(line.split()[-1].replace(",", "")) for line in lines[1:end]]
    cycles = int(lines[end].split()[-1].replace(",", ""))
    assert sum(passes) == cycles
    # The host writes the records of a job one by one, while the first command is executed; and the
    # operands of a dry run lie in other banks and rows.
    assert cycles == pytest.approx(busy, abs=8 if predicted is None else 0.005 * busy)
    if predicted is not None:
        assert lines[-1] == (
            f"predicted  {duration(cycles / predicted.clock_hz)} at {predicted.clock}"
        )


# --- the seconds of a line, against its frames and those at a board's simulated pins --------------

BAUD = 3_000_000

FIGURES = ROOT / "docs/measurements/network.json"


@pytest.mark.parametrize("frames", [1, 7, 100])
def test_a_write_on_a_serial_line_takes_the_bits_of_its_frames(frames: int) -> None:
    data = bytes(range(256)) * (FRAME_DATA_BYTES // 256)
    sent = frame(write(1, 0x1000, data))
    assert serial_line(BAUD).write(frames * len(data)) == pytest.approx(
        frames * len(sent) * 10 / BAUD + serial_line(BAUD).request, rel=2e-3
    )


def test_the_network_takes_what_was_simulated_at_the_pins_of_a_board() -> None:
    line, simulated = gigabit_line(), json.loads(FIGURES.read_text("utf-8"))["rows"]
    # Between parts of a long write, the line is idle for a moment.
    assert 1e-6 / line.up == pytest.approx(simulated["MB/s"]["up"], rel=5e-3)
    assert 1e-6 / line.down == pytest.approx(simulated["MB/s"]["down"], rel=2e-3)
    # A byte has ten bits on a serial line.
    assert [round(1e-6 / x, 1) for x in (serial_line(BAUD).up, serial_line(BAUD).down)] == [0.3] * 2
    for size in (4, 64):
        seconds = simulated["us"][f"a READ of {size} bytes"]
        assert line.read(size) * 1e6 == pytest.approx(seconds, rel=0.05)
    seconds = simulated["us"]["a WRITE of 64 bytes"]
    assert line.write(64) * 1e6 == pytest.approx(seconds, rel=0.15)
