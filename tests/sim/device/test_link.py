"""``sim:`` URLs configure the simulator, and bad ones are refused in one line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bitlane_sim.device.link
import bitlane_sim.device.simulator
from bitlane.errors import LinkError
from bitlane.links import WITHOUT_CIRCUIT
from bitlane.links import open_link as open_any
from bitlane_rtl.abi import Lane, Mode, Op
from bitlane_rtl.configuration import Configuration, Search
from bitlane_sim.device import choose_evaluator, open_link
from cppsim.errors import SimulationError


class FakeSimulator:
    """A stand-in for the simulator that records its arguments and builds no circuit."""

    def __init__(self, configuration: Configuration, evaluator: str, **options: Any) -> None:
        self.configuration = configuration
        self.options = options
        self.evaluator = type("Evaluator", (), {"name": evaluator})()

    def set_latency(self, cycles: int) -> None:
        self.options["latency"] = cycles

    def set_stalls(self, chance: float, *, seed: int) -> None:
        self.options["stalls"] = (chance, seed)

    def close(self) -> None:
        pass


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bitlane_sim.device.link, "Simulator", FakeSimulator)


@pytest.mark.usefixtures("fake")
def test_the_evaluator_is_named_chosen_or_found_by_its_former_name() -> None:
    assert open_link("sim").description == f"simulator {choose_evaluator()}, 64 bits"
    assert open_link("sim:pysim").description == "simulator pysim, 64 bits"
    assert open_link("sim:compiled").description == "simulator compiled, 64 bits"
    with pytest.warns(FutureWarning, match="cxxrtl is called compiled now") as warned:
        assert open_link("sim:cxxrtl").description == "simulator compiled, 64 bits"
    assert len(warned) == 1


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", Configuration()),
        (
            "width=128&ports=1&memory=4MiB&loops=2&slots=8",
            Configuration(data_width=128, read_ports=1, memory_bytes=4 << 20, loops=2, slots=8),
        ),
        (
            "ops=not,shift_left&modes=dense,repeat&lanes=8,64",
            Configuration(
                ops=frozenset({Op.NOT, Op.SHIFT_LEFT}),
                modes=frozenset({Mode.DENSE, Mode.REPEAT}),
                lanes=frozenset({Lane.BITS_8, Lane.BITS_64}),
            ),
        ),
        ("search=8", Configuration(search=Search(units=8))),
        (
            "search=3,64,16,4",
            Configuration(search=Search(units=3, row_bits=64, queries=16, nearest=4)),
        ),
    ],
)
def test_options_reach_the_simulator(options: str, expected: Configuration, tmp_path: Path) -> None:
    file = tmp_path / "wave.vcd"
    link = open_link(f"sim:pysim?latency=30&stall=0.5&seed=0x11&vcd={file}&{options}".rstrip("&"))
    simulator = link.simulator
    assert simulator.configuration == expected
    assert isinstance(simulator, FakeSimulator)
    wanted = {"latency": 30, "stalls": (0.5, 0x11), "vcd": str(file)}
    assert simulator.options.items() >= wanted.items()


def test_a_waveform_file_that_cannot_be_written_fails_before_the_build(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise SimulationError("no such tool")

    monkeypatch.setattr(bitlane_sim.device.link, "Simulator", fail)
    with pytest.raises(LinkError, match="missing is not a folder; make it first"):
        open_link(f"sim?vcd={tmp_path}/missing/w.vcd")
    with pytest.raises(LinkError, match="no such tool"):
        open_link(f"sim?vcd={tmp_path}/w.vcd")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("sim:verilator", "no evaluator 'verilator'; choose compiled or pysim"),
        ("sim?speed=9", "no option 'speed'; choose width, ports, memory"),
        ("sim?width=64&width=32", "option width occurs twice; expected once"),
        ("sim?width=33", "option width: 33 is not supported; expected 32, 64 or 128"),
        ("sim?memory=8", "option memory: 8; expected a multiple of 16 beats, 128 bytes"),
        ("sim?loops=9", "option loops: 9 is outside 1 to"),
        ("sim?width=wide", "option width is 'wide'; expected bits in a beat: 32, 64 or 128"),
        ("sim?memory=1TB", "option memory is '1TB'; expected bytes of memory, with KiB, MiB or"),
        ("sim?latency=256", "option latency is '256'; expected more cycles"),
        ("sim?stall=1", "option stall is '1'; expected chance"),
        ("sim?vcd", "option vcd is ''; expected file"),
        ("sim?vcd=/nowhere/w.vcd", "vcd: /nowhere is not a folder; make it first"),
        ("sim?vcd=/", "Is a directory: '/'"),
        ("sim?ops=not,nonsense", "option ops is 'not,nonsense'; expected operations, separated"),
        ("sim?ops=not,search", "option ops is 'not,search'; expected operations, separated"),
        ("sim?modes=strided", "modes: DENSE is missing"),
        ("sim?search=8,100", "option search (search.row_bits): 100 is not a power of two from 64"),
        ("sim?search=5,63", "option search (search.row_bits): 63 is not a power of two from 64 to"),
        ("sim?search=8,64,1", "option search (search.queries): 1 is not a power of two from 2 to"),
        ("sim?search=wide", "option search is 'wide'; expected a search array, UNITS[,ROW_BITS"),
        ("sim?search=8,64,8,4,1", "option search is '8,64,8,4,1'; expected a search array"),
        ("sim?search=8&width=128", "option width: 128; search needs one of (32, 64)"),
        ("sim?lanes=12", "option lanes is '12'; expected widths of lanes in bits"),
    ],
)
def test_bad_urls_are_refused_in_one_line_that_names_the_choices(url: str, message: str) -> None:
    with pytest.raises(LinkError, match=f"^device '{url.replace('?', '[?]')}': ") as raised:
        open_link(url)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.usefixtures("fake")
def test_a_simulator_that_is_not_compiled_says_so_once_with_the_cure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("BITLANE_CXX", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    bitlane_sim.device.simulator._warn_of_pysim.cache_clear()
    # Whoever names it knows.
    open_link("sim:pysim")
    assert capsys.readouterr().err == ""
    for _ in range(2):
        assert open_link("sim").description == "simulator pysim, 64 bits"
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("bitlane: Amaranth's simulator runs the circuit, hundreds of times slow")
    assert line.endswith("or run pip install ziglang")


def test_evaluator_depends_on_the_compiler(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert choose_evaluator() == "compiled"
    monkeypatch.setenv("BITLANE_CXX", "no-such-compiler")
    assert choose_evaluator() == "pysim"
    assert "BITLANE_CXX: 'no-such-compiler' is not a C++ compiler" in capsys.readouterr().err
    with pytest.raises(
        LinkError, match=f"BITLANE_CXX: 'no-such-compiler' is not a .*; {WITHOUT_CIRCUIT}$"
    ):
        open_link("sim:compiled?memory=64KiB&width=32&ports=1&loops=1&ops=not")


def test_scheme_is_registered_and_the_waveform_is_written(tmp_path: Path) -> None:
    file = tmp_path / "wave.vcd"
    with open_any(f"sim:pysim?memory=64KiB&width=32&ports=1&loops=1&ops=not&vcd={file}") as link:
        assert link.read(0xFFFF_0000, 4).tobytes() == b"LTIB"
    assert "$enddefinitions" in file.read_text()


def test_a_gibibyte_costs_nothing_until_it_is_touched() -> None:
    with open_link("sim:pysim?memory=1GiB&width=32&ports=1&loops=1&ops=not") as link:
        link.write((1 << 30) - 8, np.arange(8, dtype=np.uint8))
        assert link.read((1 << 30) - 8, 8).tolist() == list(range(8))
