"""Synthesises and places a circuit out of context, with the tools that build boards.

A tool that fails never gives a result.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from amaranth.back import rtlil  # type: ignore[attr-defined]  # stubs lag
from amaranth.lib import wiring

from ..flow import YOSYS, Cells, Tool
from ..flow.tools import Progress, ToolError, run_tool
from .chips import Chip
from .wrapper import CORE, OutOfContext

__all__ = ["Arc", "Placer", "SeedResult", "with_inner"]


@dataclass(frozen=True, slots=True)
class Arc:
    """A part of a path: ``delay`` in ns through the cell or along the net called ``name``."""

    kind: str
    delay: float
    name: str


@dataclass(frozen=True, slots=True)
class SeedResult:
    """One seed's result: ``mhz`` of the slowest clock, and the ``path`` that bounds it.

    ``clocks``: MHz of each clock, by its domain.
    """

    seed: int
    mhz: float
    path: tuple[Arc, ...]
    clocks: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Placer:
    """Places circuits on ``chip``, with files in ``folder`` and calls of ``progress``.

    ``clocks``: the clock domains of the circuits.

    All methods raise `ToolError` if a tool fails.
    """

    chip: Chip
    folder: Path
    progress: Progress
    clocks: tuple[str, ...] = ("sync",)

    def synthesise(self, circuit: wiring.Component) -> Cells:
        """Map ``circuit`` and its wrapper to cells, and return the cells of the circuit alone."""
        (self.folder / "pins").write_text(self.chip.pins, encoding="utf-8")
        whole = (f"setattr -mod -unset keep_hierarchy top.{CORE}", "flatten", "clean")
        cells = self._map(circuit, CORE, *whole, *self.chip.pads, "write_json top.json")[CORE]
        self.chip.flow.finish(self.folder / "top.json")
        return cells

    def parts(self, circuit: wiring.Component) -> dict[str, Cells]:
        """Return the cells of each part of ``circuit`` by path, its own parts included.

        Yosys simplifies nothing across the border of a part, so their sum is more than
        `synthesise` returns.
        """
        within = f"{CORE}."
        cells = self._map(circuit, f"{CORE}*")
        return {path.removeprefix(within): cells[path] for path in cells if path.startswith(within)}

    def route(self, seed: int) -> SeedResult:
        """Place and route the netlist that `synthesise` wrote."""
        step = self.chip.flow.route("top", self.chip.mhz, seed, (*self.chip.part, "-q"))
        timing = self.folder / "top.timing.json"
        timing.unlink(missing_ok=True)
        self._run(step.tool, *step.arguments)
        report = json.loads(timing.read_text(encoding="utf-8"))
        found = report["fmax"]
        if len(found) != len(self.clocks):
            raise ToolError(
                f"nextpnr: {len(found)} clocks in the report; expected {len(self.clocks)}"
            )
        slowest = min(found, key=lambda clock: float(found[clock]["achieved"]))
        path: tuple[Arc, ...] = ()
        for candidate in report["critical_paths"]:
            if slowest in candidate["from"] and slowest in candidate["to"]:
                path = tuple(_arc(part) for part in candidate["path"])
        clocks = {_domain(net, self.clocks): each["achieved"] for net, each in found.items()}
        return SeedResult(seed, found[slowest]["achieved"], path, clocks)

    def _map(self, circuit: wiring.Component, modules: str, *rest: str) -> dict[str, Cells]:
        """Map ``circuit`` to cells, each of ``modules`` by itself; then run ``rest``.

        Returns the cells of these modules.
        """
        wrapper = OutOfContext(circuit, self.clocks)
        # A circuit reads nothing else of a platform.
        platform: Any = SimpleNamespace(family=self.chip.name)
        text = rtlil.convert(wrapper, name="top", platform=platform, ports=wrapper.ports)
        (self.folder / "top.il").write_text(text, encoding="utf-8")
        script = [
            "read_rtlil top.il",
            f"setattr -mod -set keep_hierarchy 1 top.{modules}",
            f"{self.chip.flow.synthesis} {self.chip.synthesis} -top top",
            "check -assert",
            "tee -q -o stat.json stat -json",
            *rest,
        ]
        self._run(YOSYS, "-q", "-p", "; ".join(script))
        found = json.loads((self.folder / "stat.json").read_text(encoding="utf-8"))["modules"]
        counts = {name.lstrip("\\"): each["num_cells_by_type"] for name, each in found.items()}
        return {
            name.removeprefix("top."): self.chip.flow.count(with_inner(name, counts))
            for name in sorted(counts)
        }

    def _run(self, tool: Tool, *arguments: str) -> None:
        run_tool(tool, arguments, self.folder, self.folder / f"{tool.command}.log", self.progress)


def with_inner(module: str, counts: Mapping[str, Mapping[str, int]]) -> Counter[str]:
    """Return the cells of ``module`` and of the modules in it, by type."""
    cells: Counter[str] = Counter()
    for kind, number in counts[module].items():
        inner = with_inner(kind, counts) if kind in counts else Counter([kind])
        cells.update({each: number * count for each, count in inner.items()})
    return cells


def _domain(net: str, domains: Sequence[str]) -> str:
    """Return the domain whose clock nextpnr calls ``net``, after the pin of `OutOfContext`."""
    return next((name for name in domains[1:] if f"clk_{name}" in net), domains[0])


def _arc(part: Mapping[str, Any]) -> Arc:
    return Arc(part["type"], float(part["delay"]), part.get("net") or part["to"]["cell"])
