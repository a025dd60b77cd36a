"""``bitlane run`` and other commands as a user types them: output, exit codes and files."""

import json
import re
import shlex
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
from bitlane_sim.device.link import SimulatorLink, open_link
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
