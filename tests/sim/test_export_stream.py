"""`bitlane export --stream` writes the stream core, and refuses options that it does not have."""

import re
import shlex
from pathlib import Path

import pytest

from bitlane.command_line.cli import DONE, main
from support.cocotb.simulators import icarus, verilator
from support.command_line import CommandLine
from support.processes import run
from support.seeds import slow

XOR = ["--stream", "--data-width", "8", "--ops", "xor"]

pytestmark = pytest.mark.usefixtures("in_an_empty_folder")


def written(options: str) -> tuple[str, str]:
    assert main(["export", "--stream", *options.split(), "-o", "core.v"]) == DONE
    return tuple(Path(f"core.{x}").read_text(encoding="utf-8") for x in ("v", "md"))


@pytest.mark.parametrize(
    "options",
    [
        "--data-width 8 --ops xor --user-width 0 --prefix xorer",
        slow("--data-width 16 --ops logic,count --lanes 8,16 --control lite"),
        slow("--ops count_xor --no-reduce"),
        slow("--data-width 128"),
    ],
)
def test_the_command_in_the_header_writes_the_same_again(options: str) -> None:
    first = written(options)
    (line,) = [x for x in first[0].splitlines() if x.startswith("// Written by: ")]
    command = shlex.split(line.removeprefix("// Written by: "))[1:]
    assert f"    {shlex.join(['bitlane', *command])}\n" in first[1]
    assert main([*command, "--force"]) == DONE
    assert tuple(Path(f"core.{x}").read_text(encoding="utf-8") for x in ("v", "md")) == first


@pytest.mark.parametrize(
    ("options", "absent", "present"),
    [
        ("--data-width 8 --ops xor", "control_|s_axil", "s_axis_b_tdata"),
        ("--data-width 8 --ops not", "s_axis_b|control_", "m_axis_y_tdata"),
        ("--data-width 8 --ops logic", "control_lane|s_axil", "control_op"),
        ("--data-width 8 --ops logic --control lite", "control_", "s_axil_awaddr"),
        ("--data-width 8 --ops logic --user-width 0", "s_axis_a_tuser", "m_axis_y_tuser"),
    ],
)
def test_the_page_lists_the_ports_of_the_module(options: str, absent: str, present: str) -> None:
    text, page = written(options)
    head = text[text.index("\nmodule core(") :]
    head = head[: head.index(");")]
    ports = set(re.findall(r"^  (?:input|output) \w+ (?:\[\d+:0\] )?(\w+)", head, re.MULTILINE))
    assert set(re.findall(r"^\| `(\w+)` \| (?:in|out) ", page, re.MULTILINE)) == ports
    shown = dict(re.findall(r"^\| ([A-Z][^|`]*) \| ([^|]*) \|$", page, re.MULTILINE)[1:])
    width = max(map(len, shown))
    for parameter, value in shown.items():
        assert f"// {parameter:{width}}  {value}\n" in text
    assert present in ports
    assert not [port for port in ports if re.match(absent, port)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
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
        (
            ["--stream", "--data-width", "8", "--lanes", "16"],
            "--lanes: none fits into a beat of 8 bits",
        ),
    ],
)
def test_bad_input(words: list[str], message: str, cli: CommandLine) -> None:
    assert cli.refuse("export", "-o", "x.v", *words).startswith(f"bitlane: {message}")
    assert list(Path().iterdir()) == []


def test_a_stream_core_goes_into_no_folder(cli: CommandLine) -> None:
    refused = cli.refuse("export", "--folder", "hardware", *XOR)
    assert refused.startswith("bitlane: --folder: --stream has no memory and no commands")


@pytest.mark.slow
@pytest.mark.parametrize("options", ["", "--data-width 8", "--data-width 32 --control lite"])
def test_linters_report_nothing(options: str) -> None:
    written(options)
    simulator = verilator()
    command = (simulator.folder / "verilator_bin", "--lint-only", "-Wall", "core.v")
    done = run(*command, **simulator.variables)
    assert (done.returncode, done.stderr) == (0, "")
    done = run(icarus().folder / "iverilog", "-g2005", "-Wall", "-o", "core.vvp", "core.v")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
