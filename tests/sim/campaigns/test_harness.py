"""A batch of stands does what one alone does, bit for bit, and is written into a folder."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from bitlane.driver import encode
from bitlane.errors import BitlaneError
from bitlane_rtl.abi import RECORD_WORDS, Op, Port, Status
from bitlane_sim.campaigns import (
    HarnessCircuit,
    Observed,
    Verdict,
    Workload,
    compare,
    draw,
    execute,
    expect_answers,
    expect_cleared,
    noise,
    open_circuit,
    recover,
    submit,
    traffic_of,
)
from bitlane_sim.campaigns.harness import run_alone
from bitlane_sim.commands import move
from bitlane_sim.system import Hang, Response
from cppsim.batch.__main__ import main
from cppsim.stored import read_folder
from support.sim.harnesses import small_circuit

pytestmark = pytest.mark.any_face


@pytest.fixture(scope="module")
def circuit() -> HarnessCircuit:
    return small_circuit()


def one_job(instances: int, size: int = 100) -> Workload:
    """Return the workload of an XOR of consecutive bytes, with random stalls per instance."""
    words = encode(move(Op.XOR, size, 3, 1030, 2061), interrupt=True)
    records = np.zeros((instances, 1, RECORD_WORDS), np.uint32)
    records[:, 0, : words.size] = words
    numbers = np.arange(instances)
    stalls = {f"memory__stall_{x}": draw(1, numbers, x, 160) for x in ("ar", "r", "aw", "w", "b")}
    return Workload(
        records,
        np.full((instances, 1), words.size),
        np.ones(instances, np.int64),
        timeout=300,
        limit=5000,
        settings={**stalls, "memory__seed": draw(1, numbers, "seed", 1 << 32)},
    )


def observed(circuit: HarnessCircuit, work: Workload, before: NDArray[np.uint8]) -> Observed:
    """Run the work from ``before`` in the RAM, and clear what has failed."""
    runner = circuit.runner(len(before), "threads")
    circuit.put_ram(runner, before)
    return Observed(runner.run(recover(submit(work), 200)), circuit.ram(runner))


@pytest.mark.slow
def test_every_instance_computes_and_its_timing_is_its_own(circuit: HarnessCircuit) -> None:
    work = one_job(32)
    before = noise(1, np.arange(32), 4096)
    found = observed(circuit, work, before)
    expected = execute(before, work.records, work.counts, circuit.configuration)
    wanted = before.copy()
    wanted[:, 2061:2161] = before[:, 3:103] ^ before[:, 1030:1130]
    assert np.array_equal(expected.memory, wanted)
    verdict = Verdict(32)
    expect_answers(verdict, found)
    expect_cleared(verdict, found)
    compare(verdict, before, work, expected, found)
    assert not verdict.reasons
    assert len(set(found.results["came"].tolist())) > 16

    found.ram[7, 9] ^= 1
    found.results["RETIRED"][8] = 0
    found.results["cleared STATUS"][9] = 1
    expect_cleared(verdict, found)
    compare(verdict, before, work, expected, found)
    assert verdict.reasons == {
        7: f"1 bytes are wrong, the first at 0x9: {found.ram[7, 9]:#04x}, expected"
        f" {before[7, 9]:#04x}",
        8: "RETIRED is 0, expected 1",
        9: "STATUS is 0x1 after CLEAR",
    }


def test_a_doorbell_too_far_ahead_is_refused_as_the_model_says(circuit: HarnessCircuit) -> None:
    assert circuit.configuration.slots == 2
    job = one_job(3)
    work = replace(
        job,
        records=np.repeat(job.records, 3, axis=1),
        used=np.repeat(job.used, 3, axis=1),
        counts=np.array([1, 3, 3]),
    )
    before = noise(3, np.arange(3), 4096)
    found = observed(circuit, work, before)
    expected = execute(before, work.records, work.counts, circuit.configuration)
    assert expected.status.tolist() == [Status.OK, Status.BAD_DOORBELL, Status.BAD_DOORBELL]
    assert np.array_equal(expected.memory[1:], before[1:])
    verdict = Verdict(3)
    expect_answers(verdict, found)
    expect_cleared(verdict, found)
    compare(verdict, before, work, expected, found)
    assert not verdict.reasons


@pytest.mark.slow
def test_one_alone_does_what_it_does_among_many(circuit: HarnessCircuit, tmp_path: Path) -> None:
    work = one_job(8)
    work.settings.update(
        memory__error_read=1,
        memory__error_response=int(Response.DECERR),
        memory__error_last=4095,
        first=np.arange(8) * 30,
        last=np.arange(8) * 30,
    )
    before = noise(2, np.arange(8), 4096)
    runner = circuit.runner(8, "threads")
    circuit.put_ram(runner, before)
    programs = [traffic_of(recover(submit(work), 200), ("r", "w")), submit(work)]
    many = [(runner.run(x), circuit.ram(runner)) for x in programs]
    codes = Observed(*many[0]).field("CODE").tolist()
    assert {Status.OK, Status.READ_ERROR} == set(codes)
    waves = tmp_path / "one.vcd"
    for instance in (1, 2):
        alone = run_alone(circuit.configuration, before[instance], programs, instance, waves)
        for one, (results, ram) in zip(alone, many, strict=True):
            assert one.ram.tolist() == [ram[instance].tolist()]
            assert {name: x.tolist() for name, x in one.results.items()} == {
                name: [x[instance].tolist()] for name, x in results.items()
            }
    assert "$enddefinitions" in waves.read_text(encoding="utf-8")


def test_what_goes_wrong_begins_when_it_is_told_to(circuit: HarnessCircuit) -> None:
    work = one_job(3, size=200)
    work.settings.update(
        memory__stall_r=np.zeros(3, int),
        memory__hang_write=int(Hang.NO_ACCEPT),
        first=np.array([0, 60, 4000]),
        last=5000,
    )
    found = observed(circuit, work, noise(4, np.arange(3), 4096))
    assert found.field("CODE").tolist() == [Status.TIMEOUT, Status.TIMEOUT, Status.OK]
    assert found.field("PORT").tolist()[:2] == [Port.WRITE, Port.WRITE]


def test_a_reset_is_one_of_the_system_and_not_of_its_ram(circuit: HarnessCircuit) -> None:
    work = one_job(2, size=200)
    work.settings.update(reset=1, first=np.array([80, 4999]), last=np.array([80, 4999]))
    runner = circuit.runner(2, "threads")
    before = noise(2, np.arange(2), 4096)
    circuit.put_ram(runner, before)
    results = runner.run(submit(work))
    assert results["came"][0] == 0
    assert results["RETIRED"].tolist() == [0, 1]
    assert (circuit.ram(runner)[:, :2061] == before[:, :2061]).all()


def test_its_folder_is_one_of_an_exported_batch(circuit: HarnessCircuit, tmp_path: Path) -> None:
    circuit.write(tmp_path)
    stored = read_folder(tmp_path)
    assert stored.design == open_circuit(tmp_path).design == circuit.design
    assert main([str(tmp_path), "--backend", "threads"]) == 0
    with np.load(tmp_path / "results.npz") as results:
        assert results["memory:ram"].shape == (1, circuit.ram_bytes // 4)


def test_a_folder_that_is_none_is_refused(circuit: HarnessCircuit, tmp_path: Path) -> None:
    with pytest.raises(BitlaneError, match=r"holds no circuit.*write it with --export"):
        open_circuit(tmp_path)
    circuit.write(tmp_path)
    about = (tmp_path / "circuit.json").read_text(encoding="utf-8")
    (tmp_path / "circuit.json").write_text("{}", encoding="utf-8")
    with pytest.raises(BitlaneError, match=r"holds no circuit.*KeyError"):
        open_circuit(tmp_path)
    (tmp_path / "circuit.json").write_text(about, encoding="utf-8")
    (tmp_path / "data.npz").unlink()
    with pytest.raises(BitlaneError, match=r"holds no circuit.*data\.npz"):
        open_circuit(tmp_path)
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(BitlaneError, match="cannot be written"):
        circuit.write(tmp_path / "file")
