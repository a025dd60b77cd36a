"""PLL settings for an exact output frequency, and the PLL cells of each family.

A setting is never outside of the ranges in the makers' data sheets.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from amaranth.hdl import Const, Instance, IOValue, Module, Signal, Value

from bitlane.errors import BitlaneError

__all__ = [
    "Pll",
    "PllError",
    "ecp5_pll",
    "ecp5_pll_pair",
    "gowin_pll",
    "ice40_pll",
    "settings",
]

_MHZ = 1_000_000


class PllError(BitlaneError):
    """The PLL cannot take the input frequency, or cannot make the output frequency exactly."""


@dataclass(frozen=True, slots=True)
class Pll:
    """Limits of a family's PLL: its dividers, and the ranges of its clocks in MHz.

    iCE40: vco = in / reference * feedback. ECP5 and Gowin (``divided_feedback``): the output is fed
    back, so vco = in / reference * feedback * output. All: out = vco / output.
    """

    references: range
    feedbacks: range
    outputs: tuple[int, ...]
    takes: tuple[float, float]
    makes: tuple[float, float]
    detector: tuple[float, float]
    vco: tuple[float, float]
    divided_feedback: bool = True


ICE40 = Pll(
    references=range(1, 17),
    feedbacks=range(1, 129),
    outputs=(2, 4, 8, 16, 32, 64),
    takes=(10, 133),
    makes=(16, 275),
    detector=(10, 133),
    vco=(533, 1066),
    divided_feedback=False,
)
"""Lattice FPGA-TN-02052, and sysCLOCK PLL timing in the data sheets FPGA-DS-02029 (LP, HX) and
FPGA-DS-02008 (UP)."""

ECP5 = Pll(
    references=range(1, 129),
    feedbacks=range(1, 81),
    outputs=tuple(range(1, 129)),
    takes=(8, 400),
    makes=(3.125, 400),
    detector=(10, 400),
    vco=(400, 800),
)
"""Lattice FPGA-DS-02012, sysCLOCK PLL timing."""

GW1N_9C = Pll(
    references=range(1, 65),
    feedbacks=range(1, 65),
    outputs=(2, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128),
    takes=(3, 400),
    makes=(3.125, 600),
    detector=(3, 400),
    vco=(400, 1200),
)
"""Gowin DS117-2.9.3E, table 4-21: GW1NR-9 of speed grade C6/I5."""


def settings(
    pll: Pll, in_hz: int, out_hz: int, second_hz: int | None = None
) -> tuple[int, int, int]:
    """Return the dividers of reference, feedback and output. Raises `PllError`.

    A second output divides the same VCO exactly. Of several settings, the one with the fastest
    phase detector has the least jitter.
    """
    for verb, hz, bounds in (("takes", in_hz, pll.takes), ("makes", out_hz, pll.makes)):
        if not _within(bounds, hz):
            low, high = bounds
            raise PllError(f"clock_hz: {hz} Hz: the PLL {verb} {low} to {high} MHz")
    for reference, output in _dividers(pll, in_hz):
        vco_hz = out_hz * output
        fed_back = out_hz if pll.divided_feedback else vco_hz
        feedback, rest = divmod(fed_back * reference, in_hz)
        if rest or feedback not in pll.feedbacks or not _within(pll.vco, vco_hz):
            continue
        if second_hz is None or (vco_hz % second_hz == 0 and vco_hz // second_hz in pll.outputs):
            return reference, feedback, output
    made = f"{out_hz} Hz" + (f" and {second_hz} Hz" if second_hz else "")
    raise PllError(f"clock_hz: no setting of the PLL makes {made} of {in_hz} Hz")


def _within(bounds: tuple[float, float], hz: float) -> bool:
    low, high = bounds
    return low <= hz / _MHZ <= high


def _dividers(pll: Pll, in_hz: int) -> Iterator[tuple[int, int]]:
    for reference in pll.references:
        if _within(pll.detector, in_hz / reference):
            for output in pll.outputs:
                yield reference, output


def ice40_pll(m: Module, source: Value | IOValue, in_hz: int, out_hz: int) -> tuple[Signal, Signal]:
    """Return the clock made from ``source``, a signal or the PLL's own pin, and its lock signal."""
    pad = isinstance(source, IOValue)
    reference, feedback, output = settings(ICE40, in_hz, out_hz)
    clock, locked = Signal(name="pll_clock"), Signal(name="pll_locked")
    # Bounds of the phase detector in MHz for FILTER_RANGE 1 to 5, else 6 (IceStorm's icepll).
    bounds = (17, 26, 44, 66, 101)
    detector = in_hz / reference / _MHZ
    arguments: Iterable[tuple[str, str, object]] = (
        ("p", "FEEDBACK_PATH", "SIMPLE"),
        ("p", "DIVR", Const(reference - 1, 4)),
        ("p", "DIVF", Const(feedback - 1, 7)),
        ("p", "DIVQ", Const(output.bit_length() - 1, 3)),
        ("p", "FILTER_RANGE", Const(1 + sum(detector >= bound for bound in bounds), 3)),
        ("io", "PACKAGEPIN", source) if pad else ("i", "REFERENCECLK", source),
        ("i", "RESETB", Const(1)),
        ("i", "BYPASS", Const(0)),
        ("o", "PLLOUTGLOBAL", clock),
        ("o", "LOCK", locked),
    )
    m.submodules.pll = Instance("SB_PLL40_PAD" if pad else "SB_PLL40_CORE", *arguments)
    return clock, locked


