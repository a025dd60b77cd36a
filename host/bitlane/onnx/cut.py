"""Cuts a model into groups for the device and models for another backend."""

from collections.abc import Iterable, Sequence
from typing import Final

from onnx import GraphProto, ModelProto, helper

from .model import BitGraph, BitNode, DeviceGroup, Group, RestGroup
from .parse import read_model
from .partition import group_nodes, schedule
from .rest import expect_rest
from .whole import WholeModel, WholeNode
from .worth import NOT_WORTH, is_worth

_INITIALIZERS_ALONE: Final = 4
"""The first version of the format whose initializers need not be inputs."""


def read_graph(model: ModelProto, rest: str | None = None) -> BitGraph:
    """Read ``model`` and cut it into groups: `read_model`, then `cut_model`, which say more.

    Raises ``OnnxError``, or ``SettingError`` for an unknown ``rest``.
    """
    expect_rest(rest)
    return cut_model(read_model(model, binary=rest is not None), rest)


def cut_model(model: WholeModel, rest: str | None) -> BitGraph:
    """Return ``model`` in groups; ``rest`` names the backend of nodes that the device lacks.

    Raises ``OnnxLackingError`` if there are such nodes and ``rest`` is None; ``OnnxError`` if the
    type of a value between two groups is not known.
    """
    if rest is None:
        model.expect_whole()
    model.expect_valid()
    nodes = _needed(model)
    cutter = _Cutter(model, nodes)
    groups: list[Group]
    own = [node.device for node in nodes if node.device is not None]
    if rest is None or (len(own) == len(nodes) and is_worth(own)):
        # Nothing is cut: all of it is one plan, though parts of it may not be connected.
        groups = [cutter.device_group(nodes)]
    else:
        groups = cutter.groups()
    constants = {**model.constants, **model.defaults}
    return BitGraph(model.name, model.inputs, constants, tuple(groups), model.outputs)


def _needed(model: WholeModel) -> list[WholeNode]:
    """Return the nodes that outputs of the model need, in order."""
    wanted = {x.name for x in model.outputs}
    found = []
    for node in reversed(model.nodes):
        if not wanted.isdisjoint(node.outputs):
            wanted.update(node.inputs)
            found.append(node)
    return found[::-1]


class _Cutter:
    """Makes groups of ``nodes``, which are all that the outputs of ``model`` need."""

    def __init__(self, model: WholeModel, nodes: Sequence[WholeNode]) -> None:
        self._model = model
        self._nodes = nodes
        self._readers: dict[str, list[int]] = {}
        for number, node in enumerate(nodes):
            for name in node.inputs:
                self._readers.setdefault(name, []).append(number)

    def groups(self) -> list[Group]:
        nodes = self._nodes
        made = {name: number for number, node in enumerate(nodes) for name in node.outputs}
        reads = [{made[name] for name in node.inputs if name in made} for node in nodes]
        ours = [node.device is not None for node in nodes]
        found = [
            group
            for group in group_nodes(reads, ours)
            if is_worth(node.device for node in self._at(group) if node.device)
        ]
        return [
            self.device_group(self._at(members)) if on_device else self._rest_group(members)
            for on_device, members in schedule(reads, found)
        ]

    def _at(self, members: Iterable[int]) -> list[WholeNode]:
        return [self._nodes[number] for number in members]

    def device_group(self, nodes: Sequence[WholeNode]) -> DeviceGroup:
        own: list[BitNode] = [node.device for node in nodes if node.device is not None]
        made = {node.output for node in own}
        inputs = dict.fromkeys(x for node in own for x in node.inputs if x not in made)
        outputs = self._wanted(nodes)
        if len(nodes) == len(self._nodes):
            # Also those that no node makes.
            outputs = [x.name for x in self._model.outputs]
            inputs.update(dict.fromkeys(x for x in outputs if x not in made))
        return DeviceGroup(tuple(own), tuple(inputs), tuple(outputs))

    def _wanted(self, nodes: Sequence[WholeNode]) -> list[str]:
        """Return the values of ``nodes`` that other nodes or the caller read."""
        own = {id(node) for node in nodes}
        given = {x.name for x in self._model.outputs}
        return [
            name
            for node in nodes
            for name in node.outputs
            if name in given
            or any(id(self._nodes[reader]) not in own for reader in self._readers.get(name, ()))
        ]

    def _rest_group(self, members: Sequence[int]) -> RestGroup:
        nodes, inference = self._at(members), self._model.inference
        made = {name for node in nodes for name in node.outputs}
        read = dict.fromkeys(x for node in nodes for x in node.inputs if x not in made)
        inputs = [name for name in read if name not in self._model.tensors]
        outputs = self._wanted(nodes)
        graph = helper.make_graph(
            [node.proto for node in nodes],
            "rest",
            [inference.info(name) for name in inputs],
            [inference.info(name) for name in outputs],
            [self._model.tensors[name] for name in read if name in self._model.tensors],
        )
        content = self._submodel(graph).SerializeToString()
        found = {name: inference.type_of(name) for name in outputs}
        types = {name: dtype for name, dtype in found.items() if not isinstance(dtype, str)}
        reasons = tuple(node.reason or f"{node.label}: {NOT_WORTH}" for node in nodes)
        return RestGroup(reasons, tuple(inputs), tuple(outputs), content, types)

    def _submodel(self, graph: GraphProto) -> ModelProto:
        imports = list(self._model.proto.opset_import)
        model = helper.make_model(graph, opset_imports=imports)
        # Other backends know fewer versions of the format than the package onnx.
        oldest = helper.find_min_ir_version_for(imports, ignore_unknown=True)
        model.ir_version = max(_INITIALIZERS_ALONE, oldest)
        return model
