"""A board in Verilog on Icarus, at its RGMII pins, opposite the PHY of cocotbext-eth."""

from pathlib import Path

import pytest

from support.cocotb.runs import run_verilog
from support.cocotb.simulators import icarus
from support.ethernet.verilog import board_verilog

pytestmark = [pytest.mark.slow, pytest.mark.any_circuit, pytest.mark.any_face]

TESTS = 5

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
    assert (len(outcome.passed), list(outcome.failed)) == (TESTS, []), str(outcome)
