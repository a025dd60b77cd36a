"""Small circuits for tests of campaigns, made and compiled once."""

import argparse
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from bitlane_sim.campaigns import HarnessCircuit, make_circuit, open_circuit

SMALL = "width=32&ports=1&memory=4KiB&loops=2&slots=2&ops=xor,not,count"
"""A circuit that is compiled in seconds."""


@cache
def small_folder() -> Path:
    """Return a folder with the small circuit."""
    folder = Path(mkdtemp(prefix="bitlane-stand-"))
    make_circuit(SMALL).write(folder)
    return folder


def small_circuit() -> HarnessCircuit:
    """Open the circuit in `small_folder`."""
    return open_circuit(small_folder())


def quiet(done: object) -> None:
    """Discard the progress."""


def command_line(add: Callable[..., None], *words: str) -> int:
    """Run the subcommand that ``add`` adds; return its exit code."""
    parser = argparse.ArgumentParser()
    add(parser.add_subparsers())
    arguments = parser.parse_args(words)
    code: int = arguments.run(arguments)
    return code
