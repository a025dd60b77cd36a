"""``bitlane.explain``: what is to be done for arrays that are pending. Executes nothing."""

from ..compiler.explain import explain as explain_nodes
from ..errors import DataTypeError
from .array import Array
from .base import value_of
from .elementwise import on_device


def explain(*arrays: Array) -> str:
    """A table of the commands that compute ``arrays``, which are on one device, as one job.

    Of each its elements, bytes and cycles, which are estimated; in the last lines their sum, and
    what it would be with a command for each operation.
    """
    if not arrays or not all(isinstance(x, Array) for x in arrays):
        raise DataTypeError("explain: expected arrays on a device (device.asarray makes them)")
    home = arrays[0].device
    nodes = [on_device(home, "x", value_of(x)).node for x in arrays if x.pending]
    if not nodes:
        return "computed already: no commands"
    return explain_nodes(home.driver.geometry, nodes)
