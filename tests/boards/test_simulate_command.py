"""`bitlane simulate` refuses bad arguments in one line that names the remedy."""

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bitlane.errors import BitlaneError
from bitlane_boards import boards
from bitlane_boards.command_line.simulate import add_simulate
from bitlane_boards.pins import PinSimulation
from bitlane_boards.readback import netlist
from bitlane_boards.readback.netlist import bitstream_model
from bitlane_boards.readback.pins import BoardPin
from support.boards.small_builds import DIVIDER, PLACES, ecp5, ice40
from support.sim.answerer import Store, answers

pytestmark = [pytest.mark.slow, pytest.mark.any_circuit]


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    add_simulate(parser.add_subparsers())
    arguments = parser.parse_args(["simulate", *words])
    code: int = arguments.run(arguments)
    return code


def refused(*words: str) -> str:
    with pytest.raises((BitlaneError, OSError)) as caught:
        run(*words)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("hx9k",), "argument BOARD: invalid choice: 'hx9k'"),
        ((), "the following arguments are required: BOARD"),
        (("hx8k", "--pty"), "unrecognized arguments: --pty"),
        (("hx8k", "--bitstream", "a", "--netlist", "b"), "argument --netlist: not allowed with"),
        (("hx8k", "--deadline", "0"), "argument --deadline: '0': expected seconds, more than 0"),
        (("hx8k", "--deadline", "soon"), "--deadline: 'soon': expected seconds, more than 0"),
        (("ecpix5", "--cable-seed", "x"), "--cable-seed: 'x': expected a whole number"),
    ],
)
def test_arguments_that_make_no_sense_end_with_code_2(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        run(*words)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def interrupted(*_: object) -> Any:
    raise KeyboardInterrupt


def test_stopped_while_it_serves_is_no_error_but_before_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = SimpleNamespace(description="hx8k", hidden=(), close=lambda: None)
    server = SimpleNamespace(
        name="/dev/pts/9", sent=0, received=0, warm_up=lambda: None, close=lambda: None
    )
    monkeypatch.setattr("bitlane_boards.readback.netlist.model_of", lambda *_: model)
    monkeypatch.setattr(
        "bitlane_boards.pins.PinSimulation", lambda *_: SimpleNamespace(cycle=0, framing_errors=0)
    )
    monkeypatch.setattr("bitlane_boards.pins.pty.PtyServer", lambda *_: server)
    server.serve = interrupted
    assert run("hx8k") == 0
    captured = capsys.readouterr()
    assert captured.out == "/dev/pts/9\n"
    assert "stopped after 0 cycles" in captured.err
    server.warm_up = interrupted
    with pytest.raises(KeyboardInterrupt):
        run("hx8k")
    assert capsys.readouterr().out == ""


def test_files_of_the_wrong_kind_are_refused(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    assert "missing" in refused("hx8k", "--bitstream", missing)
    assert "missing" in refused("ulx3s", "--netlist", missing)
    text = tmp_path / "text"
    text.write_text("nothing of the sort")
    assert "no bitstream of an iCE40" in refused("hx8k", "--bitstream", str(text))
    assert "no netlist of one top module" in refused("ulx3s", "--netlist", str(text))
    wide = refused("ulx3s", "--bitstream", str(text))
    assert "expected --netlist with the routed netlist" in wide
    assert "expected --bitstream" in refused("hx8k", "--netlist", str(text))


def test_a_file_of_another_board_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "top.bin"
    file.write_bytes(ice40("up5k", Store.SINGLE_PORT))
    assert "for an iCE40 5k; expected one for Lattice iCE40-HX8K-B-EVN" in refused(
        "hx8k", "--bitstream", str(file)
    )
    file.write_bytes(ice40("hx8k"))
    assert "runs at 12 MHz; expected 72 MHz" in refused("hx8k", "--bitstream", str(file))
    message = refused("ulx3s", "--netlist", str(ecp5()))
    assert "is it one of this board? it has" in message


@pytest.mark.parametrize("invert", [(), ("tx",), ("rx", "busy")], ids=" ".join)
def test_pins_that_are_active_low_are_turned_round(
    invert: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model inverts pins that the board declares active low, even where the file's are not."""
    file = tmp_path / "top.bin"
    file.write_bytes(ice40("hx8k"))
    board = replace(boards()["hx8k"], clock_hz=12_000_000, baud=12_000_000 // DIVIDER)
    pins = {role: BoardPin(role, place, role in invert) for role, place in PLACES["hx8k"].items()}
    monkeypatch.setattr(netlist, "board_pins", lambda _: pins)
    model = bitstream_model(board, file)
    assert "pin J3, driven directly" in model.hidden[0]
    right: Callable[[str], int] = {"tx": 0, "busy": 1, "rx": 1}.__getitem__
    if "tx" in invert:
        assert model.get("tx") == right("tx")
    elif "rx" in invert:
        assert model.get("busy") == right("busy")
    else:
        simulation = PinSimulation(model, DIVIDER)
        simulation.send(b"abc")
        assert simulation.wait(3, 10_000)
        assert simulation.receive() == bytes(answers(b"abc"))
