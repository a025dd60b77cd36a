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

if TYPE_CHECKING:
    from . import array_api as array_api
    from . import dml as dml
    from . import onnx as onnx
    from .api.default import asarray as asarray
    from .api.default import default_device as default_device
    from .api.device import Device as Device
    from .api.device import open_device as _open
    from .api.functions import *
    from .arrays import Array as Array
    from .arrays import compute as compute
    from .arrays import explain as explain
    from .errors import *
    from .pool import Pool as Pool
    from .search import BinaryIndex as BinaryIndex
    from .terminal import progress as progress
    from .version import __version__ as __version__

    open = _open
else:
    _HOMES = {
        "Array": "arrays.Array",
        "BinaryIndex": "search.BinaryIndex",
        "Device": "api.device.Device",
        "Pool": "pool.Pool",
        "__version__": "version.__version__",
        "asarray": "api.default.asarray",
        "compute": "arrays.compute",
        "default_device": "api.default.default_device",
        "explain": "arrays.explain",
        "open": "api.device.open_device",
        "progress": "terminal.progress",
    }

    def _public() -> dict[str, object]:
        """Import all names but those of modules."""
        from importlib import import_module

        errors, functions = (
            import_module(f".{name}", __name__) for name in ("errors", "api.functions")
        )
        names = {name: getattr(errors, name) for name in errors.__all__}
        names |= {name: value for name, value in vars(functions).items() if name[0] != "_"}
        for name, home in _HOMES.items():
            module, _, attribute = home.rpartition(".")
            names[name] = getattr(import_module(f".{module}", __name__), attribute)
        return names

    def __getattr__(name: str) -> object:
        """Import the names when one is first used: the command's Ctrl-C cannot wait for NumPy."""
        if name in ("array_api", "dask", "dml", "onnx"):
            from importlib import import_module

            return import_module(f".{name}", __name__)
        here = globals()
        if "__all__" not in here:
            names = _public()
            here |= names
            here["__all__"] = sorted({*names, "array_api", "dml"})
        if name not in here:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return here[name]

    def __dir__() -> list[str]:
        return __getattr__("__all__")
