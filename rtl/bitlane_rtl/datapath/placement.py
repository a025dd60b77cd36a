"""The placement of a span of bytes in the beats of the output: its layout, and that of its parts.

A span of 14 bytes, ``a`` to ``n``, starts at byte 5 of a word of memory and at byte 2 of an output
beat. Each word is rotated by 2 - 5 bytes::

    byte             01234567
    words            .....abc  defghijk  lmn.....
    rotated          ..abc...  ghijkdef  .....lmn
    output beats     (prime)   ..abcdef  ghijklmn

The first word completes no beat (``prime``). From byte 5 on (``split``), a rotated word completes
an output beat; its bytes before ``split`` wait for the next word. If the span has 18 bytes, four of
them still wait when its last word has passed, and one more beat emits them (``flush``)::

    words            .....abc  defghijk  lmnopqr.
    rotated          ..abc...  ghijkdef  opqr.lmn
    output beats     (prime)   ..abcdef  ghijklmn  opqr....  (flush)
"""

from typing import Any

from amaranth.hdl import Module, ValueLike
from amaranth.lib import data

from ..abi import Mode
from ..configuration import Configuration

__all__ = ["Placement", "assign_part"]


class Placement(data.StructLayout):
    """The position, in the output's beats, of a span, of one of its bursts, or of one word.

    These fields are constant over a span:

    - ``odd`` and ``even`` control the byte network, see `Realigner`.
    - ``split``: bytes of a word from there on belong to the output beat that the word completes.
    - ``merge``: the word adds to the beat that the words before it began (gather).
    - ``repeat``: the beat is used for a whole run.
    - ``extra``: the repeated run has one beat more than its bytes would have from byte 0 on.
    - ``slot``: of the `Edge` of each beat; it is constant over a run.
    - ``final``: of the `Edge` of the span's last beat.

    These hold for one word of a span, and so for the burst that has this word (`assign_part`):

    - ``prime``: the first word completes no beat.
    - ``flush``: behind the last word, one more beat emits the bytes that still wait.
    - ``last``, ``end``: the `Edge` of the last beat. With ``repeat``, ``last`` is 1 only if the run
      has a single beat.

    Fields that the configuration does not need are 0 bits wide.
    """

    def __init__(self, configuration: Configuration) -> None:
        log2 = configuration.data_bytes_log2
        merge = 1 if Mode.STRIDED in configuration.modes else 0
        repeat = 1 if Mode.REPEAT in configuration.modes else 0
        count = 1 if configuration.counts else 0
        super().__init__(
            {
                "odd": log2,
                "even": log2,
                "split": log2,
                "prime": 1,
                "flush": 1,
                "merge": merge,
                "repeat": repeat,
                "extra": repeat,
                "last": 1,
                "end": 1,
                "slot": 3 * count,
                "final": 2 * count,
            }
        )


def assign_part(m: Module, part: Any, whole: Any, *, first: ValueLike, last: ValueLike) -> None:
    """Assign to ``part`` the placement of a part of ``whole``.

    ``first`` and ``last``: the part has the first word, and the last word, of the whole.
    """
    m.d.comb += [
        part.eq(whole),
        part.prime.eq(whole.prime & first),
        part.flush.eq(whole.flush & last),
        part.last.eq(whole.last & last),
        part.end.eq(whole.end & last),
    ]
