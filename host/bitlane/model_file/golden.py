"""What every resource of a model ought to hold, dispatch by dispatch. Knows no device."""

import numpy as np
import numpy.typing as npt

from .. import reference
from .line import Line
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

    def compare(self, command: Dispatch, got: npt.NDArray[np.uint8], iterations: int = 1) -> Line:
        """The line of a check of ``got``, all of the output's resource; ``different``: wrong bytes.

        Dispatches are to be compared in their order, each once; ``iterations``: how often it was
        executed.
        """
        desc = self._model.dispatchables[command.dispatchable].desc
        binding = command.bindings[desc.outputs[0][0]]
        want = self._after(command)
        for _ in range(1, iterations):
            # What reads where it writes gives something else every time.
            self._memory[binding.resource], before = want, want
            want = self._after(command)
            if np.array_equal(want, before):
                break
        # After a difference go on with what the device has, so that it is reported once.
        self._memory[binding.resource] = got
        different = np.flatnonzero(got != want)
        name = command.dispatchable
        data = {"name": name, "bytes": got.size, "different": different.size}
        if different.size == 0:
            return Line(f"Check '{name}': {got.size} bytes equal", "checks", data)
        first = int(different[0])
        text = (
            f"Check '{name}': {different.size} of {got.size} bytes differ, first"
            f" byte {first} of '{binding.resource}' (byte {first - binding.offset} of"
            f" {desc.outputs[0][0]}): 0x{got[first]:02X}, expected 0x{want[first]:02X}"
        )
        return Line(text, "checks", data)

    def _after(self, command: Dispatch) -> npt.NDArray[np.uint8]:
        """All of the output's resource after one more execution."""
        desc = self._model.dispatchables[command.dispatchable].desc
        inputs = [
            self._owned[command.dispatchable, name]
            if (command.dispatchable, name) in self._owned
            else self._region(command.bindings[name])
            for name, _ in desc.inputs
        ]
        output = self._region(command.bindings[desc.outputs[0][0]])
        return reference.evaluate(desc, inputs, output)

    def _region(self, binding: Binding) -> reference.Region:
        return reference.Region(self._memory[binding.resource], binding.offset)
