"""``bitlane.explain``: what is to be done for arrays that are pending. Executes nothing."""

from ..expression.explain import explain as explain_nodes
from ..jobs.operands import DataTypeError
from .array import Array

__all__ = ["explain"]


def explain(*arrays: Array) -> str:
    """A table of the commands that compute ``arrays``, which are on one device, as one job.

    Of each its elements, bytes and cycles, which are estimated; in the last lines their sum, and
    what it would be with a command for each operation.
    """
    if not arrays or not all(isinstance(x, Array) for x in arrays):
        raise DataTypeError("explain: expected arrays on a device (device.asarray makes them)")
    pending = [x.value for x in arrays if x.pending]
    if not pending:
        return "computed already: no commands"
    return explain_nodes(pending[0].home.driver.geometry, [value.node for value in pending])
