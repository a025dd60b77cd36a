"""``add_bitlane``: the core in a SoC of LiteX, with its memory, window, interrupt and constants."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from litex.gen import LiteXModule
from litex.soc.integration.soc import SoCRegion
from litex.soc.interconnect import axi

from bitlane.errors import BitlaneError
from bitlane_rtl import abi
from bitlane_rtl.configuration import Configuration
from bitlane_rtl.configurations import full

from .core import Bitlane
from .whole_beats import WholeBeatsModule

__all__ = ["BUFFER_BEATS", "add_bitlane"]

_WIDTHS = (32, 64, 128)

_BITS = {
    "DFII_CONTROL_CKE": ("control", 2),
    "DFII_CONTROL_ODT": ("control", 4),
    "DFII_CONTROL_RESET_N": ("control", 8),
    "DFII_COMMAND_CS": ("command", 1),
    "DFII_COMMAND_WE": ("command", 2),
    "DFII_COMMAND_CAS": ("command", 4),
    "DFII_COMMAND_RAS": ("command", 8),
}
"""Bits of LiteDRAM's registers dfii_control and dfii_pi0_command, by the names in its steps."""

_WINDOW = 0x9000_0000
"""The control window's address, unless ``mem_map`` has one; not cached by LiteX's processors."""

_MODEL = "SDRAMPHYModel"
"""LiteDRAM's simulated chip, which has no pins, and masks by default."""

_HOST_WIDTH = 32
"""Bits of a word that the bridges of LiteX write for a host."""

BUFFER_BEATS = 32
"""Beats that LiteDRAM's bridges store each way: two bursts, so that one leaves while one comes."""


def add_bitlane(
    soc: Any,
    name: str = "bitlane",
    configuration: Configuration | None = None,
    *,
    memory: str = "main_ram",
    memory_bytes: int | None = None,
    masks: bool | None = None,
) -> Bitlane:
    """Add the core to ``soc`` and return it. Call it after ``add_sdram``, if the SoC has SDRAM.

    With SDRAM the core's managers have ports of LiteDRAM, else they are on the SoC's bus. The core
    writes single bytes at the ends of a run. Without byte masks LiteDRAM would write whole words
    instead, so the core's writes pass a `WholeBeatsModule` there.

    Parameters
    ----------
    soc : LiteXSoC
        The SoC, whose bus has the region ``memory``.
    name : str
        Name of the module. The window is the region ``NAME_control``, and the memory that the core
        may touch the region ``NAME_memory``.
    configuration : Configuration, optional
        The core to build; memory addresses are replaced. Default: ``full``, as wide as the memory.
    memory : str
        The region in which the core's memory is reserved, at its end.
    memory_bytes : int, optional
        Bytes to reserve. Default: all of ``memory`` without a processor, half of it with one.
    masks : bool, optional
        Whether the SDRAM has byte masks. Default: by the platform's pins.

    Raises
    ------
    BitlaneError
        The memory is missing, is too small, hides data in a cache from the core, or needs a
        processor to start it; or the configuration does not fit it; or the memory has no byte
        masks, and the SoC writes less than its words.
    """
    sdram = getattr(soc, "sdram", None)
    if sdram is not None:
        masks = _has_masks(soc) if masks is None else masks
        _expect_shared(soc)
    region = _region(soc, memory, memory_bytes)
    width = _port_width(sdram, soc) if configuration is None else configuration.data_width
    if sdram is not None and not masks:
        _expect_whole_words(soc, width)
    configuration = _in_region(configuration or full(width), region)
    soc.bus.add_region(f"{name}_memory", region)
    core = Bitlane(soc.platform, configuration)
    soc.add_module(name=name, module=core)
    if sdram is None:
        for number, manager in enumerate(core.managers):
            soc.bus.add_master(name=f"{name}{number}", master=manager)
    else:
        _connect_litedram(soc, name, _streams(soc, name, core, masks=masks), memory)
        _add_start(soc, name, sdram)
    _add_control(soc, name, core)
    return core


def _in_region(configuration: Configuration, region: SoCRegion) -> Configuration:
    try:
        return replace(configuration, memory_base=region.origin, memory_bytes=region.size)
    except ValueError as error:
        raise BitlaneError(f"add_bitlane: memory_bytes is {region.size}: {error}") from error


