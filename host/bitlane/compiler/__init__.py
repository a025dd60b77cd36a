"""The compiler: expressions on tensors in the device's memory become passes, and these a run."""

from .bounds import possible_bits
from .compiled import CompiledForm
from .evaluation import assign, evaluate
from .explain import explain, pass_costs
from .forms import Form, describe
from .fusion import fuse
from .memory import allocate
from .nodes import (
    Applied,
    Constant,
    Expression,
    Joined,
    Stored,
    Viewed,
    Widened,
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

__all__ = [
    "Applied",
    "CompiledForm",
    "Constant",
    "Expression",
    "Form",
    "Joined",
    "Location",
    "Plan",
    "Prices",
    "Stored",
    "Viewed",
    "Widened",
    "add_up",
    "allocate",
    "apply",
    "assign",
    "broadcast",
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
]
