"""The way of the data: readers, bit unit, repack, writer, and the registers between them."""

from .datapath import DataPath
from .pairing import Pairing
from .reader import Reader
from .realigner import Realigner
from .repack import Repack
from .result_decoder import OUT_LANES, DecodedResult, ResultDecoder
from .watchdog import Watchdog
from .writer import Writer

__all__ = [
    "OUT_LANES",
    "DataPath",
    "DecodedResult",
    "Pairing",
    "Reader",
    "Realigner",
    "Repack",
    "ResultDecoder",
    "Watchdog",
    "Writer",
]
