"""Text on the ports of a core on Wishbone, for its head and its page."""

GROUPS = {
    "wbm_": "Wishbone manager (master): reads of A and B, all writes",
    "wbs_": "Wishbone subordinate (slave), the control window",
}
"""The bus of a port, by the prefix of its name."""

HEADER = (
    "Clock clk, rising edges; reset rst, synchronous, active high. Both buses are Wishbone B4,",
    "pipelined, with byte addresses: wbm is the manager of the memory, wbs the subordinate of the",
    "control window, 32 bits, for pipelined and classic managers. No combinational path leads from",
    "an input to an output.",
)
"""Lines on the ports for the comment at the head of a module."""

PAGE = (
    "Both buses are pipelined, and addresses count bytes: for a bus that counts words, leave the",
    "lowest bits out, which are 0. `wbm_cyc_o` is 1 while an answer is due, and `wbm_we_o` changes",
    "only while none is. Every request needs one answer, `wbm_ack_i` or `wbm_err_i`, in order and",
    "also after an error; it may come in the cycle of its request. For a memory of classic cycles,",
    "connect `wbm_stall_i` to `wbm_cyc_o & ~(wbm_ack_i | wbm_err_i)`.",
    "",
    "A classic manager of `wbs` holds STB until ACK and leaves `wbs_stall_o` open. The registers",
    "below speak of AXI: SLVERR and DECERR are ERR here, and strobes are SEL.",
)
"""Lines below the instance on a module's page."""
