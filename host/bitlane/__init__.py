"""DirectML's element-wise bit operators on an FPGA, or on a simulation of its circuit.

For example::

    import bitlane, numpy as np
    with bitlane.open("sim") as device:
        y = device.bit_xor(a, b)
        x = device.asarray(a)  # stays there
        z = (x ^ b) & 7        # computed on the device, when it is needed
    y = bitlane.bit_not(a)  # on the default device
"""

from typing import TYPE_CHECKING

from .version import __version__ as __version__

if TYPE_CHECKING:
    from . import array_api as array_api
    from . import dml as dml
    from . import onnx as onnx
    from .names import *
else:

    def __getattr__(name: str) -> object:
        """Import the names when one is first used: the command's Ctrl-C cannot wait for NumPy."""
        from importlib import import_module

        if name in ("array_api", "dask", "dml", "onnx"):
            return import_module(f".{name}", __name__)
        here = globals()
        if "__all__" not in here:
            names = vars(import_module(".names", __name__)).items()
            public = {each: value for each, value in names if each[0] != "_"}
            here |= public
            here["__all__"] = sorted({*public, "__version__", "array_api", "dml"})
        if name not in here:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return here[name]

    def __dir__() -> list[str]:
        return __getattr__("__all__")
