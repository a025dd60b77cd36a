"""Refusals of arrays as rows of a table: a call, its error and words of the message."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from numpy.typing import ArrayLike

from bitlane import BitlaneError, Device
from support.host.arrays import link_of

Refusal = tuple[Callable[[Any], Any], type[Exception], str]
"""A call on an array, the error that it raises, and a pattern that is in the message."""


@contextmanager
def refused(device: Device, error: type[Exception], words: str) -> Iterator[None]:
    """Assert that the block raises ``error`` in one line, and uses ``device`` for nothing.

    The message contains ``words``. Nothing is written to it, executed, allocated or freed.
    """

    def uses() -> tuple[int, int, int]:
        writes = [kind for kind, _, _ in link_of(device).traffic if kind == "write"]
        return len(link_of(device).log), len(writes), device.driver.allocator.pieces

    before = uses()
    with pytest.raises(error, match=words) as caught:
        yield
    assert isinstance(caught.value, BitlaneError) or error is TypeError
    assert "\n" not in str(caught.value)
    assert uses() == before


def refusals(content: ArrayLike, rows: Sequence[Refusal]) -> Callable[..., None]:
    """Return a test of each row's call on an array of ``content``, which no call changes."""

    @pytest.mark.parametrize(("call", "error", "words"), rows)
    def test(
        device: Device, call: Callable[[Any], Any], error: type[Exception], words: str
    ) -> None:
        x = device.asarray(content)
        stored = x.get().tobytes()
        with refused(device, error, words):
            call(x)
        assert x.get().tobytes() == stored
        x.free()  # NumPy keeps a reference to the operand of a reduction that raises

    return test
