"""Figures of a recording, and of the order in which a command's streams visit memory."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product
from typing import Final

import numpy as np
from bokeh.models import (
    BasicTickFormatter,
    ColumnDataSource,
    FactorRange,
    FixedTicker,
    HoverTool,
    Range,
    Range1d,
)
from bokeh.plotting import figure

from bitlane_rtl.abi import Mode

from ..driver import Command, Walk
from ..links import Recording
from .activity import CAUSES, RecordedCommand, RecordedPort, beats_carried, bursts, stalls

PORT_COLOURS: Final = {
    "read": "#2a9d8f",
    "read A": "#2a9d8f",
    "read B": "#6aa84f",
    "write": "#e08e45",
}
STALL_COLOURS: Final = dict(
    zip(
        CAUSES,
        ("#b56576", "#d1495b", "#8d6cab", "#c0392b", "#a08cc4", "#d98c9a"),
        strict=True,
    )
)
"""Reds where the circuit waits for the memory, violets where the memory waits for the circuit."""

_COMMAND_COLOUR: Final = "#4c78d0"
_POINTS: Final = 150
"""Points of a line; each is the mean of equally many cycles, so that single ones do not show."""

_DRAWN: Final = 20_000
"""Spans of one kind that are drawn, the first ones: a browser still moves them smoothly."""
_TOOLS: Final = "xpan,xwheel_zoom,xzoom_in,xzoom_out,reset"
_ROW: Final = 26


def first_cycle(recording: Recording) -> int:
    """Return the first cycle of a drawing: the first doorbell."""
    rung = recording.cycles[recording.doorbell]
    return int(rung[0]) if len(rung) else 0


def plot_rates(recording: Recording, ports: Sequence[RecordedPort], cycles: Range1d) -> figure:
    """Plot the beats a cycle of each port, and the bound of one beat a cycle."""
    begin, end = first_cycle(recording), recording.end
    width = max(1, -(-(end - begin) // _POINTS))
    edges = np.append(np.arange(begin, end, width), end)
    plot = _figure(cycles, Range1d(start=0, end=1.15), 170)
    plot.toolbar_location = None
    plot.yaxis.axis_label = "beats a cycle"
    plot.yaxis.ticker = FixedTicker(ticks=[0, 0.5, 1])
    plot.line([begin, end], [1, 1], line_dash="dashed", color="#888888", legend_label="bound")
    at = np.append(recording.cycles, recording.end)
    for port in ports:
        carried = np.interp(edges, at, beats_carried(recording, port.data))
        rate = np.diff(carried) / np.diff(edges)
        x, y = np.repeat(edges, 2)[1:-1], np.repeat(rate, 2)
        plot.line(x, y, color=PORT_COLOURS[port.name], line_width=1.8, legend_label=port.name)
    plot.legend.orientation = "horizontal"
    plot.add_layout(plot.legend[0], "above")
    return plot


def plot_spans(
    recording: Recording,
    ports: Sequence[RecordedPort],
    commands: Sequence[tuple[str, RecordedCommand]],
    cycles: Range1d,
) -> figure:
    """Plot a row for the commands, which have names, and two for each port: bursts and stalls."""
    rows = ["commands", *(name for x in ports for name in (x.name, f"{x.name} stalls"))]
    plot = _figure(cycles, FactorRange(factors=rows[::-1]), _ROW * len(rows) + 50)
    plot.xaxis.axis_label = "clock cycle"
    ends = [(name, x.started, recording.end if x.end < 0 else x.end) for name, x in commands]
    _draw(plot, "commands", _COMMAND_COLOUR, ends)
    for port in ports:
        seen = [
            (f"{x.beats} beats at {x.address:#010x}, asked in {x.asked}", x.first, x.last + 1)
            for x in bursts(recording, port)
        ]
        _draw(plot, port.name, PORT_COLOURS[port.name], seen)
        found = stalls(recording, port)
        for cause, colour in STALL_COLOURS.items():
            mine = [
                (f"{cause}: {CAUSES[cause]}", x.first, x.end) for x in found if x.cause == cause
            ]
            _draw(plot, f"{port.name} stalls", colour, mine)
    plot.add_tools(
        HoverTool(tooltips="@what<br>cycles @first to @last, @cycles", point_policy="follow_mouse")
    )
    return plot


def _draw(plot: figure, row: str, colour: str, drawn: Iterable[tuple[str, int, int]]) -> None:
    shown = [each for _, each in zip(range(_DRAWN), drawn, strict=False)]
    if not shown:
        return
    names, firsts, ends = zip(*shown, strict=True)
    source = ColumnDataSource(
        {
            "what": names,
            "first": firsts,
            "end": ends,
            "last": [end - 1 for end in ends],
            "cycles": [end - first for first, end in zip(firsts, ends, strict=True)],
            "row": [row] * len(shown),
        }
    )
    plot.hbar(
        y="row",
        left="first",
        right="end",
        height=0.72,
        source=source,
        fill_color=colour,
        line_color="#ffffff",
        line_alpha=0.3,
        line_width=0.25,
    )


def _figure(cycles: Range1d, rows: Range, height: int) -> figure:
    plot = figure(
        x_range=cycles,
        y_range=rows,
        height=height,
        sizing_mode="stretch_width",
        tools=_TOOLS,
        active_scroll="xwheel_zoom",
        background_fill_alpha=0,
        border_fill_alpha=0,
        outline_line_alpha=0.2,
        min_border_left=96,
        min_border_right=40,
    )
    plot.toolbar.logo = None
    plot.xaxis.formatter = BasicTickFormatter(use_scientific=False)
    plot.ygrid.grid_line_alpha = 0.25
    plot.xgrid.grid_line_alpha = 0.25
    return plot


_DRAWN_ELEMENTS = 256
"""Elements in a drawing."""
_WIDTH, _HEIGHT, _MARGIN = 320, 96, 6


def streams(command: Command) -> list[tuple[str, Walk, int]]:
    """Return name, walk and element size in bytes of each stream of a command."""
    found = [("A", command.a, command.lane.bytes), ("Y", command.y, command.out_lane.bytes)]
    if command.b is not None:
        found.insert(1, ("B", command.b, command.lane.bytes))
    return found


def walk_addresses(walk: Walk, run: int, counts: tuple[int, ...], size: int) -> Iterator[int]:
    """Yield the addresses of the elements of ``size`` bytes, in the order of the walk.

    A run that repeats one element, or is summed into one, visits it once for each of its elements.
    """
    step = {Mode.DENSE: size, Mode.STRIDED: walk.stride}.get(walk.mode, 0)
    # Bytes from the start of a run to the base of its jumps.
    behind = step * (run - 1) if walk.mode is Mode.STRIDED else 0
    start = walk.base
    for done in product(*(range(times) for times in reversed(counts))):
        yield from (start + step * element for element in range(run))
        loops = zip(walk.jumps, counts, reversed(done), strict=True)
        start += behind + next((jump for jump, times, now in loops if now < times - 1), 0)


def draw_walk(command: Command, name: str, walk: Walk, size: int) -> str:
    """Return an SVG: elements in order from left to right, addresses from the top down."""
    addresses = list(
        islice(walk_addresses(walk, command.run, command.counts, size), _DRAWN_ELEMENTS + 1)
    )
    shown = addresses[:_DRAWN_ELEMENTS]
    low, span = min(shown), max(max(shown) - min(shown), 1)
    across = (_WIDTH - 2 * _MARGIN) / max(len(shown) - 1, 1)
    points = [
        (_MARGIN + k * across, _MARGIN + (x - low) / span * (_HEIGHT - 2 * _MARGIN))
        for k, x in enumerate(shown)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.6"/>' for x, y in points)
    first = "first " if len(addresses) > len(shown) else ""
    more = f"{first}{len(shown)} elements"
    label = f"{name}: {more}, {low:#x} to {low + span:#x}"
    return (
        f'<svg class="walk" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">'
        f"<title>{label}</title>"
        f'<polyline points="{line}"/>{dots}</svg>'
    )
