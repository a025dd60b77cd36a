"""Store what a benchmark prints: python cppsim/benchmarks/record.py NAME [ARGUMENT ...].

NAME is a benchmark beside this file, such as ``tiny``, which is called with each ARGUMENT. Its
entry of ``cppsim/docs/measurements.json`` gets the date, the machine, the versions and the printed
lines, which the block below ``printed: NAME`` of ``measurements.md`` shows. If the benchmark fails,
both stay as they were, and the exit status is that of the benchmark.
"""

import datetime
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "docs" / "measurements.json"
PAGE = FILE.with_suffix(".md")


def entry(name: str, arguments: Sequence[str], printed: str) -> dict[str, Any]:
    """Return the entry of a benchmark that has ``printed`` its table."""
    compiler = ["g++", "-dumpfullversion"]
    found = subprocess.run(compiler, capture_output=True, text=True, check=False).stdout.strip()
    versions = {each: version(each) for each in ("cppsim", "amaranth")}
    return {
        "command": " ".join(["python", f"cppsim/benchmarks/{name}.py", *arguments]),
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "versions": {**versions, "Python": platform.python_version(), "g++": found},
        "printed": printed.splitlines(),
    }


def shown(page: str, name: str, printed: Iterable[str]) -> str:
    """Return ``page`` with the lines ``printed`` in the block of the benchmark ``name``."""
    lines = "".join(f"{line}\n" for line in printed)
    head = rf"(<!-- printed: {re.escape(name)} -->\n\n```text\n)[^`]*"
    return re.sub(head, lambda mark: mark[1] + lines, page)


def main(name: str, *arguments: str) -> int:
    """Run the benchmark, and write the file. Return the exit status."""
    command = [sys.executable, str(Path(__file__).with_name(f"{name}.py")), *arguments]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    print(ran.stdout, end="")
    if ran.returncode == 0:
        entries = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
        entries[name] = entry(name, arguments, ran.stdout)
        FILE.write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")
        page = shown(PAGE.read_text(encoding="utf-8"), name, entries[name]["printed"])
        PAGE.write_text(page, encoding="utf-8")
    return ran.returncode


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("NAME is missing; expected a benchmark, such as tiny")
    sys.exit(main(*sys.argv[1:]))
