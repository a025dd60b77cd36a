"""The core on Wishbone as a module of LiteX, from the Verilog that ``bitlane export`` wrote."""

from pathlib import Path

from litex.build.sim import SimPlatform
from litex.gen import ClockSignal, Instance, LiteXModule, ResetSignal, Signal
from litex.soc.interconnect import wishbone
from litex.soc.interconnect.csr_eventmanager import EventManager, EventSourceLevel

from bitlane_rtl import abi

_WINDOW_BITS = (abi.CONTROL_SIZE - 1).bit_length()


class WishboneCore(LiteXModule):
    """The core with its manager, for its memory, its control window and its interrupt."""

    def __init__(self, platform: SimPlatform, verilog: Path) -> None:
        self.manager = wishbone.Interface(addressing="byte")
        self.control = wishbone.Interface(addressing="byte")
        self.ev = EventManager()
        self.ev.irq_level = EventSourceLevel(name="irq", description="The core's interrupt line.")
        self.ev.finalize()
        # LiteX's bus is classic: an answer ends its request, and the control window's STALL is
        # not needed.
        stall = Signal()
        self.comb += stall.eq(self.manager.cyc & ~(self.manager.ack | self.manager.err))
        ports = {"i_clk": ClockSignal(), "i_rst": ResetSignal(), "i_wbm_stall_i": stall}
        ports |= {"o_irq": self.ev.irq_level.trigger}
        for prefix, bus, forth, back in (
            ("wbm", self.manager, "o", "i"),
            ("wbs", self.control, "i", "o"),
        ):
            requests = {name: getattr(bus, name) for name in ("cyc", "stb", "we", "adr", "sel")}
            answers = {"ack": bus.ack, "err": bus.err, "dat": bus.dat_r}
            if bus is self.control:
                requests["adr"] = bus.adr[:_WINDOW_BITS]
            for way, signals in ((forth, requests | {"dat": bus.dat_w}), (back, answers)):
                ports |= {f"{way}_{prefix}_{name}_{way}": x for name, x in signals.items()}
        self.specials += Instance(verilog.stem, **ports)
        platform.add_source(str(verilog), copy=True)
