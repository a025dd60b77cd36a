"""Requests and answers of a host, as `abi.frames` and `abi.datagrams` specify, for every line."""

from .answer_packer import AnswerPacker
from .crc32 import Crc32
from .data_mover import DataMover
from .datagram_check import DatagramCheck
from .executor import RequestExecutor
from .packets import HEADER_WORDS, PacketKind, PacketWord
from .request_reader import RequestReader
from .sequence_check import Complaint, SequenceCheck
from .word_mover import WordMover
from .words import SIZE_BITS, AnswerWord, Kind, Mark, RequestHead, RequestWord

__all__ = [
    "HEADER_WORDS",
    "SIZE_BITS",
    "AnswerPacker",
    "AnswerWord",
    "Complaint",
    "Crc32",
    "DataMover",
    "DatagramCheck",
    "Kind",
    "Mark",
    "PacketKind",
    "PacketWord",
    "RequestExecutor",
    "RequestHead",
    "RequestReader",
    "RequestWord",
    "SequenceCheck",
    "WordMover",
]
