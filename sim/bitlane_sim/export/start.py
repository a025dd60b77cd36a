"""Files of an exported folder to start from: a list of sources, constraints, a testbench, README.

Text only.
"""

import re
from textwrap import wrap
from typing import NamedTuple

from bitlane_rtl import abi

_INPUT = re.compile(r"^  input wire (?:\[(\d+):0\] )?(\w+),?$", re.MULTILINE)


class _Reads(NamedTuple):
    """The parts of the testbench that read a register on one bus."""

    driven: tuple[str, ...]
    """Inputs that the testbench drives; the others are 0."""
    signals: str
    connections: str
    read: str


_BUSES = {
    "AXI4": _Reads(
        ("clk", "rst", "s_axil_araddr", "s_axil_arvalid", "s_axil_rready"),
        """\
  reg clk = 1'b0, rst = 1'b1, arvalid = 1'b0;
  reg [13:0] araddr = 14'h0;
  wire arready, rvalid;
  wire [31:0] rdata;""",
        """\
    .clk(clk), .rst(rst), .s_axil_araddr(araddr), .s_axil_arvalid(arvalid),
    .s_axil_arready(arready), .s_axil_rready(1'b1), .s_axil_rvalid(rvalid),
    .s_axil_rdata(rdata),""",
        """\
    araddr <= address; arvalid <= 1'b1;
    @(posedge clk); while (!arready) @(posedge clk);
    arvalid <= 1'b0;
    while (!rvalid) @(posedge clk);""",
    ),
    "Wishbone": _Reads(
        ("clk", "rst", "wbs_adr_i", "wbs_cyc_i", "wbs_stb_i"),
        """\
  reg clk = 1'b0, rst = 1'b1, cyc = 1'b0, stb = 1'b0;
  reg [13:0] adr = 14'h0;
  wire stall, ack;
  wire [31:0] rdata;""",
        """\
    .clk(clk), .rst(rst), .wbs_adr_i(adr), .wbs_cyc_i(cyc), .wbs_stb_i(stb),
    .wbs_stall_o(stall), .wbs_ack_o(ack), .wbs_dat_o(rdata),""",
        """\
    adr <= address; cyc <= 1'b1; stb <= 1'b1;
    @(posedge clk); while (stall) @(posedge clk);
    stb <= 1'b0;
    while (!ack) @(posedge clk);
    cyc <= 1'b0;""",
    ),
}

_TESTBENCH = """\
// Reads IDENTITY and VERSION of {name}. To run it:
// {command}
module {name}_tb;
{bus.signals}
  always #5 clk = ~clk;
  {name} dut (
{bus.connections}
{tied}
  );
  task expect_word(input [13:0] address, input [31:0] value); begin
{bus.read}
    if (rdata !== value) begin $display("FAIL: %h is %h", address, rdata); $finish; end
    @(posedge clk);
  end endtask
  initial begin
    repeat (4) @(posedge clk);
    rst <= 1'b0;
    expect_word(14'h{identity:04x}, 32'h{identity_value:08x});
    expect_word(14'h{version:04x}, 32'd{version_value});
    $display("PASS"); $finish;
  end
  initial begin #100000 $display("FAIL: no answer"); $finish; end
endmodule
"""


def command_of(name: str) -> str:
    """Return the command that runs the testbench of ``name`` in Icarus Verilog."""
    return f"iverilog -g2005 -o {name}_tb -f {name}.f {name}_tb.v && vvp {name}_tb"


def testbench(name: str, module: str, bus: str) -> str:
    """Return a testbench for the Verilog ``module`` whose top is ``name``, on ``bus``."""
    reads = _BUSES[bus]
    head = module[module.index(f"\nmodule {name}(") :].split(");", 1)[0]
    inputs = [(port, int(high or 0) + 1) for high, port in _INPUT.findall(head)]
    ties = ", ".join(f".{port}({width}'d0)" for port, width in inputs if port not in reads.driven)
    return _TESTBENCH.format(
        name=name,
        bus=reads,
        command=command_of(name),
        tied="\n".join(wrap(ties, 100, initial_indent="    ", subsequent_indent="    ")),
        identity=abi.register("IDENTITY").offset,
        identity_value=abi.IDENTITY,
        version=abi.register("VERSION").offset,
        version_value=abi.ABI_VERSION,
    )


def start_files(name: str, module: str, bus: str) -> dict[str, str]:
    """Return the files to start from, by name.

    They are for the Verilog ``module`` whose top is ``name`` and whose ``bus`` is AXI4 or Wishbone.
    """
    rows = [
        (f"{name}.v", "hardware: the module; it needs no other file"),
        (f"{name}.md", "hardware, driver: ports, an instance, registers, the command record"),
        (f"{name}.f", "simulators and synthesis: the list of Verilog files"),
        (f"{name}.sdc", "synthesis: constraints to copy, as comments"),
        (f"{name}_tb.v", "hardware: a testbench to start from"),
        (f"{name}.core", "FuseSoC"),
        (f"{name}.rdl", "register tools: the control window in SystemRDL"),
        (f"{name}.h", "driver: the limits of this core"),
        ("bitlane_registers.h", "driver: registers and codes, the same for every core"),
        ("bitlane.h, bitlane.c", "driver: functions in C99, the same for every core"),
    ]
    readme = [
        f"# {name}",
        "",
        "| File | For whom, and what |",
        "| --- | --- |",
        *(f"| {files} | {meaning} |" for files, meaning in rows),
        "",
        "The testbench prints PASS in Icarus Verilog:",
        "",
        f"    {command_of(name)}",
    ]
    constraints = [
        "# Constraints to copy. Choose the period in nanoseconds.",
        "# create_clock -name clk -period 10.0 [get_ports clk]",
        "# The reset rst is synchronous and needs no exception. There is one clock, and no",
        "# combinational path from an input to an output: no path is false or has more cycles.",
    ]
    return {
        f"{name}.f": f"{name}.v\n",
        f"{name}.sdc": "\n".join(constraints) + "\n",
        f"{name}_tb.v": testbench(name, module, bus),
        "README.md": "\n".join(readme) + "\n",
    }
