"""An operator that has been created: it can be compiled by itself, or be a node of graphs."""

from .buffer import Parent
from .operators import NodeDesc

__all__ = ["Operator"]


class Operator:
    """``IDMLOperator``: a description that has passed every rule. Of ``Device.create_operator``."""

    def __init__(self, device: Parent, desc: NodeDesc) -> None:
        self.device = device
        self.desc = desc

    def __repr__(self) -> str:
        return f"<bitlane.dml.Operator: {self.desc.operator_type}>"
