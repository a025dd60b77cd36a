"""The representation of an array: its type and shape, and its elements if they are computed.

Never computes; of a large array only the corners come to the host.
"""

from html import escape

import numpy as np

from .._typing import AnyArray
from ..compiler import Stored
from ..errors import BitlaneError
from ..lowering import order_of
from .indexing import select
from .selections import gather
from .transfers import download
from .value import Value


def format_text(value: Value) -> str:
    """Return type, shape and elements as NumPy prints them; a pending array says that it is."""
    note, shown = _show(value)
    what = _describe(value) + note
    return f"<{what}>" if shown is None else f"<{what}\n{shown}>"


def format_html(value: Value) -> str:
    """Return a table of shape, type, device and state in HTML, and the elements below it."""
    note, shown = _show(value)
    facts = {
        "shape": value.shape,
        "dtype": value.dtype,
        "device": value.device.driver.link.description,
        "state": (_state(value) or "computed") + note,
    }
    rows = [f"<tr><th>{key}</th><td>{escape(str(x))}</td></tr>" for key, x in facts.items()]
    elements = "" if shown is None else f"<pre>{escape(shown)}</pre>"
    return f"<table>{''.join(rows)}</table>{elements}"


def summarize(value: Value) -> str:
    """Return type and shape in one line; no element comes to the host."""
    return f"<{_describe(value)}>"


def _describe(value: Value) -> str:
    state = _state(value)
    what = f"bitlane.Array: shape {value.shape}, {value.dtype}, on {value.device!r}"
    return f"{what}, {state}" if state else what


def _state(value: Value) -> str:
    """Return "freed", "pending", or "" for an array whose elements are on the device."""
    node = value.node
    freed = isinstance(node, Stored) and node.storage.closed
    return "freed" if freed else "pending" if value.pending else ""


def _show(value: Value) -> tuple[str, str | None]:
    """Return a note on elements that cannot be read, and the elements, None if there are none."""
    node = value.node
    if not isinstance(node, Stored) or node.storage.closed:
        return "", None
    if value.device.driver.closed:
        return ", not shown", None
    try:
        return "", _format_elements(value)
    except BitlaneError as error:
        # Debuggers show arrays of a device that is closed or busy, too.
        return f", not shown: {error}", None


def _format_elements(value: Value) -> str:
    options = np.get_printoptions()
    edge = options["edgeitems"]
    if value.strided.size <= options["threshold"]:
        return np.array2string(download(value))
    return np.array2string(_read_corners(value, edge), threshold=0, edgeitems=edge)


def _read_corners(value: Value, edge: int) -> AnyArray:
    """Read ``edge`` elements at both ends of each axis, and one between that is not printed."""
    order = order_of(value.strided.strides)
    ordered = value.view(value.strided.transpose(order))
    sides = [
        np.arange(n) if n <= 2 * edge else np.r_[: edge + 1, n - edge : n] for n in ordered.shape
    ]
    corners = download(gather(ordered, select(ordered.strided, np.ix_(*sides))))
    return corners.transpose(np.argsort(order))
