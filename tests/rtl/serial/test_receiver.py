"""The receiver outputs each request whole and in sequence, or drops it."""

import random
from collections.abc import Iterable

import pytest

from bitlane_rtl.abi import RECEIVE_BYTES, REPETITIONS, SEQUENCES, Request
from bitlane_rtl.link import Mark
from bitlane_rtl.serial import RequestReceiver
from cppsim import Model
from support.seeds import slow
from support.serial.frames import (
    asked,
    cobs_encode,
    frame,
    given_out,
    head,
    hello,
    read,
    request,
    with_crc,
    write,
)

SPACING = 9
"""Minimum cycles from byte to byte."""

FIRST = SEQUENCES - 1
"""Sequence number that the receiver expects after reset."""

ERROR = -1
"""Stands for a byte without a stop bit."""


class Bench:
    """A driver of a receiver. It is compiled, because the tests send many bytes."""

    def __init__(self) -> None:
        self.evaluator = Model(RequestReceiver())

    def restart(self) -> None:
        self.evaluator.reset()
        self.evaluator.step(4)

    def get(self, port: str) -> int:
        return self.evaluator.get(port)

    def word(self) -> int:
        """Return the word at the output, whose mark is `Mark.WORD`."""
        payload = self.get("o__payload")
        assert payload >> 32 == Mark.WORD.value
        return payload

    @property
    def expected(self) -> int:
        return self.get("complaint__expected")

    @property
    def complaint(self) -> bool:
        return bool(self.get("complaint__valid"))

    def put(self, byte: int) -> None:
        """Offer a byte in this cycle."""
        self.evaluator.set("i__byte", byte & 0xFF)
        self.evaluator.set("i__error", byte == ERROR)
        self.evaluator.set("i__valid", 1)

    def step(self, cycles: int = 1) -> None:
        """Advance ``cycles`` cycles; the byte of `put` is valid in the first."""
        self.evaluator.step()
        self.evaluator.set("i__valid", 0)
        if cycles > 1:
            self.evaluator.step(cycles - 1)

    def feed(self, line: Iterable[int]) -> None:
        for byte in line:
            self.put(byte)
            self.step(SPACING)

    def pop(self) -> bytes:
        """Pop all available words, one every 2 cycles."""
        data = bytearray()
        self.evaluator.set("o__ready", 1)
        while self.get("o__valid"):
            data += self.word().to_bytes(4, "little")
            self.evaluator.step()
            assert not self.get("o__valid")
            self.evaluator.step()
        self.evaluator.set("o__ready", 0)
        return bytes(data)

    def taken(self, line: Iterable[int]) -> bytes:
        self.feed(line)
        return self.pop()

    def answer(self) -> None:
        self.evaluator.set("complaint__answered", 1)
        self.evaluator.step()
        self.evaluator.set("complaint__answered", 0)

    def expect_dropped(self, line: Iterable[int], what: object = None) -> None:
        """Expect that ``line`` is dropped with a complaint, and that the next frame is accepted."""
        number = self.expected
        self.feed(line)
        assert self.complaint, what
        assert not self.get("o__valid"), what
        assert self.expected == number, what
        following = read(number, 0, 1)
        assert self.taken(frame(following)) == given_out(following), what
        assert not self.complaint, what


@pytest.fixture(scope="module")
def compiled() -> Bench:
    return Bench()


@pytest.fixture
def bench(compiled: Bench) -> Bench:
    compiled.restart()
    return compiled


SIZES = (0, 1, 2, 7, 8, 245, 246, 247, 255, 256, 500, 501, 511, 512)


def test_requests_come_out_without_their_crcs(bench: Bench) -> None:
    rng = random.Random(1)
    contents = [write(0, rng.getrandbits(32), rng.randbytes(size)) for size in SIZES]
    contents += [write(0, 0, fill * size) for fill in (b"\0", b"\xff") for size in (245, 246, 512)]
    contents += [read(0, rng.getrandbits(32), size) for size in (0, 1, 4, 511, 512, 513, 1023)]
    contents += [request(0, kind, rng.getrandbits(32), 20) for kind in (2, 3, 4, 5, 0x81, 255)]
    contents += [write(0, offset, rng.randbytes(size)) for offset in (1, 2, 3) for size in SIZES]
    contents += [write(0, 0, rng.randbytes(size)) for size in (513, 760, 1000, 1012, 1020, 1023)]
    rng.shuffle(contents)

    for place, unnumbered in enumerate(contents):
        _, kind, size, _, _ = asked(unnumbered)
        content = head(FIRST + place, kind, size) + unnumbered[4:]
        out = bench.taken(frame(content, shortest=place % 2 == 0))
        assert out == given_out(content), content[:8].hex()
        assert bench.expected == (FIRST + place + 1) % SEQUENCES
        assert not bench.complaint


