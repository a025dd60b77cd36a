"""The simulated system records handshakes, addresses and commands, and groups its waveforms."""

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bitlane import Device
from bitlane.command_line import cli
from bitlane.driver import Driver
from bitlane.errors import DeviceFault
from bitlane.links import Recording
from bitlane_rtl.abi import Mode, Op
from bitlane_rtl.configuration import Configuration
from bitlane_sim.device import Simulator, SimulatorLink, open_link, write_save_file
from bitlane_sim.system import AXI_CHANNELS, EVENTS_BIT, RECORD, Recorder
from cppsim import ReferenceModel
from support.seeds import slow

pytestmark = [pytest.mark.any_face, pytest.mark.reads("examples")]

TWO_PORTS = Configuration(
    data_width=32,
    memory_bytes=1 << 16,
    ops=frozenset({Op.XOR, Op.NOT}),
    modes=frozenset({Mode.DENSE}),
    loops=1,
    slots=4,
)
WIDE = Configuration(memory_bytes=1 << 16, ops=frozenset({Op.XOR, Op.NOT}), loops=2, slots=4)
ONE_PORT = replace(WIDE, data_width=32, read_ports=1, fifo_beats=32, bursts=4)
CIRCUITS = {"one port": ONE_PORT, "two ports": TWO_PORTS, "64 bits": WIDE}
SEED = 7


@pytest.fixture(
    scope="module",
    params=[slow("pysim, one port"), "compiled, two ports", slow("compiled, 64 bits")],
)
def shared(request: pytest.FixtureRequest) -> Iterator[Simulator]:
    evaluator, _, circuit = request.param.partition(", ")
    with closing(Simulator(CIRCUITS[circuit], evaluator, records=4096)) as simulator:
        yield simulator


@pytest.fixture(scope="module")
def worked(shared: Simulator) -> tuple[Simulator, Recording]:
    """Return the simulator after `work`, and the recording of it."""
    return shared, work(shared)


def work(simulator: Simulator) -> Recording:
    """Run a few operations with stalls on all channels; return their recording."""
    simulator.set_latency(5)
    simulator.set_stalls(0.3, seed=SEED)
    random = np.random.default_rng(SEED)
    device = Device(Driver(SimulatorLink(simulator)))
    simulator.clear_monitor()
    for size in (5, 300):
        a, b = random.integers(0, 256, (2, size), np.uint8)
        assert (device.bit_xor(a, b) == a ^ b).all()
    recording = simulator.recording
    assert recording is not None
    return recording


def test_every_handshake_is_recorded(worked: tuple[Simulator, Recording]) -> None:
    """The recording has the counts of the monitor, a separate circuit, in the same cycles."""
    simulator, recording = worked
    assert not recording.cut
    assert recording.end == simulator.cycles
    lengths = np.diff(recording.cycles, append=recording.end)
    assert (lengths > 0).all()
    for name, report in simulator.monitor.items():
        if name == "doorbell":
            assert int(recording.doorbell.sum()) == report.count
            continue
        valid, ready = recording.valid[name], recording.ready[name]
        fires = np.flatnonzero(valid & ready)
        assert int((lengths * (valid & ready)).sum()) == report.count > 0, f"{name}, seed {SEED}"
        assert int((lengths * (valid & ~ready)).sum()) == report.stalls, f"{name}, seed {SEED}"
        last = fires[-1]
        cycles = (recording.cycles[fires[0]], recording.cycles[last] + lengths[last] - 1)
        assert cycles == (report.first, report.last), f"{name}, seed {SEED}"


def test_the_beats_are_those_of_the_addresses(worked: tuple[Simulator, Recording]) -> None:
    simulator, recording = worked
    for address, data in (("ar", "r"), ("ar_b", "r_b"), ("aw", "w")):
        taken = recording.valid[address] & recording.ready[address]
        asked = recording.beats[address][taken].sum()
        if data not in simulator.channels:
            assert asked == 0
            continue
        assert asked == simulator.monitor[data].count > 0
        places = recording.addresses[address][taken]
        assert (places % simulator.configuration.data_bytes == 0).all()
        assert places.max() <= simulator.configuration.memory_last


def test_every_command_starts_and_ends(worked: tuple[Simulator, Recording]) -> None:
    _, recording = worked
    started = recording.cycles[recording.started]
    retired = recording.cycles[recording.retired]
    assert len(started) == len(retired) >= 2
    assert (recording.cycles[recording.doorbell][0] < started).all()
    assert (started < retired).all()
    assert not recording.faulted.any()


