"""Numbers of bytes as people write them."""

import pytest

from bitlane.sizes import parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("4096", 4096),
        ("0x10", 16),
        ("64KiB", 65536),
        ("2MiB", 2 << 20),
        ("0x2GiB", 2 << 30),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "KiB", "x", "1.5MiB", "1GB", "1kib", "-1", "-1KiB"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError):
        parse_size(text)
