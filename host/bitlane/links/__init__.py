"""Links to devices. Each moves bytes and knows nothing of commands; ``open_link`` finds them."""

from .arq import Window
from .counts import Counts
from .datagram_socket import DatagramSocket
from .datagrams import FRAME_BYTES, DatagramLine
from .flight import InFlight
from .frames import answer_bytes, encode_requests, request_bytes
from .line import LEAST_BATCH, Batch, Fragment, Line, Reply
from .link import (
    ENTRY_POINT_GROUP,
    WITHOUT_CIRCUIT,
    BytesLike,
    Link,
    is_known,
    open_link,
    opened_elsewhere,
)
from .pending import Pending
from .predicted import Predicted, duration
from .recording import Recording
from .remote_link import RemoteLink
from .sender import Sender
from .serial_frames import (
    SERIAL,
    Deframer,
    answer_line_bytes,
    decode_answer,
    decode_backward,
    encode,
    request_line_bytes,
    request_room,
)
from .serial_link import SerialLink
from .timing import FrameSizer, RetransmissionTimer
from .transfer_queue import TransferQueue
from .udp_link import UdpLink
from .url import LONGEST_SECONDS, DeviceUrl, Options, parse_seconds, parse_target, printable
from .write_stream import STREAM_PACKETS, WriteStream

__all__ = [
    "ENTRY_POINT_GROUP",
    "FRAME_BYTES",
    "LEAST_BATCH",
    "LONGEST_SECONDS",
    "SERIAL",
    "STREAM_PACKETS",
    "WITHOUT_CIRCUIT",
    "Batch",
    "BytesLike",
    "Counts",
    "DatagramLine",
    "DatagramSocket",
    "Deframer",
    "DeviceUrl",
    "Fragment",
    "FrameSizer",
    "InFlight",
    "Line",
    "Link",
    "Options",
    "Pending",
    "Predicted",
    "Recording",
    "RemoteLink",
    "Reply",
    "RetransmissionTimer",
    "Sender",
    "SerialLink",
    "TransferQueue",
    "UdpLink",
    "Window",
    "WriteStream",
    "answer_bytes",
    "answer_line_bytes",
    "decode_answer",
    "decode_backward",
    "duration",
    "encode",
    "encode_requests",
    "is_known",
    "open_link",
    "opened_elsewhere",
    "parse_seconds",
    "parse_target",
    "printable",
    "request_bytes",
    "request_line_bytes",
    "request_room",
]
