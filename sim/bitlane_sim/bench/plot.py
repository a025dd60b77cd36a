"""Draws what `profile` measured. Measures nothing."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .profile import PEER_POINTS, Profile

_WIDTH_COLORS = {32: "#0072b2", 64: "#d55e00", 128: "#009e73"}
_PEER_MARKERS = ("x", "+", "1")
_CAUSES: Mapping[str, tuple[str, str]] = {
    "busy": ("writing a beat", "#009e73"),
    "read_a": ("waiting on read A", "#56b4e9"),
    "read_b": ("waiting on read B", "#0072b2"),
    "write": ("waiting on write", "#e69f00"),
    "command": ("command, pipeline", "#999999"),
}
"""Label and colour of each field of `Waits`; the colours are Okabe and Ito's."""


def draw(profile: Profile, file: Path) -> None:
    """Draw ``profile`` into ``file``, in the format that its suffix names."""
    with matplotlib.rc_context({"font.size": 9, "svg.hashsalt": "bitlane"}):
        figure = Figure(figsize=(13, 5.4), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.1, 1))
        _roofline(left, profile)
        _bars(right, profile)
        figure.savefig(file, dpi=120, metadata=_METADATA.get(file.suffix))


_METADATA: Mapping[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
"""Nothing that changes from run to run."""


def _roofline(axes: Axes, profile: Profile) -> None:
    sizes = sorted({point.size for point in profile.points})
    for bound in sorted({point.bound for point in profile.points}):
        text = "limit: 1 beat a cycle" if bound == 1 else "limit of one read port for A and B"
        axes.axhline(bound, color="black", linewidth=1, linestyle=":")
        # In the middle, where no curve and no peer is just above a limit.
        place = sizes[len(sizes) // 2], bound
        axes.annotate(text, place, xytext=(0, 4), textcoords="offset points", ha="center")
    for width in sorted({point.width for point in profile.points}):
        for ports, style in ((2, "-"), (1, "--")):
            line = [p for p in profile.points if (p.width, p.ports) == (width, ports)]
            way = "NOT" if ports == 2 else "XOR, one read port"
            axes.plot(
                [point.size for point in line],
                [point.rate for point in line],
                style,
                marker=".",
                color=_WIDTH_COLORS[width],
                label=f"{way}, {width} bits",
            )
    peers = PEER_POINTS if any(point.width == 32 for point in profile.points) else {}
    for (name, rates), marker in zip(peers.items(), _PEER_MARKERS, strict=False):
        axes.plot(
            list(rates),
            list(rates.values()),
            linestyle="none",
            marker=marker,
            markersize=8,
            color="black",
            label=f"{name}, 32 bits, recorded",
        )
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [_bytes(size) for size in sizes], rotation=45)
    axes.set_ylim(0, 1.1)
    axes.set_xlabel("bytes written by one command")
    axes.set_ylabel("beats a cycle, doorbell to last response")
    axes.set_title("Rate over transfer size")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", fontsize=8)


def _bytes(size: int) -> str:
    return f"{size} B" if size < 1024 else f"{size // 1024} KiB"


def _bars(axes: Axes, profile: Profile) -> None:
    names = [spent.work for spent in profile.spent]
    left = [0.0] * len(names)
    for cause, (text, color) in _CAUSES.items():
        parts = [100 * asdict(spent.waits)[cause] / spent.waits.total for spent in profile.spent]
        axes.barh(names, parts, left=left, color=color, label=text)
        for row, (part, start) in enumerate(zip(parts, left, strict=True)):
            if part >= 4:
                axes.text(start + part / 2, row, f"{part:.0f}", ha="center", va="center")
        left = [start + part for start, part in zip(left, parts, strict=True)]
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of the cycles from doorbell to last response")
    axes.set_title(f"Where cycles went, {profile.spent[0].width} bits")
    axes.legend(loc="upper center", bbox_to_anchor=(0.4, -0.12), ncols=5, fontsize=8, frameon=False)
