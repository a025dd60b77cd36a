"""One command for the page on registers, packed by the driver and told word by word."""

from bitlane_rtl.abi import RECORD, Lane, Mode, Op

from ..driver.commands import Command, Walk, encode

__all__ = ["EXAMPLE", "STORY", "rows"]

STORY = """\
XOR of 3 rows of 10 elements of 16 bits. A's elements stand 4 bytes apart and its rows 64, from
0x1002; one row of B, at 0x2000, serves all three; Y's rows follow each other from 0x3000."""

EXAMPLE = Command(
    Op.XOR,
    Lane.BITS_16,
    Lane.BITS_16,
    run=10,
    a=Walk(0x1002, 0x1002 + 2 * 64 + 9 * 4 + 1, Mode.STRIDED, stride=4, jumps=(64 - 9 * 4,)),
    b=Walk(0x2000, 0x2000 + 19, jumps=(0,)),
    y=Walk(0x3000, 0x3000 + 59, jumps=(20,)),
    counts=(3,),
)

_WHY = {
    "RUN": "elements in a row",
    "A_BASE": "first byte of A",
    "A_LAST": "its last: 2 rows of 64 bytes, 9 elements of 4, and the element's second byte on",
    "Y_BASE": "first byte of Y",
    "Y_LAST": "its last: 3 rows of 20 bytes",
    "B_BASE": "first byte of B",
    "B_LAST": "its last: a row of 20 bytes",
    "A_STRIDE": "from one element of A to the next",
    "Y_STRIDE": "Y is DENSE",
    "B_STRIDE": "B is DENSE",
    "RESERVED": "",
    "COUNT_1": "rows",
    "A_JUMP_1": "64 - 4 * 9: from a row's last element to the next row's first",
    "Y_JUMP_1": "from a row's start to the next one's, as Y is DENSE",
    "B_JUMP_1": "the same row again",
}


def rows() -> list[tuple[int, str, int, str]]:
    """Number, name and value of each word of the example, and where the value comes from."""
    words = encode(EXAMPLE).tolist()
    names = list(RECORD)[: len(words)]
    fields = [f"{bits.name} {bits.extract(words[0]):#x}" for bits in RECORD["CONTROL"].bits]
    why = {"CONTROL": ", ".join(fields), **_WHY}
    return [(number, name, words[number], why[name]) for number, name in enumerate(names)]
