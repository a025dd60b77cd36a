"""The names of `bitlane`, which imports them when one is first used: users take them from there."""

from .api.default import asarray as asarray
from .api.default import default_device as default_device
from .api.device import Device as Device
from .api.device import open_device as _open
from .api.functions import *
from .arrays import Array as Array
from .arrays import compute as compute
from .arrays import explain as explain
from .errors import *
from .pool import Pool as Pool
from .search import BinaryIndex as BinaryIndex
from .search import IDSelector as IDSelector
from .search import IDSelectorAll as IDSelectorAll
from .search import IDSelectorAnd as IDSelectorAnd
from .search import IDSelectorArray as IDSelectorArray
from .search import IDSelectorBatch as IDSelectorBatch
from .search import IDSelectorBitmap as IDSelectorBitmap
from .search import IDSelectorNot as IDSelectorNot
from .search import IDSelectorOr as IDSelectorOr
from .search import IDSelectorRange as IDSelectorRange
from .search import IDSelectorXOr as IDSelectorXOr
from .terminal import progress as progress

open = _open
