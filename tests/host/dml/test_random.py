"""Random operators, layouts and aliases through the real driver, against the golden model.

The device is a model of the circuit's contract, so that lowering and records are exercised.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
import pytest

from bitlane import dml, reference
from bitlane.dml import BufferBinding, BufferTensorDesc, DataType
from bitlane.dml.operators import OPERATOR_DESCS, InPlace, OperatorDesc
from bitlane.dml.rules import supported_types
from bitlane.driver.driver import Driver
from support.models.device import ModelLink

LEVEL = dml.FeatureLevel.LEVEL_4_1
BUFFER = 8192


@dataclass
class Case:
    """An operator, and where its inputs and its output stand in the one buffer."""

    desc: OperatorDesc
    offsets: list[int]
    ends: list[int]


def random_strides(generator: random.Random, sizes: list[int], repeats: bool) -> list[int] | None:
    """Packed, permuted, padded or (inputs) repeated; never overlapping for an output."""
    if generator.random() < 0.3:
        return None
    axes = list(range(len(sizes)))
    if generator.random() < 0.5:
        generator.shuffle(axes)
    strides = [0] * len(sizes)
    stride = generator.choice([1, 1, 1, 2, 3])
    for axis in reversed(axes):
        strides[axis] = stride
        stride = stride * sizes[axis] + generator.choice([0, 0, 0, 1, 5])
    if repeats:
        strides = [0 if generator.random() < 0.2 else stride for stride in strides]
    return strides


def random_case(generator: random.Random) -> Case:
    kind = generator.choice(list(OPERATOR_DESCS.values()))
    data_type = generator.choice(supported_types(kind, False, LEVEL))
    out_type = data_type
    if kind is dml.ElementWiseBitCountOperatorDesc:
        out_type = generator.choice([DataType.UINT8, DataType.UINT32])
    sizes = [generator.choice([1, 1, 2, 3, 5, 7]) for _ in range(generator.randint(1, 8))]
    while np.prod(sizes) > 200:
        sizes[sizes.index(max(sizes))] = 1
    inputs = [
        BufferTensorDesc(data_type, sizes, random_strides(generator, sizes, True))
        for _ in range(2 if kind.op.reads_b else 1)
    ]
    in_place = None
    if kind.in_place is not InPlace.NONE and generator.random() < 0.3:
        in_place = generator.randrange(len(inputs))
        strides = random_strides(generator, sizes, False)
        inputs[in_place] = BufferTensorDesc(data_type, sizes, strides)
    output = (
        inputs[in_place]
        if in_place is not None
        else BufferTensorDesc(out_type, sizes, random_strides(generator, sizes, False))
    )
    tensors = [*inputs, output]
    place, offsets = 0, []
    for tensor in tensors:
        place += 16 * generator.randrange(4)
        offsets.append(place)
        place = (place + tensor.total_tensor_size_in_bytes + 15) // 16 * 16
    if in_place is not None:
        offsets[-1] = offsets[in_place]
    desc = cast(Callable[..., OperatorDesc], kind)(*tensors)
    ends = [o + t.total_tensor_size_in_bytes for o, t in zip(offsets, tensors, strict=True)]
    return Case(desc, offsets, ends)


def execute(device: dml.Device, buffer: dml.Buffer, case: Case) -> None:
    operator = device.compile_operator(device.create_operator(case.desc))
    recorder, commands = device.create_command_recorder(), device.create_command_list()
    initializer = device.create_operator_initializer([operator])
    recorder.record_dispatch(commands, initializer, device.create_binding_table(initializer))
    table = device.create_binding_table(operator)
    bindings = [
        BufferBinding(buffer, offset, end - offset)
        for offset, end in zip(case.offsets, case.ends, strict=True)
    ]
    table.bind_inputs(bindings[:-1])
    table.bind_outputs(bindings[-1:])
    recorder.record_dispatch(commands, operator, table)
    device.execute(commands)


@pytest.mark.parametrize("seed", range(25))
def test_agrees_with_the_golden_model_on_every_byte(seed: int) -> None:
    generator = random.Random(seed)
    with Driver(ModelLink()) as driver, dml.Device(driver) as device:
        buffer = device.create_buffer(BUFFER * 4)
        for _ in range(8):
            case = random_case(generator)
            before = np.frombuffer(generator.randbytes(buffer.size_in_bytes), np.uint8)
            buffer.write(before)
            execute(device, buffer, case)
            regions = [reference.Region(before, offset) for offset in case.offsets]
            want = reference.evaluate(case.desc, regions[:-1], regions[-1])
            different = np.flatnonzero(buffer.read() != want)
            assert different.size == 0, f"seed {seed}: {case}: bytes {different[:8]}"
