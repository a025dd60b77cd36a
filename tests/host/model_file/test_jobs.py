"""Consecutive dispatches are one job of the device, and take effect in order."""

from typing import Any

import pytest

from support.host.model_runner import Runner, buffer, not_model, tensor


def xor_model(*commands: Any) -> dict[str, Any]:
    """Return a model with resources of 4 bytes; the command "abc" is c = a XOR b."""
    vector = tensor("UINT8", [4])
    desc = {"ATensor": vector, "BTensor": vector, "OutputTensor": vector}

    def dispatch(a: str, b: str, y: str) -> dict[str, Any]:
        bindings = {"ATensor": a, "BTensor": b, "OutputTensor": y}
        return {"type": "dispatch", "dispatchable": "xor", "bindings": bindings}

    return not_model() | {
        "resources": {name: buffer("UINT8", [1 << k] * 4) for k, name in enumerate("abcdef")},
        "dispatchables": {"xor": {"type": "ELEMENT_WISE_BIT_XOR", "desc": desc}},
        "commands": [dispatch(*x) if isinstance(x, str) else x for x in commands],
    }


def show(name: str) -> dict[str, Any]:
    return {"type": "print", "resource": name}


def jobs(runner: Runner, model: dict[str, Any], *, check: bool) -> list[int]:
    """Return the number of commands that each doorbell submits; expect that all checks pass."""
    runner.lines.clear()
    runner.driver.model.doorbells.clear()
    assert runner(model, check=check)
    return list(runner.driver.model.doorbells)


@pytest.mark.parametrize("check", [False, True])
def test_dispatches_in_a_row_are_one_job(runner: Runner, check: bool) -> None:
    assert jobs(runner, xor_model("abc", "ade", "bdf"), check=check) == [3]
    figures = {line.partition(", ")[2] for line in runner.lines if line.startswith("Dispatch")}
    (text,) = figures  # of the job, so the same for each
    assert text.endswith(" ms median (CPU) for a job of 3 dispatches")


@pytest.mark.parametrize("check", [False, True])
def test_each_sees_what_those_before_it_wrote(runner: Runner, check: bool) -> None:
    # c is read before and after it is written; a, which is read first, is written in the end.
    model = xor_model("acd", "abc", "ace", "bca", show("d"), show("e"), show("a"))
    assert jobs(runner, model, check=check) == [4]
    shown = [line.partition(": ")[2] for line in runner.lines if line.startswith("Resource")]
    assert shown == ["5, 5, 5, 5", "2, 2, 2, 2", "1, 1, 1, 1"]


def test_cycles_are_those_of_the_job(runner: Runner) -> None:
    assert runner(xor_model("abc", "ade"), check=False, cycles=True)
    assert [line.rpartition("(CPU), ")[2] for line in runner.lines] == [
        "246 cycles for a job of 2 dispatches"
    ] * 2


@pytest.mark.parametrize(
    "between", [show("f"), {"type": "writeFile", "resource": "f", "targetPath": "f.bin"}]
)
def test_what_shows_a_resource_ends_a_job(runner: Runner, between: dict[str, Any]) -> None:
    assert jobs(runner, xor_model("abc", between, "ade"), check=False) == [1, 1]
    kinds = [line.partition(" ")[0] for line in runner.lines]
    assert kinds == ["Dispatch", "Resource", "Dispatch"]


def test_with_checks_an_output_that_is_written_again_ends_a_job(runner: Runner) -> None:
    model = xor_model("abc", "bcd", "abc", "cdc")
    assert jobs(runner, model, check=False) == [4]
    assert jobs(runner, model, check=True) == [2, 1, 1]
    assert [line.partition(" ")[0] for line in runner.lines] == ["Dispatch", "Check"] * 4


def test_a_difference_is_found_where_it_arose(runner: Runner) -> None:
    model = xor_model("abc", "bcd", "bde")
    right = runner.driver.model.execute

    def spoil(record: Any) -> None:
        runner.driver.model.flip = 2 if runner.driver.model.calls.count("XOR") == 1 else None
        right(record)

    runner.driver.model.execute = spoil  # type: ignore[method-assign]
    assert not runner(model)
    checks = [line for line in runner.lines if line.startswith("Check")]
    assert ["differ" in line for line in checks] == [False, True, False]
    assert "1 of 4 bytes differ, first byte 2 of 'd'" in checks[1]
