"""Windows of each line, their packets request by request, and replies answer by answer."""

from collections.abc import Iterable

from bitlane.links import SERIAL, Batch, Counts, DatagramLine, Line, Reply, Window
from bitlane_rtl.abi import DATAGRAM_RECEIVE_BYTES, RECEIVE_BYTES, SEQUENCES, Answer
from support.ethernet.datagrams import frames_in
from support.serial.frames import Asked, asked, request_in

Answered = tuple[int, int, bool, bytes]
"""Number, kind, interrupt line and data of an answer."""


def packets_of(batches: Iterable[Batch]) -> list[bytes]:
    """Return all packets of ``batches``."""
    return [bytes(packet) for batch in batches for packet in batch.packets()]


def reply(sequence: int, kind: int, data: bytes = b"", *, interrupt: bool = False) -> Reply:
    """Return the reply of one answer."""
    return Reply(sequence, kind, interrupt, data, 1, (slice(0, len(data)),))


def answers_of(reply: Reply) -> list[Answered]:
    """Return each answer of ``reply``."""
    found = [bytes(reply.packet(row)[span]) for row in range(reply.packets) for span in reply.spans]
    return [
        ((reply.sequence + k) % SEQUENCES, reply.kind, reply.interrupt, data)
        for k, data in enumerate(found)
    ]


# --- windows --------------------------------------------------------------------------------------

NETWORK = DatagramLine(0x89ABCDEF)
ROOM = {SERIAL: RECEIVE_BYTES, NETWORK: DATAGRAM_RECEIVE_BYTES}


def window(line: Line, sequence: int = 0, room: int | None = None) -> Window:
    return Window(line, "board", sequence, room or ROOM[line], Counts())


def view(size: int, byte: int = 0) -> memoryview:
    return memoryview(bytearray((byte,)) * size)


def sent(batches: list[Batch]) -> list[list[Asked]]:
    """Return the requests of each packet."""
    found = []
    for packet in packets_of(batches):
        if packet.endswith(b"\0") and (request := request_in(packet[:-1])):
            found.append([asked(request)])
        else:
            assert packet[:4] == bytes.fromhex("efcdab89")
            found.append([asked(each) for each in frames_in(packet) or ()])
            assert found[-1]
    return found


def requests(batches: list[Batch]) -> list[Asked]:
    return [request for packet in sent(batches) for request in packet]


def numbers(batches: list[Batch]) -> list[int]:
    return [request.number for request in requests(batches)]


def done(number: int, packets: int = 1, data: bytes = b"", answers: int = 3) -> Reply:
    """Return the reply of ``packets`` packets with three answers each, all with equal data."""
    size = len(data)
    spans = [slice(k * size, (k + 1) * size) for k in range(answers)]
    content = answers * packets * data or b"x" * packets
    return Reply(number % SEQUENCES, Answer.DONE, False, content, packets, spans)


def answered(number: int, data: bytes = b"") -> Reply:
    return reply(number % SEQUENCES, Answer.DONE, data)


def expected(number: int) -> Reply:
    return reply(number % SEQUENCES, Answer.EXPECTED)
