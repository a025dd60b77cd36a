"""A complaint is answered between two answers, and no answer is cut or lost."""

import random
from typing import Any

import pytest

from bitlane_rtl.abi.frames import Answer
from bitlane_rtl.serial.complaint_inserter import ComplaintInserter
from support.rtl.streams import ALL_STALLS, Sink, Source, Stalls, compiled, simulate
from support.serial.frames import Reply

COMPLAINTS = [0x3FFF, 0x0001, 0x2A55, 0x1500, *range(256, 276)]


@pytest.mark.parametrize("stalls", ALL_STALLS, ids=["full", "halves", "long"])
def test_complaints_are_answered_between_answers(stalls: Stalls) -> None:
    dut = compiled(ComplaintInserter)
    rng = random.Random(1)
    answers = [[rng.getrandbits(32) for _ in range(rng.randrange(1, 6))] for _ in range(100)]
    words = [
        {"data": word, "last": place == len(answer) - 1}
        for answer in answers
        for place, word in enumerate(answer)
    ]
    source = Source(dut.i, words, stalls)
    sink = Sink(dut.o, len(words) + len(COMPLAINTS), stalls)
    expected = []

    async def complain(ctx: Any) -> None:
        for index, number in enumerate(COMPLAINTS):
            ctx.set(dut.interrupt, index % 2)
            await ctx.tick().repeat(2 + rng.randrange(12))
            ctx.set(dut.complaint.expected, number)
            ctx.set(dut.complaint.valid, 1)
            await ctx.tick().until(dut.complaint.answered)
            ctx.set(dut.complaint.valid, 0)
            content = Reply(number, Answer.EXPECTED, interrupt=bool(index % 2)).content
            expected.append([int.from_bytes(content, "little")])

    simulate(dut, source, sink, complain)
    found: list[list[int]] = [[]]
    for word in sink.payloads:
        found[-1].append(word.data)
        if word.last:
            found.append([])
    assert found.pop() == []
    assert len(expected) == len(COMPLAINTS)
    assert [each for each in found if each in expected] == expected
    assert [each for each in found if each not in expected] == answers


def test_a_complaint_takes_priority() -> None:
    """Over answers that are not yet offered; alone, it is answered at once."""
    dut = compiled(ComplaintInserter)
    seen: list[tuple[int, int]] = []

    async def bench(ctx: Any) -> None:
        ctx.set(dut.o.ready, 1)
        ctx.set(dut.complaint.expected, 7)
        for complains, answers in ((1, 0), (1, 1), (0, 1)):
            ctx.set(dut.complaint.valid, complains)
            ctx.set(dut.i.valid, answers)
            ctx.set(dut.i.p.last, 1)
            _, _, answered, taken = await ctx.tick().sample(dut.complaint.answered, dut.i.ready)
            seen.append((answered, answers and taken))

    simulate(dut, bench)
    assert seen == [(1, 0), (1, 0), (0, 1)]
