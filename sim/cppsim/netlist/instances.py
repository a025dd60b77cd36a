"""Components in the places of Instances, of which nobody but their makers knows what they do."""

from collections.abc import Callable, Mapping
from typing import Any

from amaranth.hdl import Fragment, Instance, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In

__all__ = ["replace_instances"]


def replace_instances(fragment: Any, cells: Mapping[str, Callable[[], wiring.Component]]) -> None:
    """Replace each Instance within ``fragment`` that has a component in ``cells``.

    The component has the Instance's ports by their names, but for clocks: it works in ``sync``.
    """
    for number, (inner, *about) in enumerate(fragment.subfragments):
        if not isinstance(inner, Instance):
            replace_instances(inner, cells)
            continue
        instance: Any = inner
        if instance.type in cells:
            wrapped = Fragment.get(_wrapped(cells[instance.type](), instance.ports), None)
            fragment.subfragments[number] = (wrapped, *about)


def _wrapped(component: Any, ports: Mapping[str, tuple[Any, str]]) -> Module:
    """A component with its ports connected to the values in ``ports``."""
    m = Module()
    m.submodules.cell = component
    for name, member in component.signature.members.items():
        value, _ = ports[name]
        port = getattr(component, name)
        m.d.comb += port.eq(value) if member.flow == In else value.eq(port)
    return m
