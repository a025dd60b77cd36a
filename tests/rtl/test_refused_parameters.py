"""Parameters of which no circuit can be built are refused, each with its name and its value."""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from ipaddress import IPv4Address
from typing import Any

import pytest

from bitlane_rtl.abi import LOGIC_OPS, SHIFT_OPS, Lane, Op
from bitlane_rtl.bit_unit import BitUnit, Logic, Popcount, Shifter
from bitlane_rtl.bus import BankedMemory, SdramMemory, SinglePortRam, SramPort, WishboneManager
from bitlane_rtl.configuration import Configuration, Search
from bitlane_rtl.configurations import full
from bitlane_rtl.control import Completions, Ring
from bitlane_rtl.ethernet import BoardAddresses, PacketFifo
from bitlane_rtl.link import Crc32
from bitlane_rtl.sdram_part import SdramTiming
from bitlane_rtl.search import CountTree, SearchArray
from bitlane_rtl.serial import UartReceiver, UartTransmitter
from bitlane_rtl.stream_unit import StreamConfiguration
from bitlane_rtl.streams import Fifo, TwoWriteFifo
from bitlane_rtl.wishbone_core import WishboneCore
from support.rtl.sdram import CLOCK_HZ, PART

BANKS = partial(BankedMemory, 32, 32)
SDRAM = partial(SdramMemory, 25, timing=SdramTiming.of(PART, CLOCK_HZ))
SEARCH = partial(Search, units=8)
STREAM = StreamConfiguration

VALUES: list[tuple[Callable[..., Any], str, Iterable[Any], str]] = [
    (BANKS, "words", (16, 48), " is not a power of two, 32 or more"),
    (partial(BANKS, 256), "banks", (3,), " is not a power of two"),
    (partial(BANKS, 256), "read_ports", (3,), " is neither 1 nor 2"),
    (partial(SramPort, 32, 32, 256), "read_ports", (3,), " is neither 1 nor 2"),
    (partial(SDRAM, 64, PART), "read_ports", (3,), " is neither 1 nor 2"),
    (partial(SDRAM, part=PART), "data_width", (8,), " bits are not 1, 2, 4 or 8 words of 16 bits"),
    (partial(SDRAM, part=PART), "data_width", (256,), " bits are not"),
    (SinglePortRam, "words", (1, 1 << 13, 3 << 13, 1 << 16), " is neither 16384 nor 32768"),
    (partial(WishboneManager, 32, 32), "in_flight", (2, 12, 128), "; expected a power of two, 4"),
    (partial(WishboneManager, 32, 32, block_ram=True), "in_flight", (32,), "; expected a power of"),
    (partial(Fifo, 8), "depth", (0, 1, 3, 12), " is not a power of two"),
    (partial(Fifo, 8, credit=True), "depth", (2,), " is not a power of two, 4 or more"),
    (partial(TwoWriteFifo, 8), "depth", (4, 6, 12), " is not a power of two, 8 or more"),
    (partial(PacketFifo, 16, packet_words=16), "depth", (0, 16, 31, 33, 48), ", 32 or more"),
    (partial(Ring, columns=2), "slots", (0, 1, 12), " is not a power of two"),
    (Completions, "slots", (0, 1, 12), " is not a power of two"),
    (partial(Ring, 16), "columns", (3,), " is none of 1, 2 and 4"),
    (Crc32, "width", (33,), "; expected 1 to 32"),
    (UartReceiver, "divider", (7,), " clocks per bit; expected 8 or more"),
    (UartTransmitter, "divider", (7,), " clocks per bit; expected 8 or more"),
    (partial(CountTree, per_stage=1), "bits", (0, 2, 48), ""),
    (partial(CountTree, 64), "per_stage", (0,), ""),
    (SEARCH, "units", (0,), " is outside 1 to 1024"),
    (SEARCH, "row_bits", (32, 96), " is not a power of two from 64 to 1024"),
    (SEARCH, "queries", (1,), " is not a power of two from 2 to 4096"),
    (SEARCH, "nearest", (10,), " is not a power of two from 1 to 64"),
    (
        partial(Configuration, search=SEARCH()),
        "data_width",
        (128,),
        "; search needs one of (32, 64",
    ),
    (Configuration, "data_width", (8, 48, 256, 512), " is not supported; expected 32, 64 or 128"),
    (STREAM, "data_width", (24,), " is not supported; expected 8, 16, 32, 64 or 128"),
    (STREAM, "user_width", (33,), " is outside 0 to 32"),
    (BoardAddresses, "port", (0, 65536), "; expected 1 to 65535"),
    (BoardAddresses, "ip", map(IPv4Address, ("224.0.0.1", "255.255.255.255", "0.0.0.0")), ""),
    (BoardAddresses, "ip", [IPv4Address("127.0.0.1")], "expected one like 192.168.1.50"),
]
"""A call, the name of an argument, wrong values of it, and how the message goes on behind them."""

OTHERS: list[tuple[Callable[[], Any], str]] = [
    (partial(BitUnit, 32, frozenset(), frozenset(Lane)), "ops: empty"),
    (partial(Logic, 8, SHIFT_OPS), "none of them is a logic operation or a count"),
    (partial(Shifter, 64, {Op.AND}, frozenset(Lane)), "none of them is a shift"),
    (partial(Shifter, 32, SHIFT_OPS, {Lane.BITS_64}), "none of them fits into 32 bits"),
    *((partial(Popcount, x.bits // 2, {x}), f"fits into {x.bits // 2} bits") for x in [*Lane][1:]),
    (partial(SDRAM, 64, replace(PART, column_bits=5)), "a row holds no 16 beats"),
    (partial(SDRAM, 64, replace(PART, row_bits=10)), "10 address lines; expected 11 or more"),
    (partial(SdramTiming.of, PART, 150_000_000), "150000000 Hz is too fast for AS4C16M16SA-7"),
    (partial(SearchArray, Configuration()), "search: None; there is no array to build"),
    (partial(WishboneCore, full()), "read_ports: 2; expected 1, because Wishbone has one"),
    (partial(STREAM, ops=frozenset()), "ops: empty"),
    (partial(STREAM, ops=frozenset({Op.SEARCH})), "ops: SEARCH needs memory"),
    (
        partial(STREAM, data_width=8, lanes=frozenset({Lane.BITS_16})),
        "lanes: none fits into a beat of 8",
    ),
    (partial(STREAM, data_width=16, reduces=True), "reduces: a sum has 32 bits, and a beat 16"),
    (partial(STREAM, ops=LOGIC_OPS, reduces=True), "reduces: no operation counts"),
    (partial(BoardAddresses, mac=b"\1\0\0\0\0\1"), "mac: 01:00:00:00:00:01"),
    (partial(BoardAddresses, mac=b"\2\0\0\0\0"), "mac: 02:00:00:00:00 is"),
    (partial(BoardAddresses, mac=bytes(6)), "mac: 00:00:00:00:00:00"),
    (partial(BoardAddresses, mac=bytes(6)), "; expected one like 02:"),
]
"""Other calls, and a part of the message."""


@pytest.mark.parametrize(
    ("call", "name", "value", "rest"),
    [(call, name, value, rest) for call, name, values, rest in VALUES for value in values],
)
def test_a_wrong_value_is_refused(
    call: Callable[..., Any], name: str, value: object, rest: str
) -> None:
    text = re.escape(f"{name}: {value}") + ".*" + re.escape(rest)
    with pytest.raises(ValueError, match=rf"^(search\.)?{text}"):
        call(**{name: value})


@pytest.mark.parametrize(("call", "message"), OTHERS)
def test_what_cannot_be_built_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