def _add_control(soc: Any, name: str, core: Bitlane) -> None:
    """Add the core's window and interrupt, and the constants that identify it."""
    window = soc.mem_map.get(f"{name}_control", _WINDOW)
    soc.bus.add_slave(
        name=f"{name}_control",
        slave=core.control,
        region=SoCRegion(origin=window, size=abi.CONTROL_SIZE, cached=False),
    )
    if soc.irq.enabled:
        soc.irq.add(name, use_loc_if_exists=True)
    soc.add_constant(f"{name}_ABI_VERSION", abi.ABI_VERSION)
    _add_build_number(soc, name, core)


def _region(soc: Any, memory: str, size: int | None) -> SoCRegion:
    """Return the region of the core's memory, at the end of the region ``memory``."""
    if memory not in soc.bus.regions:
        raise BitlaneError(
            f"add_bitlane: the SoC has no region {memory}; expected add_sdram or"
            " integrated_main_ram_size before it"
        )
    whole = soc.bus.regions[memory]
    if size is None:
        size = whole.size if soc.cpu_type in (None, "None") else whole.size // 2
    if not 0 < size <= whole.size:
        raise BitlaneError(
            f"add_bitlane: memory_bytes is {size}; the region {memory} has {whole.size} bytes"
        )
    return SoCRegion(origin=whole.origin + whole.size - size, size=size, linker=True)


def _has_masks(soc: Any) -> bool:
    """Return whether the memory has byte masks, by its pins.

    LiteDRAM drops the byte strobes without an error if its PHY has no pins for masks. Raises
    ``BitlaneError`` if the pins are unknown, or some bytes have a mask and others have none.
    """
    phy = soc.sdram.controller.settings.phy.phytype
    if phy == _MODEL:
        return True
    memories = [
        (resource[0], pads)
        for resource, pads in soc.platform.constraint_manager.matched
        if hasattr(pads, "dq") and (hasattr(pads, "ba") or hasattr(pads, "ca"))
    ]
    if not memories:
        raise BitlaneError(
            f"add_bitlane: the platform has no pins of the memory of {phy}, so its byte masks are"
            " unknown; expected platform.request of a resource with dq and ba, or masks=False"
        )
    found = set()
    for name, pads in memories:
        masks = len(getattr(pads, "dm", getattr(pads, "dmi", ())))
        if masks and masks * 8 != len(pads.dq):
            raise BitlaneError(
                f"add_bitlane: {name} has {masks} pins of byte masks (dm) for {len(pads.dq)} data"
                " pins, so a write of one byte may overwrite its neighbours; expected a mask for"
                " each byte, or masks=False"
            )
        found.add(masks > 0)
    return all(found)


def _expect_whole_words(soc: Any, core_width: int) -> None:
    """Raise ``BitlaneError`` if the SoC writes parts of words to a memory without byte masks."""
    if soc.cpu_type not in (None, "None"):
        raise BitlaneError(
            "add_bitlane: the memory has no byte masks (dm), so a store of a byte by"
            f" {soc.cpu_type} would overwrite its neighbours; expected cpu_type=None, or a board"
            " with masks, as radiona_ulx3s"
        )
    word = soc.sdram.crossbar.controller.data_width
    for writer, width in (("bus", min(soc.bus.data_width, _HOST_WIDTH)), ("core", core_width)):
        if width < word:
            raise BitlaneError(
                f"add_bitlane: the memory has no byte masks (dm) and words of {word} bits, of which"
                f" a write of the {writer} has {width}; expected words of up to {width} bits, as"
                " with sdram_rate=1:1"
            )


def _expect_shared(soc: Any) -> None:
    if hasattr(soc, "l2_cache"):
        raise BitlaneError(
            "add_bitlane: the SoC's L2 cache would hide data from the core; expected add_sdram with"
            " l2_cache_size=0 (l2_size=0 of a target)"
        )


def _port_width(sdram: Any, soc: Any) -> int:
    """Return the width of the memory, or the nearest that a core can have."""
    width = soc.bus.data_width if sdram is None else sdram.crossbar.controller.data_width
    return max(x for x in _WIDTHS if x <= max(width, _WIDTHS[0]))


