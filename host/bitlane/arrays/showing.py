"""The representation of an array: its type and shape, and its elements if they are computed.

Never computes; of a large array only the corners come to the host.
"""

from html import escape

import numpy as np

from .._typing import AnyArray
from ..compiler.nodes import Stored
from ..errors import BitlaneError
from .indexing import gather, select
from .transfers import download
from .value import Value


def format_text(value: Value) -> str:
    """Return type, shape and elements as NumPy prints them; a pending array says that it is."""
    what, shown = _show(value)
    return f"<{what}>" if shown is None else f"<{what}\n{shown}>"


def format_html(value: Value) -> str:
    """Return `format_text` as HTML, for notebooks."""
    what, shown = _show(value)
    return f"<div>{escape(what)}</div>" + ("" if shown is None else f"<pre>{escape(shown)}</pre>")


def summarize(value: Value) -> str:
    """Return type and shape in one line; no element comes to the host."""
    return f"<{_describe(value)}>"


def _describe(value: Value) -> str:
    node = value.node
    freed = isinstance(node, Stored) and node.storage.closed
    state = ", freed" if freed else ", pending" if value.pending else ""
    return f"bitlane.Array: shape {value.shape}, {value.dtype}, on {value.device!r}{state}"


def _show(value: Value) -> tuple[str, str | None]:
    what, node = _describe(value), value.node
    if not isinstance(node, Stored) or node.storage.closed:
        return what, None
    try:
        return what, _format_elements(value)
    except BitlaneError as error:
        # Debuggers show arrays of a device that is closed or busy, too.
        return f"{what}, not shown: {error}", None


def _format_elements(value: Value) -> str:
    options = np.get_printoptions()
    edge = options["edgeitems"]
    if value.strided.size <= options["threshold"]:
        return np.array2string(download(value))
    return np.array2string(_read_corners(value, edge), threshold=0, edgeitems=edge)


def _read_corners(value: Value, edge: int) -> AnyArray:
    """Read ``edge`` elements at both ends of each axis, and one between that is not printed."""
    sides = [
        np.arange(n) if n <= 2 * edge else np.r_[: edge + 1, n - edge : n] for n in value.shape
    ]
    return download(gather(value, select(value.strided, np.ix_(*sides))))
