"""Computing pending arrays together, and explaining how they would be computed."""

from collections.abc import Sequence

from ..compiler import Explanation
from ..compiler import explain as explain_nodes
from ..errors import DataTypeError
from .array import Array
from .elementwise import as_value
from .value import Value
from .value import compute as compute_values


def compute(*arrays: Array) -> None:
    """Compute those of ``arrays`` that are pending, all on one device, as one job.

    Their common parts are computed once. Raises ``DataTypeError`` for anything but arrays on a
    device, ``OtherDeviceError`` for arrays on two, and what the operations on ``Device`` do.
    """
    compute_values(*_values("compute", arrays))


def explain(*arrays: Array) -> Explanation:
    """Return a table of the commands that compute ``arrays``, on one device, as one job.

    Each line has the elements, bytes and estimated cycles of a command, or those that the device
    predicts; the last lines have their sum, and the sum for a command per operation.
    Executes nothing. Raises as `compute` does.
    """
    values = _values("explain", arrays)
    nodes = [value.node for value in values if value.pending]
    if not nodes:
        return Explanation("computed already: no commands")
    driver = values[0].device.driver
    return explain_nodes(driver.geometry.abilities, nodes, driver.link)


def _values(name: str, arrays: Sequence[Array]) -> list[Value]:
    """Return the values of ``arrays``, one or more on one device."""
    if not arrays or not all(isinstance(x, Array) for x in arrays):
        raise DataTypeError(f"{name}: expected arrays on a device (device.asarray makes them)")
    device = arrays[0].device
    return [as_value(device, "x", x._value) for x in arrays]