@pytest.mark.parametrize("bit", [*range(2 * len(AXI_CHANNELS)), *range(EVENTS_BIT, EVENTS_BIT + 4)])
def test_what_is_the_same_for_long_is_one_entry(bit: int) -> None:
    """Addresses and events of commands have an entry each; equal cycles of the rest share one."""
    recorder = ReferenceModel(Recorder())
    recorder.set("limit", 9)
    both = 3 << bit - bit % 2 if bit < EVENTS_BIT else 1 << bit
    entries = []
    for flags in (0, both, both, 0, 1 << bit, 1 << bit):
        recorder.set("traffic", flags << RECORD["cycle"])
        entries.append(recorder.get("storage__enable"))
        recorder.step()
    recorder.close()
    each = bit >= EVENTS_BIT or AXI_CHANNELS[bit // 2].startswith("a")
    assert entries == [0, 1, int(each), 1, 1, int(bit >= EVENTS_BIT)]


def test_nothing_is_recorded_unless_asked_for() -> None:
    with open_link("sim:compiled?memory=64KiB&width=32&ports=1&loops=1&ops=not") as link:
        assert link.simulator.recording is None
        assert link.recording is None


def test_what_finds_no_room_is_cut(worked: tuple[Simulator, Recording]) -> None:
    simulator, whole = worked
    evaluator = simulator.evaluator.name
    with closing(Simulator(simulator.configuration, evaluator, records=50)) as short:
        recording = work(short)
    assert recording.cut
    assert len(recording.cycles) == 50
    assert recording.end == recording.cycles[-1] + 1
    for name in AXI_CHANNELS:
        assert (recording.valid[name] == whole.valid[name][:50]).all()
    assert (recording.cycles == whole.cycles[:50]).all()


def test_a_command_that_fails_is_recorded_as_such(shared: Simulator) -> None:
    shared.power_on()
    before = work(shared)
    shared.inject_error(0, shared.configuration.memory_last, write=True)
    with pytest.raises(DeviceFault):
        Device(Driver(SimulatorLink(shared))).bit_not(np.uint8(1))
    recording = shared.recording
    assert recording is not None
    assert recording.faulted.sum() == 1
    assert recording.cycles[recording.faulted][0] > before.cycles[before.retired][-1]


# --- the save file of GTKWave ---------------------------------------------------------------------


EXAMPLES = Path(__file__).parents[3] / "examples"

HEADER = """\
$timescale 1 fs $end
$scope module top $end
$var wire 4 ! op [3:0] $end
$var wire 1 " m_axi__awvalid $end
$var wire 1 # m_axi__awready $end
$var wire 32 $ m_axi__awaddr [31:0] $end
$var wire 1 % alone__valid $end
$scope module inner $end
$var wire 1 & i__ready $end
$var wire 8 ' i__payload__data [7:0] $end
$var wire 1 ( i__valid $end
$var string 1 ) i__payload__kind $end
$upscope $end
$upscope $end
$enddefinitions $end
#0
$var wire 1 * no__valid $end
"""


def groups(save: str) -> dict[str, list[str]]:
    """Return the signals in each group of a save file."""
    found: dict[str, list[str]] = {}
    for title, body in re.findall(r"^-(\S[^\n]*)\n(.*?)^-\1$", save, re.M | re.S):
        found[title] = re.findall(r"^(?:\+\{.*\} )?(\w\S+)$", body, re.M)
    return found


@pytest.mark.slow
def test_a_stream_has_valid_and_ready_before_what_they_go_with(tmp_path: Path) -> None:
    waves = tmp_path / "w.vcd"
    waves.write_text(HEADER)
    write_save_file(waves)
    save = (tmp_path / "w.gtkw").read_text()
    assert groups(save) == {
        "top.m_axi__aw": [f"top.m_axi__aw{x}" for x in ("valid", "ready", "addr[31:0]")],
        "top.inner.i": [f"top.inner.i__{x}" for x in ("valid", "ready", "payload__data[7:0]")],
        "enumerations": ["top.op[3:0]"],
    }
    assert f'[dumpfile] "{waves}"' in save
    assert f"^1 {tmp_path / 'w.op.txt'}\n" in save
    names = dict(line.split() for line in (tmp_path / "w.op.txt").read_text().splitlines())
    assert names == {f"{op.value:x}": op.name for op in Op}


@pytest.mark.slow
@pytest.mark.parametrize("evaluator", ["pysim", "compiled"])
def test_every_name_is_one_of_the_waveform_file(
    evaluator: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    waves = tmp_path / "w.vcd"
    device = f"sim:{evaluator}?memory=64KiB&width=32&ports=1&loops=1&ops=not"
    words = ["run", str(EXAMPLES / "bit_not.json"), "--device", device, "--vcd", str(waves)]
    assert cli.main(words) == cli.DONE, capsys.readouterr()
    found = groups((tmp_path / "w.gtkw").read_text())
    known = variables(waves.read_text().partition("$enddefinitions")[0])
    assert len(found) > 10
    for title, names in found.items():
        assert set(names) <= known, title
    buses = [title for title in found if title.rpartition(".")[2].startswith("m_axi__")]
    assert {title.rpartition("__")[2] for title in buses} >= {"aw", "w", "b", "ar", "r"}


def variables(header: str) -> set[str]:
    """Return the full names of all signals, with the ranges that GTKWave adds."""
    path: list[str] = []
    found = set()
    for line in header.splitlines():
        words = line.split()
        if words[0] == "$scope":
            path.append(words[2])
        elif words[0] == "$upscope":
            path.pop()
        elif words[0] == "$var":
            bits = int(words[2])
            found.add(".".join([*path, words[4] + (f"[{bits - 1}:0]" if bits > 1 else "")]))
    return found
