"""Exchanges of traffic hold valid frames and records, and use every operator of the circuit."""

from dataclasses import replace

import numpy as np
import pytest

from bitlane_boards import boards
from bitlane_rtl.abi import (
    CONTROL_BASE,
    RECORD,
    RECORD_BYTES,
    RING_OFFSET,
    Mode,
    Op,
    Status,
    register,
)
from bitlane_rtl.abi.frames import Request
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.configurations import full
from flips.exchanges import ExchangeWriter
from support.record import Record
from support.serial.frames import DELIMITER, asked, request_in, uart_bytes
from support.watched import bounds_of, walk_of

HX8K = boards()["hx8k"].configuration
FULL = replace(full(), memory_bytes=1 << 14)
BITS = {bits.name: bits for bits in RECORD["CONTROL"].bits}


def requests(burst: list[int]) -> list[tuple[int, int, int, bytes]]:
    """Return kind, address, size and data of each frame in ``burst``, all undamaged."""
    line, _ = uart_bytes(np.array(burst, np.uint8), 1)
    found = []
    for block in filter(None, line.split(DELIMITER)):
        request = request_in(block)
        assert request is not None
        _, kind, size, address, data = asked(request)
        found.append((kind, address, size, data))
    return found


def records(burst: list[int]) -> list[list[int]]:
    """Return the records of ``burst``, as words: all writes of 24 bytes or more to the ring."""
    ring = range(CONTROL_BASE + RING_OFFSET, CONTROL_BASE + RING_OFFSET + 64 * RECORD_BYTES)
    return [
        [int.from_bytes(data[k : k + 4], "little") for k in range(0, size, 4)]
        for kind, address, size, data in requests(burst)
        if kind == Request.WRITE and address in ring and size >= 24
    ]


@pytest.mark.parametrize("configuration", [HX8K, FULL], ids=["hx8k", "full"])
def test_every_operator_of_the_circuit_is_used(configuration: Configuration) -> None:
    (burst,) = ExchangeWriter(configuration).operators()
    written = records(burst)
    assert sorted(BITS["OP"].extract(words[0]) for words in written) == sorted(
        configuration.ops - {Op.SEARCH}
    )
    doorbells = [
        int.from_bytes(data, "little")
        for kind, address, _, data in requests(burst)
        if address == CONTROL_BASE + register("DOORBELL").offset
    ]
    assert doorbells[-1] == len(written)
    assert max(b - a for a, b in zip([0, *doorbells], doorbells, strict=False)) <= HX8K.slots


@pytest.mark.parametrize("configuration", [HX8K, FULL], ids=["hx8k", "full"])
def test_valid_commands_are_accepted_by_the_circuit(configuration: Configuration) -> None:
    writer = ExchangeWriter(configuration)
    modes, count = set(), 0
    for seed in range(300):
        bursts = writer.exchange(seed)
        # Many exchanges of other kinds are damaged; valid commands are one burst.
        if len(bursts) > 1:
            continue
        for words in records(bursts[0]):
            record = Record(words)
            assert record.refusal(configuration) is Status.OK, f"seed {seed}: {words}"
            for name in record.streams:
                low, high = bounds_of(walk_of(record, name))
                assert configuration.memory_base <= low, f"seed {seed}: {words}"
                assert high == record.word(f"{name}_LAST"), f"seed {seed}: {words}"
            modes |= {BITS[f"{x}_MODE"].extract(words[0]) for x in "ABY"}
            count += 1
    assert count > 200
    assert modes >= {Mode.DENSE, Mode.STRIDED, Mode.REPEAT}


def test_an_exchange_depends_on_its_seed_and_the_exchanges_before() -> None:
    one, other = ExchangeWriter(HX8K), ExchangeWriter(HX8K)
    for seed in (3, 1, 3, 8):
        assert one.exchange(seed) == other.exchange(seed)
    assert one.exchange(3) != one.exchange(4)


def test_memory_is_folded_in_halves() -> None:
    bursts = ExchangeWriter(HX8K).folding()
    folded = [words for burst in bursts for words in records(burst)]
    runs = [words[RECORD["RUN"].word] for words in folded]
    assert runs == [4096, 2048, 1024, 512, 256, 128]
    assert requests(bursts[-1])[0][:3] == (Request.READ, HX8K.memory_base, 128)