def test_cycles(bench: Bench) -> None:
    """Output is valid 2 cycles after a delimiter, a complaint 1 cycle after it."""
    for line, port, cycles in (
        (frame(read(FIRST, 0, 0)), "o__valid", 2),
        (frame(read(7, 0, 0)), "complaint__valid", 1),
    ):
        bench.feed(line[:-1])
        bench.put(0)
        for _ in range(cycles):
            assert not bench.get(port)
            bench.step()
        assert bench.get(port)
        bench.pop()


AHEAD = [0, 1, 2, 100, 254, 255, 256, 257, 8190, 8191, 8192, 8193, 16127, 16128, 16382, 16383]


@pytest.mark.parametrize("expected", [0, 100, 255, 256, 8191, 8192, 16383])
def test_which_numbers_are_taken(bench: Bench, expected: int) -> None:
    """A HELLO before each request restores the same expected number."""
    for ahead in AHEAD:
        bench.taken(frame(hello(expected - 1, ahead)))
        content = write(expected + ahead, 0, b"x")
        out = bench.taken(frame(content))
        if ahead == 0:
            assert out == given_out(content)
        elif ahead < SEQUENCES - REPETITIONS:
            assert out == b"", ahead
        else:
            assert out == given_out(content, repeated=True), ahead
        assert bench.expected == (expected + (ahead == 0)) % SEQUENCES
        assert bench.complaint == (0 < ahead < SEQUENCES - REPETITIONS)


def test_a_hello_is_taken_whatever_its_number(bench: Bench) -> None:
    for number in (FIRST, 3, 3, 130, 131, 2, 255, 128, 0, 0x1234, 255):
        content = hello(number, 0x01020304)
        bench.feed(frame(content))
        out = bench.pop()
        assert [out[0], out[1] & 7] == [number % 256, 2]
        assert out[2:] == given_out(content)[2:]
        assert bench.expected == (number + 1) % SEQUENCES
        assert not bench.complaint


