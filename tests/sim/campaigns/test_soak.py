"""A soak finds what is planted, and its line replays it; without a bug it finds nothing.

All of an instance among many follows from its number.
"""

import argparse
import shlex
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bitlane import reference
from bitlane.command_line import CHECK_FAILED, DONE
from bitlane.errors import BitlaneError, LinkError
from bitlane_rtl.abi import Op
from bitlane_sim.campaigns import (
    Case,
    Computation,
    HarnessCircuit,
    SoakPlan,
    add_soak,
    command,
    contract,
    device_run,
    make_circuit,
    open_circuit,
    parse_case,
    random_case,
    run_case,
    trials,
)
from bitlane_sim.device import Simulator, open_link
from support.sim.harnesses import command_line
from support.system.clusters import cluster_of

pytestmark = [pytest.mark.slow, pytest.mark.any_face]

NARROW = "width=32&ports=1&memory=256KiB"


def soak(*words: str) -> int:
    return command_line(add_soak, "soak", *words)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the work in this process, in which a test can plant a bug."""

    @contextmanager
    def shared_by(arguments: argparse.Namespace) -> Iterator[Any]:
        with ThreadPoolExecutor(1) as executor:
            yield executor, 1

    monkeypatch.setattr(command, "shared_by", shared_by)


def test_random_cases_are_of_every_kind_and_can_be_written_and_read() -> None:
    cases = [random_case(seed) for seed in range(200)]
    assert [parse_case(str(case)) for case in cases] == cases
    assert cases == [random_case(seed) for seed in range(200)]
    for option in ("ops=", "lanes=", "modes=", "search=", "width=128", "loops=1&", "ports=1"):
        assert any(option in case.configuration for case in cases), option


def test_every_random_case_is_a_circuit(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    class Made(Exception):
        pass

    def made(configuration: Any, evaluator: str, **_: object) -> Any:
        seen.append(configuration)
        raise Made

    monkeypatch.setattr("bitlane_sim.device.link.Simulator", made)
    for seed in range(300):
        with pytest.raises(Made):
            open_link(random_case(seed).url)
    assert len(set(map(str, seen))) > 250


def test_trials_are_of_every_kind() -> None:
    with open_link("sim:compiled") as link:
        from bitlane.driver import Driver

        geometry = Driver(link).geometry
    some = [trials.random_trial(np.random.default_rng(seed), geometry) for seed in range(2000)]
    assert {trial.op for trial in some} == set(geometry.ops)
    for found in (
        [trial for trial in some if trial.summed],
        [trial for trial in some if trial.a == trial.y],
        [trial for trial in some if min(trial.a.strides) < 0],
        [trial for trial in some if 0 in trial.a.strides],
        [trial for trial in some if trial.saturate],
        [trial for trial in some if trial.test],
        [trial for trial in some if trial.negate and trial.summed],
    ):
        assert 20 < len(found) < 1500
    for trial in some:
        assert trial.written().any()
        assert trial.read().any()


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    first, again = (run_case(Case(1, NARROW), 150) for _ in range(2))
    assert first.failure == ""
    assert first == again, "not all follows from the seed"
    assert first.commands > 150
    assert first.faults > 10


@pytest.mark.usefixtures("here")
def test_a_bug_in_the_model_is_found_and_replayed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = reference.compute

    def wrong(op: Op, a: Any, b: Any = None, **options: Any) -> Any:
        if op is Op.SHIFT_LEFT and options["saturate"]:
            options["saturate"] = False
        return right(op, a, b, **options)

    with monkeypatch.context() as patch:
        patch.setattr(reference, "compute", wrong)
        assert soak("--minutes", "0.001", "--config", NARROW, "--steps", "200") == CHECK_FAILED
        summary, line = capsys.readouterr().out.splitlines()
        assert "1 configurations" in summary
        assert line.startswith(f"bitlane soak --replay '1:{NARROW}'  # step ")
        assert "SHIFT_LEFT" in line
        # The line is for a shell.
        words = shlex.split(line, comments=True)[2:]
        assert soak(*words) == CHECK_FAILED
        assert capsys.readouterr().out == f"{line}\n"
    assert soak(*words, "--steps", "200") == DONE
    assert "no failure" in capsys.readouterr().out


def test_a_command_too_few_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = trials.lower

    def short(*what: Any, **options: Any) -> Any:
        commands = list(right(*what, **options))
        return iter(commands[:-1] if len(commands) > 1 else commands)

    monkeypatch.setattr(trials, "lower", short)
    outcome = run_case(Case(1, NARROW), 600)
    assert "differ" in outcome.failure


def test_a_fault_that_does_not_come_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Simulator, "inject_error", lambda *_, **__: None)
    assert "no READ_ERROR" in (failure := run_case(Case(1, NARROW), 200).failure) or (
        "no WRITE_ERROR" in failure
    )


def test_processes_share_the_cases(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--minutes", "0.02", "--workers", "2", "--config", NARROW, "--steps", "20")
    assert soak(*words) == DONE
    (summary,) = capsys.readouterr().out.splitlines()
    configurations, steps, *_ = summary.split(", ")
    assert configurations == "1 configurations"
    assert int(steps.split()[0].replace(",", "")) >= 40


def test_a_cluster_shares_the_cases(capsys: pytest.CaptureFixture[str]) -> None:
    with cluster_of(2) as client:
        address = client.scheduler_info()["address"]
        words = ("--minutes", "0.02", "--config", NARROW, "--steps", "20", "--cluster", address)
        assert soak(*words) == DONE
    assert " 0 commands" not in capsys.readouterr().out


def test_bad_input_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in ("width=32", "x:width=32", "1.5:"):
        with pytest.raises(BitlaneError, match="expected SEED:CONFIGURATION"):
            soak("--replay", wrong)
    with pytest.raises(LinkError, match="width"):
        soak("--replay", "1:width=33")
    for more in (("--cluster", "tcp://127.0.0.1:9"), ("--workers", "2"), ("--config", NARROW)):
        with pytest.raises(BitlaneError, match=f"{more[0]}: goes only without --replay"):
            soak("--replay", f"1:{NARROW}", *more)
    with pytest.raises(LinkError, match="no scheduler there"):
        soak("--cluster", "tcp://127.0.0.1:9")
    numbers = ("--minutes", "0"), ("--minutes", "x"), ("--steps", "0"), ("--seed", "-1")
    for words in (*numbers, ("--workers", "0")):
        with pytest.raises(SystemExit):
            soak(*words)
    capsys.readouterr()


def test_what_is_compiled_for_a_random_circuit_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    import os
    from pathlib import Path

    folders = []

    def looked(case: Case, steps: int) -> Any:
        folders.append(os.environ["BITLANE_CACHE"])
        assert Path(folders[-1]).is_dir()
        return device_run.Outcome(case)

    before = dict(os.environ)
    monkeypatch.setattr(device_run, "run_case", looked)
    device_run.run_apart(Case(1, ""), 1)
    assert not Path(folders[0]).exists()
    assert dict(os.environ) == before


# --- many instances -------------------------------------------------------------------------------


OPTIONS = "width=32&ports=1&memory=16KiB&loops=2&slots=4&ops=xor,not,count,shift_left"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("circuit")
    make_circuit(OPTIONS).write(path)
    return str(path)


@pytest.fixture
def words(folder: str) -> list[str]:
    return ["--instances", "300", "--seed", "3", "--circuit", folder, "--backend", "threads"]


def test_an_instance_is_the_same_whoever_is_beside_it(folder: str) -> None:
    plan = SoakPlan(open_circuit(Path(folder)), 300, 3)
    many, one = plan.portion(np.arange(300)), plan.portion(np.array([77]))
    assert np.array_equal(many.ram[77], one.ram[0])
    assert np.array_equal(many.work.records[77], one.work.records[0])
    assert many.work.counts[77] == one.work.counts[0]
    assert isinstance(plan.circuit, HarnessCircuit)
    for name, values in many.work.settings.items():
        assert np.broadcast_to(values, 300)[77] == np.broadcast_to(one.work.settings[name], 1)[0]


def test_many_instances_find_nothing_where_nothing_is_wrong(
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


def test_bad_input_of_many_is_refused(folder: str) -> None:
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
