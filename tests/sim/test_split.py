"""Splitting wires of a flat netlist: the same bits under new names, and nothing else touched."""

from bitlane_sim.cxxrtl.split import split_wires

HEAD = """\
attribute \\top 1
module \\top
  attribute \\init 8'10100101
  attribute \\src "x.py:1"
  wire width 8 \\s
  wire width 4 \\a
  wire width 4 output 1 \\o
  wire width 4 input 2 \\i
"""


def body(*lines: str) -> list[str]:
    """Lines of the split module after its wires."""
    netlist = HEAD + "\n".join(f"  {line}" for line in lines) + "\nend\n"
    result = split_wires(netlist, {"\\s", "\\o", "\\i"}).splitlines()
    return [line.strip() for line in result if not line.startswith(("module", "attribute"))]


def test_wire_is_cut_where_its_drivers_meet_and_read_in_pieces() -> None:
    lines = body(
        "cell $not $1",
        "  connect \\A \\s",
        "  connect \\Y \\s [7:5]",
        "end",
        "connect \\s [4:0] { \\a [0] \\s [6:3] }",
    )
    assert lines == [
        "attribute \\init 5'00101",
        "wire width 5 $split\\s$4$0",
        "attribute \\init 3'101",
        "wire width 3 $split\\s$7$5",
        "wire width 4 \\a",
        "wire width 4 output 1 \\o",
        "wire width 4 input 2 \\i",
        "cell $not $1",
        "connect \\A { $split\\s$7$5 $split\\s$4$0 }",
        "connect \\Y $split\\s$7$5",
        "end",
        "connect $split\\s$4$0 { \\a [0] { $split\\s$7$5 [1:0] $split\\s$4$0 [4:3] } }",
        "end",
    ]


def test_drivers_within_a_concatenation_count() -> None:
    lines = body("connect { \\s [1] \\a [3:2] \\s [0] } 4'0000")
    assert lines[:6] == [
        "attribute \\init 1'1",
        "wire width 1 $split\\s$0$0",
        "attribute \\init 1'0",
        "wire width 1 $split\\s$1$1",
        "attribute \\init 6'101001",
        "wire width 6 $split\\s$7$2",
    ]
    assert lines[-2] == "connect { $split\\s$1$1 \\a [3:2] $split\\s$0$0 } 4'0000"


def test_output_keeps_its_name_and_is_joined_again() -> None:
    lines = body("connect \\o [3:2] \\i [1:0]", "connect \\o [1:0] \\o [3:2]")
    assert "wire width 4 output 1 \\o" in lines
    assert lines[-4:] == [
        "connect $split\\o$3$2 \\i [1:0]",
        "connect $split\\o$1$0 $split\\o$3$2",
        "connect \\o { $split\\o$3$2 $split\\o$1$0 }",
        "end",
    ]


def test_input_and_wire_with_one_driver_stay() -> None:
    netlist = HEAD + "  connect \\s { \\i [3] \\i [2] \\i \\a [1:0] }\nend\n"
    assert split_wires(netlist, {"\\s", "\\i"}) == netlist


def test_names_that_only_begin_alike_stay() -> None:
    lines = body("connect \\s [3:0] \\a", "connect \\s [7:4] \\s.t [3:0]")
    assert lines[-2] == "connect $split\\s$7$4 \\s.t [3:0]"