def test_every_flipped_bit_drops_the_frame(bench: Bench) -> None:
    line = frame(hello(9, 0x8000_0001))
    for bit in range(8 * len(line)):
        damaged = bytearray(line)
        damaged[bit // 8] ^= 1 << bit % 8
        bench.expect_dropped([*damaged, 0], bit)


def test_every_lost_doubled_or_inserted_byte_drops_the_frame(bench: Bench) -> None:
    rng = random.Random(2)
    line = frame(hello(9, 0x0080_FF00))

    for place in range(len(line) - 1):
        for middle in (b"", line[place : place + 1] * 2, bytes([line[place], ERROR & 0xFF])):
            damaged = line[:place] + middle + line[place + 1 :]
            bench.expect_dropped(damaged, (place, middle))
        inserted = [*line[:place], rng.randrange(1, 256), *line[place:]]
        bench.expect_dropped(inserted, inserted)
        lost_stop = [*line[:place], ERROR, *line[place + 1 :]]
        bench.expect_dropped(lost_stop, lost_stop)


HEADERS = (read(FIRST, 0, 0), write(FIRST, 0, b"abc"))
EXTRA = (b"\xff", b"\x00", b"\xff" * 4, b"\xff" * 8, b"\x00" * 4)
LENGTHS = [
    # ADDRESS, SIZE and number of words of a write.
    *((0, size, words) for size, words in ((5, 1), (5, 3), (0, 1), (1, 0), (512, 127), (512, 129))),
    *((0, size, words) for size, words in ((12, 2), (8, 3), (256, 0), (4, 65), (260, 1))),
    *((offset, 4, words) for offset in (1, 2, 3) for words in (1, 3)),
    *((3, size, 1) for size in (2, 3)),
    # A counter of 9 bits would mistake these lengths for short ones.
    *((0, size, (size + 3) // 4 + 512) for size in (0, 1, 4, 512)),
    (3, 1023, 256),
    (3, 1023, 258),
]
WRONG: dict[str, list[bytes]] = {
    "nothing may follow the CRC": [
        cobs_encode(with_crc(content) + extra) + b"\0" for content in HEADERS for extra in EXTRA
    ],
    "none of the CRC may be missing": [
        cobs_encode(with_crc(content)[:-missing]) + b"\0"
        for content in HEADERS
        for missing in (1, 2, 3, 4)
    ],
    "a lost delimiter drops both frames": [frame(HEADERS[0])[:-1] + frame(read(0, 0, 4))],
    "a write is as long as it says": [
        frame(request(FIRST, Request.WRITE, address, size) + b"\x07" * 4 * words)
        for address, size, words in LENGTHS
    ],
    "a frame is whole words": [
        frame(content[: len(content) - missing] + extra)
        for content in (write(FIRST, 0, b"abc"), read(FIRST, 0, 4))
        for missing, extra in ((1, b""), (3, b""), (0, b"a"), (0, b"abc"))
    ],
    "only a write has data": [
        frame(request(FIRST, kind, 0, size, b"abcd")[:end])
        for kind in (0, 2, 3, 7, 255)
        for size in (1, 4)
        for end in (None, 7, 1)
    ],
    "less than a header": [b"\x01\0", b"\x02\x05\0", b"\x05\0", frame(b""), frame(b"\xff")],
}


@pytest.mark.parametrize("rule", WRONG)
def test_what_breaks_a_rule_is_dropped(bench: Bench, rule: str) -> None:
    for line in WRONG[rule]:
        bench.restart()
        bench.expect_dropped(line, line.hex())


def test_delimiters_alone_are_nothing(bench: Bench) -> None:
    bench.feed(b"\0\0\0")
    content = read(FIRST, 1, 2)
    assert bench.taken(frame(content) + b"\0\0") == given_out(content)
    assert not bench.complaint


def test_one_complaint_until_a_frame_is_good(bench: Bench) -> None:
    bad = frame(read(100, 0, 0))
    good = frame(read(FIRST, 0, 0))

    bench.feed(bad)
    assert bench.complaint
    bench.answer()
    assert not bench.complaint
    bench.feed(bad + good[:-2] + b"\0" + bad)
    assert not bench.complaint, "a second complaint"
    bench.feed(good + bad)
    assert bench.complaint, "no complaint after a good frame"
    bench.feed(good)
    assert bench.complaint, "a repetition took the complaint back"
    bench.answer()
    bench.feed(bad)
    assert bench.complaint, "no complaint after a repetition"
    bench.feed(frame(read(0, 0, 0)))
    assert not bench.complaint, "the expected request came"


def fills(first: int, total: int) -> list[bytes]:
    """Return writes from number ``first`` on, with ``total`` words of headers and data."""
    rng = random.Random(total)
    contents: list[bytes] = []
    while total:
        part = total if total <= 130 else 130 if total >= 132 else 125
        data = rng.randbytes(4 * part - 8)
        contents.append(write(first + len(contents), rng.getrandbits(30) << 2, data))
        total -= part
    return contents


@pytest.mark.parametrize("start", [0, 2, 175, 509, 510])
def test_the_ring_holds_511_words_and_no_more(bench: Bench, start: int) -> None:
    for content in fills(FIRST, start):
        assert bench.taken(frame(content)) == given_out(content)

    contents = fills(bench.expected, 511)
    for content in contents:
        bench.feed(frame(content))
        assert not bench.complaint
    bench.feed(frame(read(bench.expected, 0, 0)))
    assert bench.complaint, "taken although there was no room"
    assert bench.pop() == b"".join(map(given_out, contents))
    bench.answer()

    contents = fills(bench.expected, 512)
    for content in contents:
        bench.feed(frame(content))
    assert bench.complaint, "512 words taken"
    assert bench.pop() == b"".join(map(given_out, contents[:-1]))
    assert bench.taken(frame(contents[-1])) == given_out(contents[-1])


@pytest.mark.parametrize("sizes", [[512] * 3 + [452], [0] * 170, [1, 500] * 3 + [395]])
def test_what_a_host_may_send_unanswered_has_room(bench: Bench, sizes: list[int]) -> None:
    contents = [write(FIRST + n, n, b"\x11" * size) for n, size in enumerate(sizes)]
    assert sum(len(with_crc(content)) for content in contents) <= RECEIVE_BYTES
    for content in contents:
        bench.feed(frame(content))
        assert not bench.complaint
    assert bench.pop() == b"".join(map(given_out, contents))


@pytest.mark.parametrize("haste", [1.0, slow(0.5), 0.2])
def test_words_are_popped_while_others_come(bench: Bench, haste: float) -> None:
    """Damaged frames arrive in between, and the ring buffer wraps several times."""
    rng = random.Random(f"{haste}")
    line = bytearray()
    expected = bytearray()
    number = FIRST
    for _ in range(60):
        content = write(number, rng.getrandbits(32), rng.randbytes(rng.randrange(120)))
        if rng.random() < 0.3:
            line += cobs_encode(with_crc(content)[:-1] + b"\x00") + b"\0"
            line += rng.randbytes(rng.choice([5, 500])).replace(b"\0", b"\1") + b"\0"
        line += frame(content)
        expected += given_out(content)
        number += 1
    popped = bytearray()
    waiting: int | None = None
    for place in range(len(line) + 1000):
        if place < len(line):
            bench.put(line[place])
        for _ in range(SPACING):
            ready = rng.random() < haste
            bench.evaluator.set("o__ready", ready)
            if bench.get("o__valid"):
                word = bench.word()
                assert waiting in (None, word), "a word changed that had not been popped"
                waiting = None if ready else word
                popped += word.to_bytes(4, "little") * ready
            else:
                assert waiting is None, "a word was taken back"
            bench.step()
    bench.evaluator.set("o__ready", 0)
    popped += bench.pop()
    assert popped == expected