def _streams(
    soc: Any, name: str, core: Bitlane, *, masks: bool | None
) -> list[tuple[Any, tuple[str, ...]]]:
    """Return the buses towards the memory, each with the channels that it uses.

    On one port writes and reads would take turns, a burst each.
    """
    first, *others = core.managers
    writes: tuple[Any, tuple[str, ...]] = first, ("aw", "w", "b")
    if not masks:
        whole = WholeBeatsModule(soc.platform, first)
        soc.add_module(name=f"{name}_whole_beats", module=whole)
        writes = whole.memory, ("aw", "w", "b", "ar", "r")
    return [writes, (first, ("ar", "r")), *((manager, ("ar", "r")) for manager in others)]


def _connect_litedram(
    soc: Any, name: str, streams: Iterable[tuple[Any, tuple[str, ...]]], memory: str
) -> None:
    """Give each of ``streams`` a port of LiteDRAM, which chooses when the memory turns around."""
    from litedram.frontend.axi import LiteDRAMAXI2Native

    for number, (manager, channels) in enumerate(streams):
        stream = axi.AXIInterface(data_width=manager.data_width, address_width=32, id_width=1)
        for channel in channels:
            ends = getattr(manager, channel), getattr(stream, channel)
            source, sink = reversed(ends) if channel in ("b", "r") else ends
            soc.comb += source.connect(sink)
        bridge = LiteDRAMAXI2Native(
            stream,
            soc.sdram.crossbar.get_port(data_width=stream.data_width),
            w_buffer_depth=BUFFER_BEATS,
            r_buffer_depth=BUFFER_BEATS,
            base_address=soc.bus.regions[memory].origin,
        )
        soc.add_module(name=f"{name}_bridge{number}", module=bridge)


def _add_start(soc: Any, name: str, sdram: Any) -> None:
    """Add LiteDRAM's start of the memory as a constant, for a host that runs it.

    A processor's BIOS does it otherwise, and only it can train the delays of DDR3.
    """
    from litedram.init import get_sdram_phy_init_sequence

    if soc.cpu_type not in (None, "None"):
        return
    settings = sdram.controller.settings.phy
    if settings.read_leveling or settings.write_leveling:
        raise BitlaneError(
            f"add_bitlane: {settings.phytype} must be trained by LiteX's BIOS; expected a SoC with"
            " a processor (cpu_type='vexriscv')"
        )
    timing = sdram.controller.settings.timing
    steps, _ = get_sdram_phy_init_sequence(settings, timing)
    soc.add_constant(f"{name}_MEMORY_START", _steps_text(steps))


def _steps_text(steps: Any) -> str:
    """Write steps as words KIND:VALUE:ADDRESS:BANK:CYCLES.

    KIND is ``control`` or ``command``, the register of LiteDRAM's injector that takes VALUE; then
    the host waits for CYCLES of the SoC's clock.
    """
    words = []
    for _, address, bank, text, cycles in steps:
        kinds, bits = zip(*(_BITS[x] for x in text.split("|")), strict=True)
        words.append(f"{kinds[0]}:{sum(bits)}:{address}:{bank}:{cycles}")
    return " ".join(words)


class _BuildNumber(LiteXModule):
    """Numbers the build by the SoC's map and the core's Verilog when the SoC is finalized."""

    def __init__(
        self, core: Bitlane, describe: Callable[[], str], publish: Callable[[int], None]
    ) -> None:
        # In a tuple, because a module that is an attribute is a submodule.
        self._of = core.build.status, core.verilog, describe, publish

    def do_finalize(self) -> None:
        status, file, describe, publish = self._of
        text = describe() + file.read_text(encoding="utf-8")
        number = int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)
        self.comb += status.eq(number)
        publish(number)


def _add_build_number(soc: Any, name: str, core: Bitlane) -> None:
    def describe() -> str:
        regions = {x: (r.origin, r.size) for x, r in soc.bus.regions.items()}
        registers = {x: r.origin for x, r in soc.csr.regions.items()}
        return f"{regions} {registers} {soc.sys_clk_freq}"

    def publish(number: int) -> None:
        soc.add_constant(f"{name}_BUILD", number)

    soc.add_module(name=f"{name}_number", module=_BuildNumber(core, describe, publish))
