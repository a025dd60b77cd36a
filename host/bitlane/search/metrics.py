"""What a distance is: which counts the device gives for it, and what the host makes of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bitlane_rtl.abi import Op

from ..errors import SearchError
from ..jobs.operands import AnyArray

__all__ = ["Metric", "metric_of"]

Sums = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Metric:
    """A distance between rows of bits."""

    name: str
    ops: tuple[Op, ...]
    """Whose counts, added up over a row, it is made of."""
    dtype: np.dtype[Any]
    farthest: float
    """What stands for the distance of a row that there is not."""
    of: Callable[[Sequence[Sums]], AnyArray]
    """The distances that sums, one array an operation, make."""


def _hamming(sums: Sequence[Sums]) -> AnyArray:
    return sums[0].astype(np.int32)


def _jaccard(sums: Sequence[Sums]) -> AnyArray:
    shared, either = sums
    similarity = np.zeros(shared.shape)
    np.divide(shared, either, out=similarity, where=either != 0)
    return 1 - similarity


_METRICS: Final[Mapping[str, Metric]] = {
    metric.name: metric
    for metric in (
        Metric("hamming", (Op.COUNT_XOR,), np.dtype(np.int32), 2**31 - 1, _hamming),
        Metric("jaccard", (Op.COUNT_AND, Op.COUNT_OR), np.dtype(np.float64), np.inf, _jaccard),
    )
}


def metric_of(name: object) -> Metric:
    """The metric of that name. Raises ``SearchError``."""
    if not isinstance(name, str) or name not in _METRICS:
        raise SearchError(f"metric: {name!r}; expected {' or '.join(map(repr, _METRICS))}")
    return _METRICS[name]
