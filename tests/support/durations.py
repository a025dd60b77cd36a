"""Seconds of each module of tests, as runs measure them: long ones start first. No tests here.

    python -m support.durations FILE

writes the seconds of FILE, which ``--store-durations FILE`` made, into ``tests/durations.json``.
"""

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

PROJECT = Path(__file__).parents[2]
TREES = ("tests", "cppsim/tests")
"""Folders of test modules, from `PROJECT`."""

RECORDED = PROJECT / "tests" / "durations.json"
"""Seconds of each module in a run of all tests without stored verdicts."""


def module(nodeid: str) -> str:
    """Return the path of a test's module, without ``tests/`` at its start."""
    return nodeid.partition("::")[0].removeprefix("tests/")


def is_there(name: str) -> bool:
    """Return whether there is a module that `module` names ``name``."""
    return any((PROJECT / folder / name).is_file() for folder in ("", "tests"))


def read(path: Path = RECORDED) -> dict[str, float]:
    """Return the seconds of ``path``; of no module if it does not exist."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def add(path: Path, seconds: Mapping[str, float], known: Collection[str] = ()) -> None:
    """Add ``seconds`` to those in ``path``: a module's tests may be of two runs.

    A module of ``known`` keeps what is recorded, as some of its tests did not run.
    """
    total, recorded = read(path), read()
    for name, taken in seconds.items():
        total[name] = round(total.get(name, 0) + taken, 1)
    for name in known:
        total[name] = max(total.get(name, 0), recorded.get(name, 0))
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, total)


def record(path: Path, recorded: Path = RECORDED) -> None:
    """Write the seconds of ``path`` to ``recorded``, and keep those of modules that did not run."""
    known = read(recorded) | read(path)
    _write(recorded, {name: taken for name, taken in known.items() if is_there(name)})


def _write(path: Path, seconds: Mapping[str, float]) -> None:
    path.write_text(json.dumps(dict(sorted(seconds.items())), indent=1) + "\n", encoding="utf-8")


def main(words: Sequence[str]) -> int:
    """Run the program. Return 1 if the file does not exist."""
    (path,) = words
    if not Path(path).is_file():
        print(f"{path}: no such file; `make ci` measures and writes it", file=sys.stderr)
        return 1
    record(Path(path))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
