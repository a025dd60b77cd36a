"""What an integrator gets beside the module and its page: C, SystemRDL, FuseSoC. Text only.

The driver's own files are the same for every core, and lie in `driver/` as they are exported.
"""

from importlib.resources import files

from bitlane_rtl.configuration import Configuration

from .c_headers import core_header, registers_header
from .fusesoc import fusesoc_core
from .system_rdl import system_rdl

__all__ = ["DRIVER_NAMES", "integrator_files"]

_CONTRACT = "bitlane_registers.h"
_DRIVER = ("bitlane.h", "bitlane.c")

DRIVER_NAMES = frozenset({"bitlane", "bitlane_registers"})
"""What a core that is exported into a folder cannot be called: the driver's files are."""


def integrator_files(configuration: Configuration, name: str, command: str) -> dict[str, str]:
    """Files that go with the module ``name``, which ``command`` writes: their names and text."""
    header = f"{name}.h"
    driver = files("bitlane_sim.export") / "driver"
    result = {
        header: core_header(configuration, name, command),
        _CONTRACT: registers_header(),
        **{file: (driver / file).read_text(encoding="utf-8") for file in _DRIVER},
        f"{name}.rdl": system_rdl(configuration, name, command),
    }
    sources = [header, _CONTRACT, *_DRIVER]
    return result | {f"{name}.core": fusesoc_core(name, command, f"{name}.v", sources)}
