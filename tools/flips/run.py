"""`make flips` flips every bit of a bitstream's LUTs, all in one batch.

A flip is data: all instances share one circuit, and two input ports select the bit. All get the
same traffic at their pins. Progress is printed on standard error, the table on standard output.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bitlane.command_line import DONE, UNUSABLE, whole_number
from bitlane.errors import BitlaneError
from bitlane.files import expect_writable
from bitlane_boards import boards
from bitlane_boards.command_line import add_board, progress_of
from bitlane_boards.readback import board_netlist
from bitlane_sim.campaigns.command import count
from bitlane_sim.figures import record, write_json
from cppsim.errors import SimulationError
from flips.campaign import FlipCampaign, all_flips
from flips.outcome import load_flips
from flips.stimulus import compose

_progress = progress_of("flips")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="flips",
        description="Flips every bit of the LUTs that a bitstream of an iCE40 uses, each in another"
        " instance, with the same traffic at all pins. Counts the flips that a pin shows, and the"
        " other flips by whether a LUT looks up their row.",
        epilog="exit codes: 0 done, 2 bad input or a missing tool",
    )
    add_board(parser)
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--bitstream",
        metavar="FILE",
        type=Path,
        help="what `bitlane build BOARD` wrote (default build/BOARD/BOARD.bin)",
    )
    source.add_argument(
        "--results", metavar="DIR", type=Path, help="print the table of a folder that was run"
    )
    parser.add_argument(
        "--backend", default="auto", help="auto, threads or cuda (default %(default)s)"
    )
    for option, kind, default, text in (
        ("--instances", count, None, "only N flips at random"),
        ("--seed", whole_number, 1, "of the choice (default %(default)s)"),
        ("--cycles", count, 2_000_000, "maximum length of the traffic (default %(default)s)"),
        ("--pool", count, 1500, "exchanges to choose the traffic from (default %(default)s)"),
    ):
        parser.add_argument(option, type=kind, default=default, metavar="N", help=text)
    parser.add_argument(
        "--folder",
        metavar="DIR",
        type=Path,
        help="write the batch there and run nothing; `python -m cppsim.batch . --no-memories` in"
        " that folder runs it with NumPy and CuPy alone",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the table there")
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Run the program. Return 2 for bad input or a missing tool."""
    try:
        return _run(_parser().parse_args(words))
    except (BitlaneError, OSError) as error:
        _progress(str(error))
        return UNUSABLE


def _run(arguments: argparse.Namespace) -> int:
    if arguments.json:
        expect_writable("--json", arguments.json)
    if arguments.results:
        flips, outcome = load_flips(arguments.results)
    else:
        campaign = _campaign(arguments)
        flips = campaign.flips
        try:
            if arguments.folder:
                campaign.export(arguments.folder)
                print(f"wrote {arguments.folder}: {campaign.instances} instances")
                return DONE
            batch = campaign.batch(arguments.backend)
            _progress(f"running {campaign.instances} instances on {batch.backend}")
            outcome = campaign.outcome(batch.run(campaign.program()))
        except SimulationError as error:
            raise BitlaneError(str(error)) from error
    rows = outcome.rows(flips)
    for row in rows:
        indent = "  " * _depth(row, rows)
        print(f"{indent + str(row['what']):56}{row['flips']:>8,}")
    if arguments.json:
        write_json(arguments.json, record("flips", rows))
    return DONE


def _depth(row: Mapping[str, object], rows: Sequence[Mapping[str, object]]) -> int:
    """Return the number of other rows that contain ``row``."""
    around = [other for other in rows if other["what"] == row["in"]]
    return 1 + _depth(around[0], rows) if around else 0


def _campaign(arguments: argparse.Namespace) -> FlipCampaign:
    board = boards()[arguments.board]
    bitstream = arguments.bitstream or Path("build", board.name, f"{board.name}.bin")
    if not bitstream.exists():
        raise BitlaneError(f"{bitstream}: no such file; bitlane build {board.name} makes it")
    found, _ = board_netlist(board, bitstream)
    _progress(
        f"{len(found.cells)} LUTs of {16 * len(found.cells)} bits reach a pin;"
        f" their inputs can choose {sum(len(cell.rows) for cell in found.cells)} of the bits"
    )
    stimulus = compose(board, found.netlist, found.cells, arguments.cycles, arguments.pool)
    _progress(
        f"traffic of {stimulus.cycles} cycles: {len(stimulus.exchanges)} of {arguments.pool}"
        " exchanges"
    )
    flips = all_flips(found.cells, stimulus)
    campaign = FlipCampaign(found.netlist, found.cells, flips, stimulus)
    if arguments.instances is not None:
        campaign = campaign.sampled(arguments.instances, arguments.seed)
    return campaign


if __name__ == "__main__":
    sys.exit(main())
