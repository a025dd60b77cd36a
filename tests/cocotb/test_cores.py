"""Exported cores on Icarus and Verilator, between bus models of cocotbext-axi and of Wishbone.

The suite that passes on the right core catches each bug that is put into the exported text, where
others would meet it. A board is opposite the PHY of cocotbext-eth, at its RGMII pins.
"""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bitlane_rtl.configurations import one_port
from bitlane_sim.export import Destination, export_wishbone
from support.cocotb.bench import CORE
from support.cocotb.runs import MEMORY_BYTES, Outcome, run_suite, run_verilog, with_output
from support.cocotb.simulators import Simulator, icarus, verilator
from support.ethernet.verilog import board_verilog

pytestmark = [pytest.mark.slow, pytest.mark.any_face]

TESTS = 20


@pytest.mark.parametrize(
    ("find", "width", "ports"), [(icarus, 32, 1), (verilator, 64, 2), (icarus, 128, 2)]
)
def test_core(
    find: Callable[[], Simulator],
    width: int,
    ports: int,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    simulator = find()
    outcome = run_suite(simulator, tmp_path, width=width, ports=ports)
    assert (len(outcome.passed), list(outcome.failed)) == (TESTS, []), str(outcome)
    record_property(
        "report", f"cocotb, {simulator.version}, {width} bits, {ports} read ports: {TESTS} passed"
    )


def test_the_driver_in_c_drives_the_core(tmp_path: Path) -> None:
    """Records byte for byte as Python's, interrupts, a fault, and going on after it."""
    outcome = run_suite(verilator(), tmp_path, width=64, ports=2, suite="c_suite")
    assert (len(outcome.passed), list(outcome.failed)) == (3, []), str(outcome)


# --- planted bugs ---------------------------------------------------------------------------------


WIDTH, PORTS = 64, 2

FIRST_INSTANCE = re.compile(r"^  core_\w+ \w+ \($", re.MULTILINE)
"""The first instance in the top module; it follows the declarations."""

# All that these bugs need to show themselves.
ONLY = r"test_(random_commands|long_bursts)/chance=0\.5"


def changed(pattern: str, replacement: str, text: str) -> str:
    """``text`` with its one match of ``pattern`` replaced."""
    result, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
    assert count == 1, f"{count} matches of {pattern}"
    return result


def with_ready(logic: str, text: str) -> str:
    """Return ``text`` with ``logic``, whose ``seen`` replaces the input ``m_axi_wready``."""
    start = re.search(FIRST_INSTANCE, text)
    assert start, "the top module has no instances"
    body = re.sub(r"\bm_axi_wready\b", "seen", text[start.start() :])
    return text[: start.start()] + logic + body


def drop_a_beat(text: str) -> str:
    """The third beat that waits for WREADY is taken for written."""
    logic = (
        "  reg [1:0] waited = 2'd0;\n"
        "  wire seen = m_axi_wready | (m_axi_wvalid & waited == 2'd2);\n"
        "  always @(posedge clk)\n"
        "    if (rst) waited <= 2'd0;\n"
        "    else if (m_axi_wvalid & ~m_axi_wready & waited != 2'd3) waited <= waited + 2'd1;\n"
    )
    return with_ready(logic, text)


def lose_a_beat(text: str) -> str:
    """The beat behind one that has waited for WREADY never gets to the bus."""
    logic = (
        "  reg stalled = 1'b0, after = 1'b0, done = 1'b0;\n"
        "  wire lost = offered & after & ~done;\n"
        "  wire seen = m_axi_wready | lost;\n"
        "  always @(posedge clk) begin\n"
        "    stalled <= offered & ~m_axi_wready;\n"
        "    after <= offered & m_axi_wready & stalled;\n"
        "    done <= ~rst & (done | lost);\n"
        "  end\n"
    )
    seen = with_ready("", text)
    return with_output(seen, "m_axi_wvalid", "offered & ~lost", logic)


def shorten_awlen(text: str) -> str:
    """A burst of several beats says that it has one less."""
    return changed(
        r"assign m_axi_awlen = \{ 4'h0, ([^}]+) \};",
        r"wire [3:0] awlen = \1; assign m_axi_awlen = {4'h0, awlen - {3'h0, |awlen}};",
        text,
    )


def strobe_everything(text: str) -> str:
    """Each beat writes all of its bytes."""
    return changed(r"assign m_axi_wstrb = [^;]+;", "assign m_axi_wstrb = 8'hff;", text)


def take_back_valid(text: str) -> str:
    """ARVALID falls for a cycle while it waits for ARREADY."""
    logic = (
        "  reg waits = 1'b0;\n"
        "  always @(posedge clk) waits <= m_axi_arvalid & ~m_axi_arready & ~waits;\n"
    )
    return with_output(text, "m_axi_arvalid", "offered & ~waits", logic)


@pytest.mark.parametrize(
    ("bug", "sign"),
    [
        (drop_a_beat, "m_axi_w changed before it was taken"),
        (lose_a_beat, "assert last == "),
        (shorten_awlen, "assert last == "),
        (strobe_everything, "bytes differ"),
        (take_back_valid, "m_axi_ar changed before it was taken"),
    ],
)
def test_bug_is_caught(bug: Callable[[str], str], sign: str, tmp_path: Path) -> None:
    outcome = run_suite(icarus(), tmp_path, width=WIDTH, ports=PORTS, only=ONLY, change=bug)
    assert outcome.failed, str(outcome)
    assert re.search(sign, outcome.log), str(outcome)


def test_the_same_tests_pass_without_a_bug(tmp_path: Path) -> None:
    outcome = run_suite(icarus(), tmp_path, width=WIDTH, ports=PORTS, only=ONLY)
    assert (len(outcome.passed), list(outcome.failed)) == (2, []), str(outcome)


WISHBONE_TESTS = 14


def run_wishbone(
    simulator: Simulator,
    folder: Path,
    width: int,
    *,
    change: Callable[[str], str] = str,
    only: str | None = None,
) -> Outcome:
    """Run the suite on the core of ``width``, whose Verilog ``change`` may change."""
    configuration = replace(one_port(width), memory_bytes=MEMORY_BYTES)
    to = Destination("core", Path("core.v"))
    text, _ = export_wishbone(configuration, 16, "bitlane export", to)
    core = {"data_width": width, "read_ports": 1, "memory_bytes": MEMORY_BYTES}
    variables = {CORE: json.dumps(core)}
    return run_verilog(simulator, folder, change(text), "wishbone_suite", variables, only=only)


@pytest.mark.parametrize(("find", "width"), [(icarus, 32), (verilator, 64)])
def test_wishbone_core(find: Callable[[], Simulator], width: int, tmp_path: Path) -> None:
    outcome = run_wishbone(find(), tmp_path, width)
    assert (len(outcome.passed), list(outcome.failed)) == (WISHBONE_TESTS, []), str(outcome)


WISHBONE_BUGS = {
    "all bytes are written": ("wbm_sel_o", "offered | 4'hf"),
    "WE is lost": ("wbm_we_o", "offered & 1'h0"),
    "CYC falls with STB": ("wbm_cyc_o", "offered & wbm_stb_o"),
}


@pytest.mark.parametrize("bug", WISHBONE_BUGS)
def test_bug_of_a_wishbone_core_is_caught(bug: str, tmp_path: Path) -> None:
    """The bugs are put into the exported text, where others would meet them."""

    def change(text: str) -> str:
        return with_output(text, *WISHBONE_BUGS[bug])

    outcome = run_wishbone(
        icarus(), tmp_path, 32, change=change, only=r"test_long_bursts/chance=0\.5"
    )
    assert outcome.failed, str(outcome)


ETHERNET_TESTS = 5

BENCH = """
module core;
  reg clk = 0, line_clk = 0, rst = 1;

  // The pins of the PHY. Those that no test drives are outputs of the board.
  reg phy_rxc = 0, phy_rx_ctl = 0;
  reg [3:0] phy_rxd = 0;
  wire phy_txc, phy_tx_ctl;
  wire [3:0] phy_txd;

  // The delays that RGMII needs, a quarter of a period.
  wire rx_ctl, txc;
  wire [3:0] rxd;
  assign #2 rxd = phy_rxd;
  assign #2 rx_ctl = phy_rx_ctl;
  assign #2 phy_txc = txc;

  board board(.clk(clk), .line_clk(line_clk), .rst(rst),
              .rxc(phy_rxc), .rxd(rxd), .rx_ctl(rx_ctl),
              .txc(txc), .txd(phy_txd), .tx_ctl(phy_tx_ctl));
endmodule
"""


def test_board_at_its_pins(tmp_path: Path) -> None:
    outcome = run_verilog(icarus(), tmp_path, board_verilog() + BENCH, "ethernet_suite", {})
    assert (len(outcome.passed), list(outcome.failed)) == (ETHERNET_TESTS, []), str(outcome)
