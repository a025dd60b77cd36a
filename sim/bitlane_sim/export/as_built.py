"""What a core's registers say of how it was built, for the files that go with it. Values only."""

from collections.abc import Mapping

from bitlane_rtl.abi import REGISTERS
from bitlane_rtl.configuration import Configuration

__all__ = ["reset_values"]


def reset_values(configuration: Configuration) -> Mapping[str, int]:
    """What each register that can be read reads after reset, by name, in the contract's order."""
    # All of Amaranth, which help and complaints do without.
    from bitlane_rtl.control.registers import capabilities, geometry, search

    built = {
        "CAPABILITIES": capabilities(configuration),
        "GEOMETRY": geometry(configuration),
        "MEMORY_BASE": configuration.memory_base,
        "MEMORY_LAST": configuration.memory_last,
        "SEARCH": search(configuration),
    }
    return {x.name: built[x.name] if x.reset is None else x.reset for x in REGISTERS}
