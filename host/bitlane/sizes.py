"""Numbers of bytes as people write them: ``4096``, ``0x1000``, ``64KiB``."""

from typing import Final

_SUFFIXES: Final = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def parse_size(text: str) -> int:
    """The number of bytes that ``text`` says, with KiB, MiB, GiB or nothing behind it.

    Raises ``ValueError``.
    """
    number, factor = text, 1
    for suffix, value in _SUFFIXES.items():
        if text.endswith(suffix):
            number, factor = text.removesuffix(suffix), value
    size = int(number, 0) * factor
    if size < 0:
        raise ValueError(f"{text}: expected 0 or more")
    return size
