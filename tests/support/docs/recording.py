"""Draw docs/recording.svg: a terminal in which ``make demo`` and the lines of the README run.

    python -m support.docs.recording

runs the demo, in some ten seconds. The lines of Python are those of the README, which tests run.
The picture is text that moves by CSS; without it, the last lines are shown. All lines take fixed
times, so that the same output gives the same file.
"""

import html
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from .pages import ROOT, blocks

PICTURE = ROOT / "docs" / "recording.svg"

ROWS, COLUMNS = 20, 92
"""Lines of the terminal, and the most characters of a line."""

_LINE, _CHARACTER, _MARGIN = 18, 7.8, 12
"""Sizes in pixels."""

_TYPED, _PRINTED, _END = 1.2, 0.15, 5.0
"""Seconds that a line takes, and those for which the last ones are shown."""

_PROMPTS = ("$ ", ">>> ", "... ")

_HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"
 aria-label="A terminal: make demo, and some lines of Python">
<!-- Written by `make recording`. Do not edit. -->
<style>
 text {{ font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #d4d7dd;
  white-space: pre }}
 .typed {{ fill: #8fd48a }}
 #lines {{ transform: translateY({last}px); animation: scroll {seconds:.2f}s step-end infinite }}
 @media (prefers-reduced-motion) {{ #lines {{ animation: none }} }}
 @keyframes scroll {{
{frames}
 }}
</style>
<rect width="{width}" height="{height}" rx="8" fill="#1d2026"/>
<clipPath id="screen"><rect width="{width}" height="{shown}"/></clipPath>
<g clip-path="url(#screen)"><g id="lines">
"""


def session(demo: str) -> list[str]:
    """Return the lines of the terminal; ``demo`` is the output of the demo."""
    python = next(each for each in blocks(ROOT / "README.md") if each.language == "python")
    return ["$ make demo", *demo.splitlines(), "", "$ python", *python.text.splitlines()]


def drawn(lines: Sequence[str]) -> str:
    """Return the picture. Raises ``ValueError`` for a line that is too long."""
    if (longest := max(map(len, lines))) > COLUMNS:
        raise ValueError(f"recording: a line of {longest} characters; expected {COLUMNS} at most")
    starts, now = [], 0.0
    for line in lines:
        starts.append(now)
        now += _TYPED if line.startswith(_PROMPTS) else _PRINTED
    seconds = now + _END
    frames = "\n".join(
        f"  {start / seconds:.2%} {{ transform: translateY({_offset(count)}px) }}"
        for count, start in enumerate(starts, 1)
    )
    head = _HEAD.format(
        width=round(COLUMNS * _CHARACTER) + 2 * _MARGIN,
        height=ROWS * _LINE + 2 * _MARGIN,
        last=_offset(len(lines)),
        shown=ROWS * _LINE + _MARGIN,
        seconds=seconds,
        frames=frames,
    )
    shown = "".join(
        f'<text x="{_MARGIN}" y="{number * _LINE}"{_kind(line)}>{html.escape(line)}</text>\n'
        for number, line in enumerate(lines, 1)
    )
    return f"{head}{shown}</g></g>\n</svg>\n"


def _offset(count: int) -> int:
    """Return the shift in pixels that puts the line ``count`` into the last row."""
    return (ROWS - count) * _LINE + _MARGIN // 2


def _kind(line: str) -> str:
    return ' class="typed"' if line.startswith(_PROMPTS) else ""


def lines_of(picture: str) -> list[str]:
    """Return the lines of a picture that `drawn` has drawn."""
    return [html.unescape(line) for line in re.findall(r"<text [^>]*>(.*)</text>", picture)]


def main() -> None:
    """Run the demo in a temporary folder, and write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "bitlane", "demo"]
        done = subprocess.run(
            words, cwd=folder, stdout=subprocess.PIPE, text=True, check=True, timeout=600
        )
    PICTURE.write_text(drawn(session(done.stdout)), encoding="utf-8")
    print(f"wrote {PICTURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
