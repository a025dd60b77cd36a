"""The modes of `bitlane bench`. Each measures, prints and writes, and parses no options."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import asdict

from bitlane.command_line import CHECK_FAILED, DONE
from bitlane.terminal import show
from bitlane_rtl.configuration import Search

from ..device.simulator import choose_evaluator
from ..figures import printed, record, replace, write_json
from . import BenchError, contract
from .contract import measure
from .profile import measure_profile
from .search import SearchRow, configured, measure_search

_SEARCHED = 16384
_BATCHES = (1, 64, 256, 512, 1024)
"""Rows that a search is measured with, and queries."""

_SEARCH_LINE = "{:>7} {:>9} {:>9} {:>6} {:>7} {:>7} {:>7}  {}"


def _progress(text: str) -> None:
    show(f"{text} ...")


def _cycles(arguments: argparse.Namespace) -> int:
    evaluator = arguments.evaluator or choose_evaluator()
    widths = arguments.width
    print(
        f"Cycles of the circuit, run by {evaluator}. bound: what the buses allow; peer: the best"
        " other core, recorded;\nratio: measured to bound.\n"
    )
    print(contract.HEADER)
    rows = printed(measure(widths, evaluator, _progress), contract.line)
    print(f"\n{contract.summary(rows)}")
    figures = record("cycles", [row.as_dict() for row in rows])
    if arguments.plot:
        from .plot import draw

        profile = measure_profile(widths, evaluator, _progress)
        show("")
        replace(arguments.plot, lambda file: draw(profile, file))
        figures["profile"] = asdict(profile)
        print(f"wrote {arguments.plot}")
    if arguments.json:
        write_json(arguments.json, figures)
    missed = any(row.met is False for row in rows)
    return CHECK_FAILED if missed and arguments.check else DONE


def _search(arguments: argparse.Namespace) -> int:
    evaluator, mhz = arguments.evaluator or choose_evaluator(), arguments.mhz
    try:
        search = Search(units=arguments.units, queries=max(_BATCHES))
    except ValueError as error:
        raise BenchError(str(error)) from error
    print(
        f"{_SEARCHED:,} random rows of {search.row_bits} bits, {search.nearest} nearest, by"
        f" {search.units} units in {evaluator} simulation.\n"
        f"Comparisons, in G/s: cycles at {mhz} MHz, which nobody ran on an FPGA here,"
        " beside one core of this machine.\n\n"
        + _SEARCH_LINE.format(
            *("queries", "cycles", "expected", "ratio", "array", "FAISS", "NumPy"), ""
        ).rstrip()
    )

    def line(row: SearchRow) -> str:
        array, faiss, numpy = (
            f"{rate / 1e9:.3f}" if rate else "missing"
            for rate in (row.comparisons(mhz), row.faiss, row.numpy)
        )
        counts = f"{row.queries:,}", f"{row.cycles:,}", f"{row.expected:,.0f}"
        ratio, fastest = f"{row.cycles / row.expected:.3f}", f"{row.fastest(mhz)} is the fastest"
        return _SEARCH_LINE.format(*counts, ratio, array, faiss, numpy, fastest)

    configuration = configured(search, _SEARCHED)
    measured = measure_search(configuration, _SEARCHED, _BATCHES, evaluator, _progress)
    rows = printed(measured, line)
    if not all(row.faiss for row in rows):
        print("\nFAISS is not installed: pip install faiss-cpu")
    if arguments.json:
        write_json(arguments.json, record("search", [row.as_dict(mhz) for row in rows]))
    return CHECK_FAILED if arguments.check and not all(row.met for row in rows) else DONE


MODES: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "cycles": _cycles,
    "search": _search,
}
"""By the name of the option; ``cycles`` is what is measured without one."""
