"""Execution of dispatches, all of a call as one job, as if one after another.

Everything is checked before the device does anything. Never computes.
"""

from collections.abc import Sequence
from typing import Final

from bitlane_rtl.abi import Op

from ..jobs.lowering import View, lower
from ..jobs.order import Job, in_order
from .binding import Bindings, BufferBinding
from .buffer import PIECE, Buffer, Parent
from .recorder import Execution, Initialization, Step
from .refusals import removed
from .table import CompiledOperator
from .tensor import BufferTensorDesc

__all__ = ["execute_steps"]

_COPYING: Final = (Op.COPY, Op.OR, Op.AND)
"""What gives its operand unchanged, where both operands are the same: the cheapest first."""


def execute_steps(device: Parent, steps: Sequence[Step]) -> None:
    """Raises ``DmlError`` before the first dispatch, and what the driver raises."""
    with device.driver.lock:  # from the check of what is initialised until it is so
        _check_order(steps)
        jobs: list[Job] = []
        copies: dict[CompiledOperator, dict[str, Buffer]] = {}
        for step in steps:
            if isinstance(step, Execution):
                owned = copies.get(step.operator, step.operator.owned)
                jobs.append(_job(device, step, owned))
                continue
            for operator, bindings in zip(step.operators, step.inputs, strict=True):
                copies[operator] = _copy_owned(device, operator, bindings, jobs)
        device.driver.run(in_order(jobs))
        # Not before: an operator whose initialisation failed can be initialised again.
        for operator, owned in copies.items():
            operator.owned = owned
            operator.initialized = True


def _check_order(steps: Sequence[Step]) -> None:
    """Every operator is initialised exactly once, before its first execution; buffers live.

    Source: ``nf-directml-idmldevice-createoperatorinitializer``.
    """
    done: set[CompiledOperator] = set()
    for step in steps:
        if isinstance(step, Initialization):
            for operator in step.operators:
                if operator.initialized or operator in done:
                    expected = "a compiled operator that is initialized exactly once"
                    raise _wrong_state(operator, "initialized already", expected)
                done.add(operator)
            buffers = [each.buffer for group in step.inputs for each in group if each]
        else:
            operator = step.operator
            if not operator.initialized and operator not in done:
                expected = "a compiled operator that an initializer has initialized"
                raise _wrong_state(operator, "not initialized", expected)
            buffers = [each.buffer for each in (*step.inputs, *step.outputs) if each]
            buffers += operator.owned.values()
        if any(buffer.closed for buffer in buffers):
            raise removed("RecordDispatch", "Buffer", "closed", "buffers that exist")


def _wrong_state(operator: CompiledOperator, state: str, expected: str) -> Exception:
    return removed(str(operator.desc.operator_type), "State", state, expected)


def _copy_owned(
    device: Parent, operator: CompiledOperator, bindings: Bindings, jobs: list[Job]
) -> dict[str, Buffer]:
    """Buffers for what DML is to own, which ``jobs``, to which this adds, will have filled.

    Afterwards the buffers that are bound belong to the caller alone again. A circuit without any
    of ``_COPYING`` cannot copy: then the bytes go down to the host and up again, between jobs.
    """
    driver = device.driver
    op = next((op for op in _COPYING if op in driver.geometry.ops), None)
    owned = {}
    for (name, tensor), binding in zip(operator.desc.inputs, bindings, strict=True):
        if binding is None:
            continue
        size = tensor.total_tensor_size_in_bytes
        owned[name] = copy = device.create_buffer(size)
        if op is None:
            driver.run(in_order(jobs))
            jobs.clear()
            for start in range(0, size, PIECE):
                count = min(PIECE, size - start)
                copy.write(binding.buffer.read(count, binding.offset + start), start)
            continue
        source, target = (View(x, (1,), 1) for x in (_address(binding), copy.address))
        commands = lower(op, (size,), source, source, target, geometry=driver.geometry)
        jobs.append(Job.of(commands, (size,), [source], target))
    return owned


def _job(device: Parent, step: Execution, owned: dict[str, Buffer]) -> Job:
    desc = step.operator.desc
    views = [
        _view(tensor, BufferBinding(owned[name]) if name in owned else binding)
        for (name, tensor), binding in zip(desc.inputs, step.inputs, strict=True)
    ]
    output = desc.outputs[0][1]
    target = _view(output, step.outputs[0])
    second = views[-1] if desc.op.reads_b else None
    geometry = device.driver.geometry
    commands = lower(desc.op, output.sizes, views[0], second, target, geometry=geometry)
    return Job.of(commands, output.sizes, views, target)


def _view(tensor: BufferTensorDesc, binding: BufferBinding | None) -> View:
    assert binding is not None
    itemsize = tensor.data_type.itemsize
    strides = tuple(stride * itemsize for stride in tensor.element_strides)
    return View(_address(binding), strides, itemsize)


def _address(binding: BufferBinding) -> int:
    return binding.buffer.address + binding.offset
