"""Runs model files on an open device, a line for each."""

from collections.abc import Callable, Sequence
from contextlib import chdir
from pathlib import Path

from bitlane import dml
from bitlane.device import Device
from bitlane.model_file import load_model, prepare, run

__all__ = ["run_examples"]


def run_examples(
    device: Device,
    models: Sequence[Path],
    output: Path,
    say: Callable[[str], object],
    lap: Callable[[], object],
) -> bool:
    """Run every model file, each dispatch compared with the NumPy model; whether all agreed.

    Files that models write go into ``output``, which exists. What a model prints is shown only if
    a check fails. ``lap`` is called after each command. Raises ``ModelFileError`` for a file that
    is wrong or asks too much.
    """
    all_right = True
    for path in models:
        lines: list[str] = []

        def note(line: str, lines: list[str] = lines) -> None:
            lines.append(line)
            lap()

        with dml.Device(device.driver) as face:
            prepared = prepare(load_model(path), face)
            with chdir(output):
                right = run(prepared, note)
        all_right = all_right and right
        dispatches = len(prepared.dispatches)
        count = "1 dispatch" if dispatches == 1 else f"{dispatches} dispatches"
        say(f"  {path.stem:24}{count:14}{'identical' if right else 'DIFFERENT'}")
        if not right:
            for line in lines:
                say(f"    {line}")
    return all_right
