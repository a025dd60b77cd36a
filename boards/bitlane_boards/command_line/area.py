"""`bitlane area`: LUTs and clock of named circuits, placed and routed out of context.

Progress is printed on standard error, the table on standard output. The parser imports only the
names of the chips and of the configurations; the measurement is imported when it begins.
"""

import argparse
from pathlib import Path

from bitlane.command_line import CHECK_FAILED, DONE, Group, Subparsers, whole_number
from bitlane.errors import BitlaneError
from bitlane.files import expect_writable
from bitlane_rtl.configurations import NAMED
from bitlane_sim.figures import record, write_json

from ..area.chips import CHIPS
from .common import progress_of

__all__ = ["add_area"]

_SEEDS = 99


def add_area(subparsers: Subparsers) -> None:
    """Add the subcommand `area`."""
    parser = subparsers.add_parser(
        "area",
        help="measure the circuit's LUTs and clock",
        description="LUTs and clock of named circuits: synthesised, placed and routed out of"
        " context by Yosys and nextpnr. Takes minutes.",
        epilog="exit codes: 0 measured (a row that misses its goal is shown as such), 1 a placement"
        " failed or, with --check, a row missed its goal, 2 bad input or a missing tool",
    )
    parser.add_argument(
        "--family",
        action="append",
        choices=list(CHIPS),
        help="the chip's family; may be given more than once (default: all)",
    )
    parser.add_argument(
        "--seeds",
        type=whole_number,
        default=3,
        metavar="N",
        help=f"place with seeds 1 to N and take the median, 1 to {_SEEDS} (default %(default)s)",
    )
    parser.add_argument(
        "--design",
        action="append",
        metavar="NAME",
        help="only this one, e.g. copy-32; may be given more than once",
    )
    parser.add_argument(
        "--configuration",
        action="append",
        choices=list(NAMED),
        help="the core that bitlane export writes of it; may be given more than once",
    )
    parser.add_argument(
        "--blocks",
        action="store_true",
        help="also count the cells of each submodule, its own submodules included",
    )
    parser.add_argument("--paths", action="store_true", help="show the path that bounds each clock")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a row misses its goal")
    parser.set_defaults(run=_run, group=Group.MEASURE, extra="boards")


def _run(arguments: argparse.Namespace) -> int:
    from ..area import table
    from ..area.designs import CONFIGURED
    from ..area.measure import measure_area, versions

    families = list(dict.fromkeys(arguments.family or CHIPS))
    if not 1 <= arguments.seeds <= _SEEDS:
        raise BitlaneError(f"--seeds: {arguments.seeds} is outside 1 to {_SEEDS}")
    try:
        cores = [CONFIGURED[name] for name in arguments.configuration or ()]
        designs = table.choose(families, [*(arguments.design or ()), *cores])
    except ValueError as error:
        raise BitlaneError(f"--design: {error}") from error
    if arguments.json:
        expect_writable("--json", arguments.json)
    tools = versions(designs)
    print("\n".join(table.introduction(designs, arguments.seeds, tools)), flush=True)
    rows = []
    progress = progress_of("bitlane area")
    for row in measure_area(designs, arguments.seeds, progress, blocks=arguments.blocks):
        rows.append(row)
        print("\n".join(table.lines(row)), flush=True)
        if arguments.paths:
            print("\n".join(table.path_lines(row)), flush=True)
    print(f"\n{table.summary(rows)}")
    if arguments.json:
        figures = [row.as_dict() for row in rows]
        write_json(arguments.json, record("area", figures, tuple(tools)))
    failed = any(row.failure for row in rows)
    missed = any(row.met is False for row in rows)
    return CHECK_FAILED if failed or (missed and arguments.check) else DONE
