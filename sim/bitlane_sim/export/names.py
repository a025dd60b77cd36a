"""Names for the bits of a design: what its designer called them, made fit for Verilog."""

import re
from collections.abc import Container, Iterable, Iterator, Mapping

from cppsim.netlist.design import Bits

__all__ = ["Names", "is_identifier"]

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# Verilog-2005 (IEEE 1364-2005, annex B), and SystemVerilog's that a reader in its mode would take
# for keywords (IEEE 1800-2017, annex B).
_KEYWORDS = frozenset(
    # As it stands in the annex.
    """
    always and assign automatic begin buf bufif0 bufif1 case casex casez cell cmos config deassign
    default defparam design disable edge else end endcase endconfig endfunction endgenerate
    endmodule endprimitive endspecify endtable endtask event for force forever fork function
    generate genvar highz0 highz1 if ifnone incdir include initial inout input instance integer
    join large liblist library localparam macromodule medium module nand negedge nmos nor
    noshowcancelled not notif0 notif1 or output parameter pmos posedge primitive pull0 pull1
    pulldown pullup pulsestyle_ondetect pulsestyle_onevent rcmos real realtime reg release repeat
    rnmos rpmos rtran rtranif0 rtranif1 scalared showcancelled signed small specify specparam
    strong0 strong1 supply0 supply1 table task time tran tranif0 tranif1 tri tri0 tri1 triand
    trior trireg unsigned use uwire vectored wait wand weak0 weak1 while wire wor xnor xor
    accept_on alias always_comb always_ff always_latch assert assume before bind bins binsof bit
    break byte chandle checker class clocking const constraint context continue cover covergroup
    coverpoint cross dist do endchecker endclass endclocking endgroup endinterface endpackage
    endprogram endproperty endsequence enum eventually expect export extends extern final
    first_match foreach forkjoin global iff ignore_bins illegal_bins implements implies import
    inside int interconnect interface intersect join_any join_none let local logic longint
    matches modport nettype new nexttime null package packed priority program property protected
    pure rand randc randcase randsequence ref reject_on restrict return s_always s_eventually
    s_nexttime s_until s_until_with sequence shortint shortreal soft solve static string strong
    struct super sync_accept_on sync_reject_on tagged this throughout timeprecision timeunit type
    typedef union unique unique0 unsigned until until_with untyped var virtual void wait_order
    weak wildcard with within
    """.split()  # noqa: SIM905
)


def is_identifier(text: str) -> bool:
    """Whether Verilog and SystemVerilog take ``text`` for a name."""
    return bool(_IDENTIFIER.fullmatch(text)) and text not in _KEYWORDS


class Names:
    """Gives each group of bits one name, and no name twice.

    ``known`` are the designer's, ``taken`` those that must not be given.
    """

    def __init__(self, known: Mapping[str, Bits], taken: Iterable[str] = ()) -> None:
        self._given = set(taken)
        self._numbers = 0
        self._whole: dict[Bits, str] = {}
        self._places: dict[int, tuple[str, int]] = {}
        # The shortest is closest to the top of the hierarchy, and so the most telling.
        for name, bits in sorted(known.items(), key=lambda item: (len(item[0]), item[0])):
            self._whole.setdefault(bits, name)
            for place, bit in enumerate(bits):
                if bit > 1:
                    self._places.setdefault(bit, (name, place))
        self._known = known

    def of(self, bits: Bits) -> str:
        """A designer's name for ``bits``, a part of one with its place, or a number; each once."""
        if bits in self._whole:
            return self.unique(self._whole[bits])
        if bits[0] in self._places:
            name, low = self._places[bits[0]]
            high = low + len(bits) - 1
            if self._known[name][low : high + 1] == bits:
                return self.unique(f"{name}_{high}" if low == high else f"{name}_{high}_{low}")
        return self.number("n")

    def parts(self, bits: Bits, unused: Container[int]) -> Iterator[Bits]:
        """``bits`` cut where a designer's name ends, and between used and unused ones."""
        start = 0
        for end in range(1, len(bits) + 1):
            if end < len(bits) and (bits[end] in unused) == (bits[start] in unused):
                name, place = self._places.get(bits[end - 1], ("", -1))
                if self._places.get(bits[end], ("", -1)) == (name, place + 1 if name else -1):
                    continue
            yield bits[start:end]
            start = end

    def is_known(self, bits: Bits) -> bool:
        """Whether a designer gave all of ``bits`` a name."""
        return bits in self._whole

    def number(self, stem: str) -> str:
        """A name that says nothing."""
        self._numbers += 1
        return self.unique(f"{stem}{self._numbers}")

    def unique(self, wish: str) -> str:
        """``wish`` as an identifier, with a number behind it if it is taken."""
        stem = re.sub(r"[^A-Za-z0-9]+", "_", wish).strip("_") or "n"
        if not is_identifier(stem):
            stem = f"{stem}_" if stem[0].isalpha() else f"n{stem}"
        name, number = stem, 1
        while name in self._given:
            number += 1
            name = f"{stem}_{number}"
        self._given.add(name)
        return name
