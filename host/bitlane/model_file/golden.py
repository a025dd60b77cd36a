"""What every resource of a model ought to hold, dispatch by dispatch. Knows no device."""

import numpy as np
import numpy.typing as npt

from .. import reference
from .model import Binding, Dispatch, Model

__all__ = ["Golden"]


class Golden:
    """The golden model's copy of a model's resources, as they are before the first dispatch."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._memory = {}
        for name, resource in model.resources.items():
            self._memory[name] = np.zeros(resource.size, np.uint8)
            self._memory[name][: resource.values.size] = resource.data
        self._owned = {
            (dispatchable.name, tensor): reference.Region(
                self._memory[binding.resource].copy(), binding.offset
            )
            for dispatchable in model.dispatchables.values()
            for tensor, binding in dispatchable.bindings.items()
        }

    def compare(self, command: Dispatch, got: npt.NDArray[np.uint8]) -> tuple[str, bool]:
        """The line of a check, and whether ``got``, all of the output's resource, is right.

        Dispatches are to be compared in their order, each once.
        """
        desc = self._model.dispatchables[command.dispatchable].desc
        inputs = [
            self._owned[command.dispatchable, name]
            if (command.dispatchable, name) in self._owned
            else self._region(command.bindings[name])
            for name, _ in desc.inputs
        ]
        binding = command.bindings[desc.outputs[0][0]]
        want = reference.evaluate(desc, inputs, self._region(binding))
        # After a difference go on with what the device has, so that it is reported once.
        self._memory[binding.resource] = got
        different = np.flatnonzero(got != want)
        if different.size == 0:
            return f"Check '{command.dispatchable}': {got.size} bytes equal", True
        first = int(different[0])
        line = (
            f"Check '{command.dispatchable}': {different.size} of {got.size} bytes differ, first"
            f" byte {first} of '{binding.resource}' (byte {first - binding.offset} of"
            f" {desc.outputs[0][0]}): 0x{got[first]:02X}, expected 0x{want[first]:02X}"
        )
        return line, False

    def _region(self, binding: Binding) -> reference.Region:
        return reference.Region(self._memory[binding.resource], binding.offset)
