"""The page of `bitlane run --report`: self-contained, light and dark."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path

from bokeh.embed import components
from bokeh.model import Model
from bokeh.models import Range1d
from bokeh.resources import Resources

from ..driver import Geometry, LabelledCommands
from ..links import Recording
from ..lowering import beats
from .activity import (
    CAUSES,
    RecordedCommand,
    RecordedPort,
    bursts,
    busy_cycles,
    busy_spans,
    ports,
    recorded_commands,
    stalls,
)
from .disassembly import command_text, walk_text
from .figures import (
    PORT_COLOURS,
    STALL_COLOURS,
    draw_walk,
    first_cycle,
    plot_rates,
    plot_spans,
    streams,
)
from .perfetto import CUT

_DRAWN_COMMANDS = 8
"""Commands of each dispatch that are drawn; the text has all of them."""


@dataclass(frozen=True, slots=True)
class _RecordedDispatch:
    """A dispatch with its recorded commands, without those that were cut off."""

    dispatch: LabelledCommands
    commands: tuple[RecordedCommand, ...]
    first_number: int

    @property
    def name(self) -> str:
        return self.dispatch.label or "initialization"


def write_report(
    path: Path,
    recording: Recording,
    dispatches: Sequence[LabelledCommands],
    geometry: Geometry,
    titles: tuple[str, str],
) -> None:
    """Write the page. ``titles``: the model and the device. Raises ``OSError``."""
    seen = _match(recording, dispatches)
    found = ports(recording)
    script, figures = _figures(recording, found, seen)
    model, device = map(escape, titles)
    parts = [
        f"<header><h1>{model}</h1><p class=soft>on {device}</p></header>",
        *_cut(recording),
        *_summary(recording, found, seen, geometry),
        *figures,
        *(_stalls(recording, found) if found else ()),
        *_dispatches(seen),
    ]
    package = files("bitlane.profile")
    style, code = (package.joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    library = Resources(mode="inline", components=["bokeh"]).render_js()
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{model}: bitlane report</title><style>{style}</style>{library}"
    )
    body = "\n".join(parts)
    text = (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body><main>\n{body}\n</main>'
        f'{script}\n<script type="module">{code}</script></body></html>\n'
    )
    path.write_text(text, encoding="utf-8")


def _match(recording: Recording, dispatches: Sequence[LabelledCommands]) -> list[_RecordedDispatch]:
    all_runs, number, result = recorded_commands(recording), 0, []
    for each in dispatches:
        end = number + len(each.commands)
        result.append(_RecordedDispatch(each, tuple(all_runs[number:end]), number))
        number = end
    return result


def _figures(
    recording: Recording, found: Sequence[RecordedPort], seen: Sequence[_RecordedDispatch]
) -> tuple[str, list[str]]:
    """Return the script that draws, and the elements that it draws into."""
    begin, end = first_cycle(recording), recording.end
    cycles = Range1d(start=begin, end=end, name="cycles")
    named = [
        (f"{each.name}: {command.title}", run)
        for each in seen
        for command, run in zip(each.dispatch.commands, each.commands, strict=False)
    ]
    drawn: dict[str, Model] = {"spans": plot_spans(recording, found, named, cycles)}
    if found:
        drawn = {"rates": plot_rates(recording, found, cycles), **drawn}
    for name, plot in drawn.items():
        plot.name = name
    script, places = components(drawn)
    whole = f'<button data-first="{begin}" data-end="{end}">whole run</button>'
    help_text = "The wheel zooms, dragging moves; what the mouse is on says what it is."
    head = f'<section id="timeline"><h2>Timeline</h2><p class=soft>{help_text} {whole}</p>'
    figures = [f'<div id="{name}">{place}</div>' for name, place in places.items()]
    return script, [head, *figures, "</section>"]


def _cut(recording: Recording) -> Iterator[str]:
    if recording.cut:
        yield f'<p class="cut">{CUT.format(recording.end - 1)}</p>'


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of HTML cells; a cell that begins with a digit is aligned to the right."""
    lines = ["".join(f"<th>{head}</th>" for head in heads)]
    lines += ["".join(_cell(cell) for cell in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<div class="scroll"><table>{body}</table></div>'


def _cell(text: str) -> str:
    return f"<td class=number>{text}</td>" if text[:1].isdigit() else f"<td>{text}</td>"


def _swatch(colour: str) -> str:
    return f'<span class="swatch" style="background:{colour}"></span>'


def _summary(
    recording: Recording,
    found: Sequence[RecordedPort],
    seen: Sequence[_RecordedDispatch],
    geometry: Geometry,
) -> Iterator[str]:
    """Yield a table of dispatches: their cycles, and the least that the busiest port needs."""
    rows = []
    counted = busy_spans(recording)
    for each in seen:
        last_number = each.first_number + len(each.dispatch.commands)
        ended = counted[each.first_number : last_number]
        if not ended:
            rows.append([escape(each.name), str(len(each.dispatch.commands)), *["-"] * 4])
            continue
        first, end = ended[0][0], ended[-1][1]
        cycles = sum(stop - start for start, stop in ended)
        bound = sum(beats(x, geometry) for x in each.dispatch.commands[: len(ended)])
        rows.append(
            [
                escape(each.name),
                str(len(each.dispatch.commands)),
                f"{cycles:,}",
                f"{bound:,}",
                f"{bound / cycles:.3f}",
                f'<button data-first="{first}" data-end="{end}">show</button>',
            ]
        )
    heads = ("dispatch", "commands", "cycles", "bound", "beats a cycle", "")
    yield f'<section id="summary">{_table(heads, rows)}</section>'
    yield (
        "<p class=soft>A dispatch takes the cycles from its doorbell, or from the end of the"
        " dispatch before it, to its own end; those of a job come to the figure that <code>bitlane"
        " run</code> prints. The bound is the number of beats on the busiest port; commands are"
        " fastest where beats a cycle, bound by cycles, come to 1."
        f" {_moved(recording, found, geometry)}</p>"
    )


def _moved(recording: Recording, found: Sequence[RecordedPort], geometry: Geometry) -> str:
    """Return how many beats each port carried."""
    if not found:
        return "The cycles are predicted; no port of a circuit was watched."
    moved = ", ".join(
        f"{port.name} {sum(burst.beats for burst in bursts(recording, port)):,}" for port in found
    )
    return f"Beats of {8 * geometry.data_bytes} bits carried: {moved}."


def _stalls(recording: Recording, found: Sequence[RecordedPort]) -> Iterator[str]:
    rows, busy = [], busy_cycles(recording)
    for port in found:
        lost = Counter[str]()
        for stall in stalls(recording, port):
            lost[stall.cause] += stall.end - stall.first
        port_cell = _swatch(PORT_COLOURS[port.name]) + port.name
        for cause, cycles in lost.most_common():
            rows.append(
                [
                    port_cell,
                    _swatch(STALL_COLOURS[cause]) + cause,
                    f"{cycles:,}",
                    f"{cycles / busy:.1%}",
                    CAUSES[cause],
                ]
            )
    yield "<h2>Why ports stood still</h2>"
    if rows:
        yield _table(("port", "what", "cycles", "of busy cycles", "who waited for whom"), rows)
    else:
        yield "<p>They never did.</p>"


def _dispatches(seen: Sequence[_RecordedDispatch]) -> Iterator[str]:
    yield "<h2>Commands, and how they walk through memory</h2>"
    yield (
        "<p class=soft>Each drawing has the elements in their order from left to right, and their"
        " addresses from the lowest, above, to the highest.</p>"
    )
    for each in seen:
        yield f"<section class=dispatch><h3>{escape(each.name)}</h3>"
        texts = [
            command_text(command, number)
            for number, command in enumerate(each.dispatch.commands, each.first_number)
        ]
        yield f"<pre>{escape(chr(10).join(texts))}</pre><div class=walks>"
        for number, command in enumerate(
            each.dispatch.commands[:_DRAWN_COMMANDS], each.first_number
        ):
            for name, walk, size in streams(command):
                caption = f"{number} {command.title} {name}: {walk_text(walk)}"
                yield (
                    f"<figure><figcaption>{caption}</figcaption>"
                    f"{draw_walk(command, name, walk, size)}</figure>"
                )
        yield "</div></section>"
