"""PLL settings meet the data sheets' limits to the last hertz, and nothing beyond is accepted."""

import pytest

from bitlane_boards.flow.pll import ECP5, GW1N_9C, ICE40, Pll, PllError, settings

MHZ = 1_000_000


@pytest.mark.parametrize(
    ("pll", "in_mhz", "slowest", "fastest"),
    [(ICE40, 12.5, 16.40625, 275), (ECP5, 20, 10, 400), (GW1N_9C, 12.5, 3.125, 600)],
    ids=["iCE40", "ECP5", "GW1N-9C"],
)
def test_outputs_reach_what_the_dividers_allow_and_end_where_the_range_does(
    pll: Pll, in_mhz: float, slowest: float, fastest: float
) -> None:
    in_hz = int(in_mhz * MHZ)
    for mhz in (slowest, fastest):
        out_hz = int(mhz * MHZ)
        reference, feedback, output = settings(pll, in_hz, out_hz)
        made = in_hz * feedback / reference
        assert (made if pll.divided_feedback else made / output) == out_hz
        assert pll.vco[0] * MHZ <= out_hz * output <= pll.vco[1] * MHZ
    low, high = pll.makes
    for hz in (int(low * MHZ) - 1, int(high * MHZ) + 1):
        with pytest.raises(PllError) as caught:
            settings(pll, in_hz, hz)
        assert str(caught.value) == f"clock_hz: {hz} Hz: the PLL makes {low} to {high} MHz"


@pytest.mark.parametrize(("in_mhz", "out_mhz"), [(12, 300), (12, 9), (100, 300), (48, 9)])
def test_an_ice40_makes_neither_300_nor_9_mhz(in_mhz: int, out_mhz: int) -> None:
    with pytest.raises(PllError, match=f"{out_mhz * MHZ} Hz: the PLL makes 16 to 275 MHz"):
        settings(ICE40, in_mhz * MHZ, out_mhz * MHZ)


@pytest.mark.parametrize(
    ("pll", "in_mhz"),
    [(ICE40, 8), (ICE40, 150), (ECP5, 5), (ECP5, 500), (GW1N_9C, 2), (GW1N_9C, 450)],
)
def test_inputs_outside_of_their_range_are_refused(pll: Pll, in_mhz: int) -> None:
    low, high = pll.takes
    with pytest.raises(PllError) as caught:
        settings(pll, in_mhz * MHZ, 50 * MHZ)
    assert str(caught.value) == f"clock_hz: {in_mhz * MHZ} Hz: the PLL takes {low} to {high} MHz"


@pytest.mark.parametrize("out_hz", [48 * MHZ + 1, 37_875_000])
def test_what_no_setting_makes_exactly_is_refused(out_hz: int) -> None:
    """37.875 MHz would need a phase detector frequency of 6 MHz, which is below the limit."""
    with pytest.raises(PllError, match=f"no setting of the PLL makes {out_hz} Hz of 12000000 Hz"):
        settings(ICE40, 12 * MHZ, out_hz)


def test_two_outputs_divide_one_oscillator() -> None:
    reference, feedback, output = settings(ECP5, 25 * MHZ, 125 * MHZ, 93_750_000)
    vco = 25 * MHZ // reference * feedback * output
    assert vco == 750 * MHZ
    assert vco % 125 == vco % 93_750_000 == 0
    message = "makes 125000000 Hz and 87500000 Hz of 25000000 Hz"
    with pytest.raises(PllError, match=message):  # 875 MHz would be too fast
        settings(ECP5, 25 * MHZ, 125 * MHZ, 87_500_000)
