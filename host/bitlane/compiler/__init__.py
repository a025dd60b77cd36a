"""The compiler: expressions on tensors in the device's memory become passes, and these a run."""

from .bounds import possible_bits
from .compiled import CompiledForm
from .evaluation import assign, evaluate
from .explain import Explanation, explain, pass_costs
from .forms import Form, describe
from .fusion import fuse
from .memory import allocate, write_into
from .nodes import (
    Applied,
    Argument,
    Constant,
    Expression,
    Joined,
    Stored,
    Viewed,
    VirtualBuffer,
    Widened,
    add_on_host,
    add_up,
    apply,
    broadcast,
    copy_ordered,
    count_pending,
    join,
    narrow,
    truth_of,
    widen,
    window,
)
from .passes import Location, Plan, plan_passes
from .prices import Prices
from .stages import compute_in_stages, compute_sums_below

__all__ = [
    "Applied",
    "Argument",
    "CompiledForm",
    "Constant",
    "Explanation",
    "Expression",
    "Form",
    "Joined",
    "Location",
    "Plan",
    "Prices",
    "Stored",
    "Viewed",
    "VirtualBuffer",
    "Widened",
    "add_on_host",
    "add_up",
    "allocate",
    "apply",
    "assign",
    "broadcast",
    "compute_in_stages",
    "compute_sums_below",
    "copy_ordered",
    "count_pending",
    "describe",
    "evaluate",
    "explain",
    "fuse",
    "join",
    "narrow",
    "pass_costs",
    "plan_passes",
    "possible_bits",
    "truth_of",
    "widen",
    "window",
    "write_into",
]
