"""Bugs at the outputs of an exported core: text in, text out. No tests here."""

import re


def with_output(text: str, name: str, value: str) -> str:
    """Return ``text`` with ``value`` at the output ``name`` of the top module.

    ``offered`` in ``value`` is the signal that the circuit connects to the output.
    """
    head, body = text.split("\n);\n", 1)
    (width,) = re.findall(rf"^  output wire (\[\d+:0\] )?{name},?$", head, re.MULTILINE)
    top, end, rest = body.partition("endmodule")
    top, count = re.subn(rf"\b{name}\b", "offered", top)
    assert count == 1, f"{count} connections of {name}"
    logic = f"  wire {width}offered;\n  assign {name} = {value};\n"
    return f"{head}\n);\n{logic}{top}{end}{rest}"