def ecp5_pll(m: Module, source: Value, in_hz: int, out_hz: int) -> tuple[Signal, Signal]:
    """Return the clock made from ``source``, and its lock signal."""
    clock, _, locked = _ecp5_pll(m, source, in_hz, out_hz, None)
    return clock, locked


def ecp5_pll_pair(
    m: Module, source: Value, in_hz: int, out_hz: int, second_hz: int
) -> tuple[Signal, Signal, Signal]:
    """Return two clocks made from ``source``, and the lock signal."""
    return _ecp5_pll(m, source, in_hz, out_hz, second_hz)


def _ecp5_pll(
    m: Module, source: Value, in_hz: int, out_hz: int, second_hz: int | None
) -> tuple[Signal, Signal, Signal]:
    reference, feedback, output = settings(ECP5, in_hz, out_hz, second_hz)
    clock, second = Signal(name="pll_clock"), Signal(name="pll_second_clock")
    locked = Signal(name="pll_locked")
    also: dict[str, object] = {}
    if second_hz:
        divider = in_hz // reference * feedback * output // second_hz
        also = {
            "a_FREQUENCY_PIN_CLKOS": f"{second_hz / _MHZ:g}",
            "p_CLKOS_ENABLE": "ENABLED",
            "p_CLKOS_DIV": divider,
            "p_CLKOS_CPHASE": divider // 2,
            "p_CLKOS_FPHASE": 0,
            "o_CLKOS": second,
        }
    m.submodules.pll = Instance(
        "EHXPLLL",
        # As Project Trellis' ecppll writes them.
        a_FREQUENCY_PIN_CLKI=f"{in_hz / _MHZ:g}",
        a_FREQUENCY_PIN_CLKOP=f"{out_hz / _MHZ:g}",
        a_ICP_CURRENT="12",
        a_LPF_RESISTOR="8",
        a_MFG_ENABLE_FILTEROPAMP="1",
        a_MFG_GMCREF_SEL="2",
        **dict.fromkeys(("p_PLLRST_ENA", "p_INTFB_WAKE", "p_STDBY_ENABLE"), "DISABLED"),
        p_DPHASE_SOURCE="DISABLED",
        **{f"p_OUTDIVIDER_MUX{output}": f"DIV{output}" for output in "ABCD"},
        p_CLKI_DIV=reference,
        p_CLKOP_ENABLE="ENABLED",
        p_CLKOP_DIV=output,
        p_CLKOP_CPHASE=output // 2,
        p_CLKOP_FPHASE=0,
        p_FEEDBK_PATH="CLKOP",
        p_CLKFB_DIV=feedback,
        **also,
        i_CLKI=source,
        i_CLKFB=clock,
        **dict.fromkeys(("i_RST", "i_STDBY", "i_PLLWAKESYNC", "i_ENCLKOP"), Const(0)),
        **dict.fromkeys(("i_PHASESEL0", "i_PHASESEL1"), Const(0)),
        **dict.fromkeys(("i_PHASEDIR", "i_PHASESTEP", "i_PHASELOADREG"), Const(1)),
        o_CLKOP=clock,
        o_LOCK=locked,
    )
    return clock, second, locked


def gowin_pll(m: Module, source: Value, in_hz: int, out_hz: int) -> tuple[Signal, Signal]:
    """Return the clock that a GW1N-9C makes from ``source``, and its lock signal."""
    reference, feedback, output = settings(GW1N_9C, in_hz, out_hz)
    clock, locked = Signal(name="pll_clock"), Signal(name="pll_locked")
    m.submodules.pll = Instance(
        "rPLL",
        p_DEVICE="GW1N-9C",
        p_FCLKIN=f"{in_hz / _MHZ:g}",
        p_IDIV_SEL=reference - 1,
        p_FBDIV_SEL=feedback - 1,
        p_ODIV_SEL=output,
        i_CLKIN=source,
        **dict.fromkeys(("i_CLKFB", "i_RESET", "i_RESET_P"), Const(0)),
        **dict.fromkeys(("i_FBDSEL", "i_IDSEL", "i_ODSEL"), Const(0, 6)),
        **dict.fromkeys(("i_PSDA", "i_DUTYDA", "i_FDLY"), Const(0, 4)),
        o_CLKOUT=clock,
        o_LOCK=locked,
    )
    return clock, locked
