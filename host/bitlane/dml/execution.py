"""Execution of dispatches, all of a call as one job, as if one after another.

Everything is checked before the device does anything. Never computes.
"""

from collections.abc import Sequence

from ..driver.geometry import Geometry
from ..jobs.lowering import View, lower
from ..jobs.order import Job, in_order
from .binding import Bindings, BufferBinding
from .buffer import PIECE, Buffer, Parent
from .operators import OperatorDesc
from .program import COPYING, GraphProgram, Scratch, scratch_of
from .recorder import Execution, Initialization, Step
from .refusals import removed
from .table import CompiledOperator
from .tensor import BufferTensorDesc

__all__ = ["execute_steps"]


def execute_steps(device: Parent, steps: Sequence[Step]) -> None:
    """Raises ``DmlError`` before the first dispatch, and what the driver raises."""
    with device.driver.lock:  # from the check of what is initialised until it is so
        _check_order(steps)
        jobs: list[Job] = []
        copies: dict[CompiledOperator, dict[str, Buffer]] = {}
        scratches: dict[CompiledOperator, Scratch] = {}
        for step in steps:
            if isinstance(step, Execution):
                owned = copies.get(step.operator, step.operator.owned)
                scratch = scratches.get(step.operator, step.operator.scratch)
                jobs += _jobs(device, step, owned, scratch)
                continue
            for operator, bindings in zip(step.operators, step.inputs, strict=True):
                copies[operator] = _copy_owned(device, operator, bindings, jobs)
                if isinstance(operator.desc, GraphProgram):
                    scratches[operator] = scratch_of(device, operator.desc)
        device.driver.run(in_order(jobs))
        # Not before: an operator whose initialisation failed can be initialised again.
        for operator, owned in copies.items():
            operator.owned = owned
            operator.scratch = scratches.get(operator)
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
            if operator.scratch and operator.scratch.buffer:
                buffers.append(operator.scratch.buffer)
        if any(buffer.closed for buffer in buffers):
            raise removed("RecordDispatch", "Buffer", "closed", "buffers that exist")


def _wrong_state(operator: CompiledOperator, state: str, expected: str) -> Exception:
    return removed(str(operator.desc.operator_type), "State", state, expected)


def _copy_owned(
    device: Parent, operator: CompiledOperator, bindings: Bindings, jobs: list[Job]
) -> dict[str, Buffer]:
    """Buffers for what DML is to own, which ``jobs``, to which this adds, will have filled.

    Afterwards the buffers that are bound belong to the caller alone again. A circuit without any
    of ``COPYING`` cannot copy: then the bytes go down to the host and up again, between jobs.
    """
    driver = device.driver
    op = next((op for op in COPYING if op in driver.geometry.ops), None)
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


def _jobs(
    device: Parent, step: Execution, owned: dict[str, Buffer], scratch: Scratch | None
) -> list[Job]:
    desc, geometry = step.operator.desc, device.driver.geometry
    inputs = [
        BufferBinding(owned[name]) if name in owned else binding
        for (name, _), binding in zip(desc.inputs, step.inputs, strict=True)
    ]
    if isinstance(desc, OperatorDesc):
        return [_job(desc, inputs, step.outputs[0], geometry)]
    assert scratch is not None
    starts = [_address(binding) for binding in (*step.outputs, *inputs)]
    starts.append(scratch.buffer.address if scratch.buffer else 0)
    return scratch.arrangement.jobs(starts, geometry)


def _job(
    desc: OperatorDesc,
    inputs: Sequence[BufferBinding | None],
    output: BufferBinding | None,
    geometry: Geometry,
) -> Job:
    views = [_view(tensor, x) for (_, tensor), x in zip(desc.inputs, inputs, strict=True)]
    sizes = desc.output_tensor.sizes
    target = _view(desc.output_tensor, output)
    second = views[-1] if desc.op.reads_b else None
    commands = lower(desc.op, sizes, views[0], second, target, geometry=geometry)
    return Job.of(commands, sizes, views, target)


def _view(tensor: BufferTensorDesc, binding: BufferBinding | None) -> View:
    itemsize = tensor.data_type.itemsize
    strides = tuple(stride * itemsize for stride in tensor.element_strides)
    return View(_address(binding), strides, itemsize)


def _address(binding: BufferBinding | None) -> int:
    assert binding is not None
    return binding.buffer.address + binding.offset
