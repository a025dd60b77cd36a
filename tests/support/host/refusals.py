"""Refusals as rows of a table: a call, its error and words of the message."""

import builtins
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import pytest

import bitlane
from bitlane import BitlaneError
from bitlane.driver import Driver
from support.host.model_link import ModelLink

WRONG_KINDS: Sequence[Any] = [
    *(None, True, "text", "te\nxt", "", b"bytes", -1, 2, 2**70, 1.5, float("nan"), float("inf")),
    *(1j, object(), print, ..., slice(3), (), [None], [[1], [1, 2]], [2, -1], [2, "text", None]),
    *({}, {"a": 1}, {"a\n": None}, {1}, np.zeros((1, 1, 1)), np.array("x"), np.zeros(2, "V3")),
    *(np.datetime64(0, "s"), np.array([object()])),
]
"""Values of any kind: most arguments take few of them."""


class Driven(Protocol):
    """A device of any face, on a driver of a `ModelLink`."""

    @property
    def driver(self) -> Driver: ...


def literal(words: str) -> str:
    """Return the pattern of ``words``, in which three dots stand for anything."""
    return ".*".join(map(re.escape, words.split("...")))


def uses(device: Driven, sent: bool = False) -> tuple[int, ...]:
    """Return how many commands a device has got, and unless ``sent``, writes and allocations."""
    link = device.driver.link
    assert isinstance(link, ModelLink)
    writes = sum(kind == "write" for kind, _, _ in link.traffic)
    return (len(link.log), *(() if sent else (writes, device.driver.allocator.pieces)))


@contextmanager
def refused(
    device: Driven, error: type[Exception], words: str, *, sent: bool = False
) -> Iterator[pytest.ExceptionInfo[Exception]]:
    """Assert that the block raises ``error`` in one line, and uses ``device`` for nothing.

    The message contains ``words``. Nothing is written to it, executed, allocated or freed; with
    ``sent``, operands may have been sent before, and nothing is executed.
    """
    before = uses(device, sent)
    with pytest.raises(error, match=words) as caught:
        yield caught
    assert isinstance(caught.value, BitlaneError) or error is TypeError
    assert "\n" not in str(caught.value)
    assert uses(device, sent) == before


@contextmanager
def refused_row(device: Driven, row: str) -> Iterator[str]:
    """Assert `refused` of the block, in which the caller executes the text of the call.

    A row is ``call  # Error: words``, with the name of an error of bitlane or of Python.
    """
    call, _, refusal = row.partition("  # ")
    name, _, words = refusal.partition(": ")
    error = getattr(bitlane, name, None) or getattr(builtins, name)
    with refused(device, error, words):
        yield call


def takes_or_refuses(
    call: Callable[[Any], object], device: Driven | None = None, *, sent: bool = False
) -> None:
    """Assert that ``call`` returns, or raises an error of bitlane in one line, for any value.

    A refused call uses ``device``, if there is one, for nothing, as `refused` says.
    """
    for value in WRONG_KINDS:
        before, text = device and uses(device, sent), ""
        try:
            call(value)
        except BitlaneError as error:
            text = str(error)
        except Exception as error:
            error.add_note(f"of {value!r}")
            raise
        assert text.isprintable(), repr(value)
        assert not text or before == (device and uses(device, sent)), repr(value)
