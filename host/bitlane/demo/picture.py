"""The pictures that the demo writes. Draws results; it must not compute them."""

from io import BytesIO
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from bitlane.files import write_atomically

from .digits import NEIGHBOURS, Neighbours

_WHITE = (255, 255, 255)
_TEXT = (32, 36, 44)
_QUIET = (110, 116, 128)
_INK = np.array((28, 40, 66))
RIGHT = (38, 140, 84)
"""Frame of a neighbour that carries the label of its query."""
WRONG = (200, 48, 48)
"""Frame of one that does not."""
_FRAME = (120, 128, 142)

_NARROWEST = 1000
"""Pixels that the heading takes."""
_MISSES = 2
_CELL = 64
_GAP = 20
_MARGIN = 24


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _digit(image: npt.NDArray[np.float64]) -> Image.Image:
    """An 8 by 8 image of 0 to 16, dark on white, enlarged without smoothing."""
    ink = (image / 16)[..., None]
    colours = np.rint(255 * (1 - ink) + _INK * ink).astype(np.uint8)
    return Image.fromarray(colours).resize((_CELL, _CELL), Image.Resampling.NEAREST)


def _bits(distance: int) -> str:
    return "1 bit" if distance == 1 else f"{distance} bits"


def _shown_queries(search: Neighbours) -> list[int]:
    """The first query of each digit, then the first misses that are not among them."""
    firsts = [int(row) for row in np.unique(search.queries.labels, return_index=True)[1]]
    misses = [int(row) for row in np.flatnonzero(~search.correct) if row not in firsts]
    return firsts + misses[:_MISSES]


def digits_picture(search: Neighbours) -> Image.Image:
    """A column for each shown query: the query on top, its nearest neighbours below."""
    shown = _shown_queries(search)
    pitch_x, pitch_y = _CELL + _GAP, _CELL + 34
    left, top = _MARGIN + 96, _MARGIN + 64
    width = max(_NARROWEST, left + len(shown) * pitch_x - _GAP + _MARGIN)
    height = top + (1 + NEIGHBOURS) * pitch_y + 14
    picture = Image.new("RGB", (width, height), _WHITE)
    draw = ImageDraw.Draw(picture)
    draw.text(
        (_MARGIN, _MARGIN - 6),
        "Handwritten digits and their nearest neighbours by Hamming distance",
        _TEXT,
        _font(21),
    )
    draw.text(
        (_MARGIN, _MARGIN + 24),
        f"{len(search.queries.labels)} queries against {len(search.database.labels):,} images;"
        " under each its label and how many of its 64 bits differ from the query's."
        " Green: right label, red: wrong.",
        _QUIET,
        _font(14),
    )
    draw.text((_MARGIN, top + _CELL // 2), "query", _TEXT, _font(16), anchor="lm")
    for rank in range(NEIGHBOURS):
        middle = top + 8 + (1 + rank) * pitch_y + _CELL // 2
        name = "nearest" if rank == 0 else f"{rank + 1}."
        draw.text((_MARGIN, middle), name, _TEXT, _font(16), anchor="lm")

    def cell(x: int, y: int, image: Image.Image, frame: tuple[int, int, int], note: str) -> None:
        picture.paste(image, (x, y))
        draw.rectangle((x - 3, y - 3, x + _CELL + 2, y + _CELL + 2), outline=frame, width=3)
        draw.text((x + _CELL // 2, y + _CELL + 13), note, frame, _font(14), anchor="mm")

    for column, query in enumerate(shown):
        x = left + column * pitch_x
        label = search.queries.labels[query]
        cell(x, top, _digit(search.queries.images[query]), _FRAME, f"a {label}")
        for rank, row in enumerate(search.indices[query]):
            found = search.database.labels[row]
            cell(
                x,
                top + 8 + (1 + rank) * pitch_y,
                _digit(search.database.images[row]),
                RIGHT if found == label else WRONG,
                f"a {found}, {_bits(search.distances[query, rank])}",
            )
    line = top + pitch_y - 4
    draw.line((_MARGIN, line, width - _MARGIN, line), (214, 218, 226), 2)
    return picture


def photo_picture(
    damaged: npt.NDArray[np.uint8], rebuilt: npt.NDArray[np.uint8], lost: int, scale: int = 1
) -> Image.Image:
    """Draw the photo without the disk ``lost``, beside the photo with the rebuilt one.

    Each pixel becomes a square of ``scale`` by ``scale``.
    """
    height, width = (scale * length for length in rebuilt.shape[:2])
    top = 44
    picture = Image.new("RGB", (2 * width + 16, height + top), _WHITE)
    draw = ImageDraw.Draw(picture)
    notes = (f"disk {lost} of five lost", "rebuilt from the other four by the device")
    for side, (image, note) in enumerate(zip((damaged, rebuilt), notes, strict=True)):
        x = side * (width + 16)
        draw.text((x + 8, top // 2), note, _TEXT, _font(20), anchor="lm")
        enlarged = Image.fromarray(image).resize((width, height), Image.Resampling.NEAREST)
        picture.paste(enlarged, (x, top))
    return picture


def save(picture: Image.Image, path: Path) -> None:
    """Write ``picture`` as PNG, whole or not at all, making its folder if needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    buffer = BytesIO()
    picture.save(buffer, format="PNG", optimize=True)
    write_atomically(path, buffer.getvalue())
