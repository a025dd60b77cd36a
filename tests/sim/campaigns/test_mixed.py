"""Many instances of a soak: all of one follows from its number, and what is planted is found."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bitlane.command_line.cli import CHECK_FAILED, DONE
from bitlane.errors import BitlaneError, LinkError
from bitlane_rtl.abi import Op
from bitlane_sim.campaigns import add_soak, contract, device_run
from bitlane_sim.campaigns.contract import Computation
from bitlane_sim.campaigns.device_run import Case, parse_case
from bitlane_sim.campaigns.folder import HarnessCircuit, make_circuit
from bitlane_sim.campaigns.mixed import SoakPlan
from support.sim.harnesses import command_line

pytestmark = pytest.mark.slow

OPTIONS = "width=32&ports=1&memory=16KiB&loops=2&slots=4&ops=xor,not,count,shift_left"


def soak(*words: str) -> int:
    return command_line(add_soak, "soak", *words)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("circuit")
    make_circuit(OPTIONS).write(path)
    return str(path)


@pytest.fixture
def words(folder: str) -> list[str]:
    return ["--instances", "300", "--seed", "3", "--circuit", folder, "--backend", "threads"]


def test_an_instance_is_the_same_whoever_is_beside_it(folder: str) -> None:
    from bitlane_sim.campaigns.folder import open_circuit

    plan = SoakPlan(open_circuit(Path(folder)), 300, 3)
    many, one = plan.portion(np.arange(300)), plan.portion(np.array([77]))
    assert np.array_equal(many.ram[77], one.ram[0])
    assert np.array_equal(many.work.records[77], one.work.records[0])
    assert many.work.counts[77] == one.work.counts[0]
    assert isinstance(plan.circuit, HarnessCircuit)
    for name, values in many.work.settings.items():
        assert np.broadcast_to(values, 300)[77] == np.broadcast_to(one.work.settings[name], 1)[0]


def test_nothing_is_found_where_nothing_is_wrong(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert soak(*words) == DONE
    head, row, summary = capsys.readouterr().out.splitlines()
    assert head.split("  ")[0] == "instances"
    instances, commands, faults, failures = (int(x.replace(",", "")) for x in row.split())
    assert (instances, failures) == (300, 0)
    assert commands > 400
    assert faults > 30
    assert summary.startswith("300 instances, ")


def test_a_bug_in_the_model_is_found_and_replayed_with_waves(
    words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    right = contract.compute

    def wrong(how: Computation, a: Any, b: Any) -> Any:
        return right(replace(how, op=np.where(how.op == Op.XOR, int(Op.OR), how.op)), a, b)

    waves = tmp_path / "waves.vcd"
    with monkeypatch.context() as patch:
        patch.setattr(contract, "compute", wrong)
        assert soak(*words) == CHECK_FAILED
        line = capsys.readouterr().out.splitlines()[3]
        assert line.startswith("bitlane soak --replay '3/")
        assert "bytes are wrong" in line
        replay = shlex.split(line, comments=True)[2:]
        assert soak(*replay) == CHECK_FAILED
        assert capsys.readouterr().out == f"{line}\n"
    assert soak(*replay, "--vcd", str(waves)) == DONE
    assert "no failure" in capsys.readouterr().out
    assert waves.stat().st_size > 10_000


def test_bad_input_is_refused(folder: str) -> None:
    assert parse_case("3/7:width=32") == Case(3, "width=32", 7)
    assert str(Case(3, "width=32", 7)) == "3/7:width=32"
    for wrong in ("3/:width=32", "/7:width=32", "3/x:width=32"):
        with pytest.raises(BitlaneError, match="SEED/INSTANCE:CONFIGURATION"):
            soak("--replay", wrong)
    for words, wanted in (
        (("--vcd", "x.vcd"), "goes only with --replay"),
        (("--circuit", folder), "goes only with --instances"),
        (("--backend", "cuda"), "goes only with --instances"),
        (("--instances", "3", "--workers", "2"), "goes only without --instances"),
        (("--instances", "3", "--replay", "3/7:width=32"), "goes only without --replay"),
        (("--instances", "3", "--config", "width=32&memory=4KiB"), "expected 16,384 or more"),
        (("--replay", "3/7:width=32&memory=16KiB", "--vcd", "nowhere/x.vcd"), "--vcd"),
        (("--instances", "3", "--config", "width=32"), "1,073,741,824 bytes of memory in each"),
    ):
        with pytest.raises(BitlaneError, match=wanted):
            soak(*words)
    for instances in ("0", "100000001"):
        with pytest.raises(SystemExit):
            soak("--instances", instances)


@pytest.mark.parametrize(
    ("case", "wanted"),
    [
        ("3/7:width=32", "1,073,741,824 bytes of memory in each instance; expected 16,777,216 at"),
        ("3/7:width=32&memory=4KiB", "4,096 bytes of memory; expected 16,384 or more"),
        ("3/7:width=32&memory=16KiB&search=8,64,2,1", "has a search array; expected none"),
        ("3/7:width=32&memory=16KiB&latency=3", "no option 'latency'; choose width, ports, memory"),
        ("3/7:width=32&memory=16KiB&vcd=x.vcd", "no option 'vcd'; choose width, ports, memory"),
        ("3/7:width=32&memory=16KiB&record=9", "no option 'record'; choose width, ports, memory"),
        ("3/100000000:width=32&memory=16KiB", "instance 100000000; expected less than 100,000,000"),
        (f"3/{1 << 70}:width=32&memory=16KiB", f"instance {1 << 70}; expected less than 100,000,0"),
    ],
)
def test_what_many_could_not_be_is_not_replayed(
    case: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[object] = []
    monkeypatch.setattr(SoakPlan, "portion", lambda *words: ran.append(words))
    with pytest.raises((BitlaneError, LinkError), match=wanted) as caught:
        soak("--replay", case)
    assert "\n" not in str(caught.value)
    assert not ran


def test_one_case_of_the_other_kind_has_waves_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Opened(Exception):
        pass

    def opened(url: str) -> Any:
        raise Opened(url)

    monkeypatch.setattr(device_run, "open_link", opened)
    with pytest.raises(Opened, match=r"sim:compiled\?width=32&vcd=.*case.vcd"):
        soak("--replay", "1:width=32", "--vcd", str(tmp_path / "case.vcd"))
