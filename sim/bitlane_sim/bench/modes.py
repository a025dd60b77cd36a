"""The modes of `bitlane bench`. Each measures, prints and writes, and parses no options."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import asdict
from itertools import chain

from bitlane.command_line.cli import CHECK_FAILED, DONE
from bitlane.terminal import show
from bitlane_rtl.configuration import Search

from ..builds import find_compiler
from ..campaigns.folder import make_circuit
from ..device.simulator import choose_evaluator
from ..figures import printed, record, replace, write_json
from . import BenchError, batch, contract
from .contract import measure
from .profile import measure_profile
from .search import SearchRow, configured, measure_search
from .simulators import measure_beside, measure_simulators, measure_verilator
from .xors import RAM_BYTES

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


def _simulators(arguments: argparse.Namespace) -> int:
    figures = measure_simulators(_progress)
    title = (
        "Simulators on the full 64-bit system (this machine, now; ratios travel, seconds do not)"
    )
    return _seconds(arguments, "simulators", title, figures, ())


def _verilator(arguments: argparse.Namespace) -> int:
    figures = measure_verilator(_progress)
    title = (
        "Fast evaluator and Verilator on the same core and memory, with the same random data\n"
        "(this machine, now; only ratios travel)"
    )
    return _seconds(arguments, "verilator", title, figures, ("verilator",))


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


def _batch(arguments: argparse.Namespace) -> int:
    _progress("the circuit")
    circuit = make_circuit(batch.OPTIONS, RAM_BYTES)
    if arguments.export:
        circuit.write(arguments.export)
        show("")
        print(f"Measure it with: python -m bitlane_sim.bench.batch {arguments.export}")
        return DONE
    show("")
    print(
        "The full 64-bit system, all with one timing, or half of all handshakes stalled with a seed"
        " for each;\nmillion cycles a second of all instances together. Every byte of each is"
        " compared with NumPy's.\n"
    )
    measured = chain(
        measure_beside(circuit.configuration, _progress),
        batch.measure_batches(circuit, arguments.backend or "auto", arguments.instances, _progress),
    )
    batch.report(measured, arguments.json, _compiler())
    return DONE


def _compiler() -> dict[str, str]:
    """Return the version of the C++ compiler, for `record`."""
    return {"compiler": find_compiler().version.splitlines()[0]}


def _seconds(
    arguments: argparse.Namespace,
    kind: str,
    title: str,
    figures: Mapping[str, float],
    packages: tuple[str, ...],
) -> int:
    show("")
    print(title)
    for name, value in figures.items():
        print(f"  {name:36} {value:>14,.2f}" if value < 1000 else f"  {name:36} {value:>14,.0f}")
    if arguments.json:
        write_json(arguments.json, record(kind, dict(figures), packages, _compiler()))
    return DONE


MODES: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "cycles": _cycles,
    "simulators": _simulators,
    "verilator": _verilator,
    "search": _search,
    "batch": _batch,
}
"""By the name of the option; ``cycles`` is what is measured without one."""
