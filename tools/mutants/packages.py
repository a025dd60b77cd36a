"""The packages that are changed, and which tests cover a file of one.

The folders of the tests mirror those of a package: the tests of ``arrays/value.py`` are the files
in ``tests/host/arrays``, and the first is ``test_value.py``, if there is one.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mutants.relevance import CHOICES, OWN, WHOLE

PROJECT = Path(__file__).parents[2]

_DURATIONS = json.loads((PROJECT / "tests/durations.json").read_text(encoding="utf-8"))

Table = Mapping[str, tuple[str, ...]]
"""Tests by prefix of a file's path."""


@dataclass(frozen=True, kw_only=True)
class Package:
    """A package and its tests.

    Attributes
    ----------
    folder, tests
        Where its sources and their tests are.
    own
        Tests of files without tests in their own folder. All matching prefixes count.
    whole
        Tests after these. Only the longest matching prefix counts.
    choices
        Files that are not changed, because they only choose what is built or tried: designs,
        testbenches and values at random are judged by what tests find with them.
    circuit
        The sources build a circuit with Amaranth.
    shared
        No source affects a compiled circuit, so all changes share a cache.
    cold
        Prefixes of files that affect entries of the cache or their keys: a change of one gets an
        empty cache. Any other change gets a copy of the cache that the unchanged tests filled.
    """

    name: str
    folder: str
    tests: str
    own: Table = field(default_factory=dict)
    whole: Table
    choices: tuple[str, ...] = ()
    circuit: bool = False
    shared: bool = False
    cold: tuple[str, ...] = ()

    def own_tests(self, file: str) -> list[str]:
        """Return the test files for ``file``: its namesake, those of `own`, or of its folder."""
        beside = PROJECT / self.tests / file
        namesake = beside.with_name(f"test_{beside.name}")
        first = [namesake.relative_to(PROJECT).as_posix()] if namesake.exists() else []
        listed = [test for tests in _matching(self.own, file) for test in tests]
        if not listed and not (first and self.circuit):
            listed = _short_first([_of_folder(beside.parent)])
        return list(dict.fromkeys([*first, *listed]))

    def whole_tests(self, file: str) -> list[str]:
        """Return the tests to run for ``file`` after `own_tests`."""
        found = _matching(self.whole, file)[0]
        if self.circuit:
            return [*found]
        own = self.own_tests(file)
        files = [sorted((PROJECT / each).rglob("test_*.py")) for each in found]
        names = [[path.relative_to(PROJECT).as_posix() for path in each] for each in files]
        return [name for name in _short_first(names) if name not in own]

    def is_cold(self, file: str) -> bool:
        """Return whether a change of ``file`` needs an empty cache."""
        return file.startswith(self.cold)

    def sources(self) -> dict[str, Path]:
        """Return the files to change, by their paths within the package."""
        root = PROJECT / self.folder
        files = {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*.py"))}
        return {name: path for name, path in files.items() if name not in self.choices}


def _of_folder(folder: Path) -> list[str]:
    """Return the test files in ``folder``, or in the nearest folder around it that has some."""
    while not (found := sorted(folder.glob("test_*.py"))):
        folder = folder.parent
    return [path.relative_to(PROJECT).as_posix() for path in found]


def _short_first(groups: list[list[str]]) -> list[str]:
    """Return the files of all groups in order, those of each sorted by duration."""
    return [
        name
        for group in groups
        for name in sorted(group, key=lambda name: _DURATIONS.get(name.removeprefix("tests/"), 1.0))
    ]


def _matching(table: Table, file: str) -> list[tuple[str, ...]]:
    """Return the entries of all prefixes of ``file``, the longest prefix first."""
    prefixes = sorted((prefix for prefix in table if file.startswith(prefix)), key=len)
    return [table[prefix] for prefix in reversed(prefixes)]


_HOST = {
    "__main__.py": ("tests/host/command_line/test_cli.py",),
    "api/array_api.py": (
        "tests/host/arrays/test_protocols.py",
        "tests/host/arrays/test_types.py",
        "tests/host/arrays/test_keywords.py",
        "tests/host/arrays/test_calls.py",
        "tests/host/arrays/test_refusals.py",
    ),
    "api/chunked.py": (
        "tests/host/pool/test_pool.py",
        "tests/system/test_pool.py",
        "tests/system/test_dask.py",
    ),
    "arguments/": (
        "tests/host/arrays/test_keywords.py",
        "tests/host/arrays/test_truth.py",
        "tests/host/arrays/test_calls.py",
        "tests/host/api/test_device.py",
        "tests/host/streaming",
    ),
    "closeable.py": ("tests/host/api/test_device.py", "tests/host/driver/test_driver.py"),
    "compiler/": (
        "tests/host/compiler",
        "tests/host/arrays/test_selections.py",
        "tests/host/arrays/test_sums.py",
    ),
    "dask/": ("tests/system/test_dask.py",),
    "api/default.py": ("tests/host/api/test_device.py", "tests/host/arrays/test_array.py"),
    "demo/": ("tests/host/test_demo.py",),
    "onnx/": ("tests/host/onnx", "tests/host/command_line/test_run.py"),
    "pool/": (
        "tests/host/pool/test_pool.py",
        "tests/system/test_pool.py",
    ),
    "profile/": (
        "tests/host/profile/test_activity.py",
        "tests/host/profile/test_disassembly.py",
        "tests/system/test_profile.py",
    ),
    "search/request.py": ("tests/host/search", "tests/host/pool/test_pool.py"),
    "text.py": ("tests/host/command_line/test_cli.py", "tests/host/test_terminal.py"),
    "validate/": ("tests/host/test_validate.py",),
}
_CPPSIM = {
    "batch/bitslice/": ("cppsim/tests/batch/bitslice", "cppsim/tests/batch/test_batch.py"),
    "cpp/simulation.py": ("cppsim/tests/cpp", "cppsim/tests/test_engine.py"),
    "model/build.py": ("cppsim/tests/compiling/test_toolchain.py",),
    "model/ports.py": ("cppsim/tests/model", "cppsim/tests/batch/test_values.py"),
    "model/program.py": ("cppsim/tests/model", "cppsim/tests/batch/test_batch.py"),
    "native/counters.py": ("cppsim/tests/coverage/test_coverage.py",),
    "netlist/": ("cppsim/tests/netlist", "cppsim/tests/cpp/test_fuzz.py"),
    "netlist/passes.py": ("cppsim/tests/model/test_agreement.py",),
    "running/": ("cppsim/tests/running", "cppsim/tests/waveforms/test_waves.py"),
    "structure.py": ("cppsim/tests/test_probe.py",),
    "waveforms/model.py": ("cppsim/tests/model/test_models.py",),
}
_GENERATORS = tuple(
    f"testing/{name}.py" for name in ("designs", "processes", "statements", "testbenches", "values")
)
_SIM = {
    "bench/": ("tests/sim/test_bench.py",),
    "builds.py": ("tests/sim/device/test_simulator.py",),
    "circuit_options.py": ("tests/sim/device/test_link.py", "tests/sim/numpy_device/test_link.py"),
    "commands.py": ("tests/sim/test_bench.py", "tests/sim/campaigns"),
    "export/": ("tests/sim/test_export.py", "tests/sim/test_export_folder.py"),
    "export/c_headers.py": ("tests/sim/test_c_driver.py",),
    "export/folder.py": ("tests/sim/test_export_folder.py",),
    "export/registers_page.py": ("tests/sim/test_registers_page.py",),
    "export/start.py": ("tests/sim/test_export_folder.py", "tests/system/test_examples.py"),
    "export/system_rdl.py": ("tests/sim/test_export_folder.py",),
    "fields.py": ("tests/rtl/control/test_refusals.py", "tests/sim/numpy_device"),
    "figures.py": ("tests/docs/test_written.py",),
    "pages.py": ("tests/sim/system/test_axi4_memory.py",),
    "search_option.py": ("tests/sim/device/test_link.py",),
}
_BOARDS = {
    "flow/": (
        "tests/boards/test_build.py",
        "tests/boards/test_carries.py",
        "tests/boards/test_board.py",
    ),
    "readback/": (
        "tests/boards/test_simulate.py",
        "tests/boards/test_simulate_netlists.py",
    ),
    "command_line/": ("tests/boards/test_commands.py",),
}

_ALL = (
    Package(
        name="rtl",
        folder="rtl/bitlane_rtl",
        tests="tests/rtl",
        own=OWN,
        whole=WHOLE,
        choices=CHOICES,
        circuit=True,
        cold=("",),
    ),
    Package(
        name="host",
        folder="host/bitlane",
        tests="tests/host",
        own=_HOST,
        whole={"": ("tests/host", "tests/system")},
        shared=True,
    ),
    Package(
        name="cppsim",
        folder="cppsim/src/cppsim",
        tests="cppsim/tests",
        own=_CPPSIM,
        whole={"": ("cppsim/tests", "tests/sim/device", "tests/boards/pins")},
        choices=_GENERATORS,
        cold=(
            "amaranth_internals.py",
            "batch/",
            "compiling/",
            "cpp/",
            "designs.py",
            "model/",
            "native/",
            "netlist/",
        ),
    ),
    Package(
        name="sim",
        folder="sim/bitlane_sim",
        tests="tests/sim",
        own=_SIM,
        whole={"": ("tests/sim", "tests/system")},
        cold=(
            "builds.py",
            "campaigns/folder.py",
            "device/elaboration.py",
            "export/backend.py",
        ),
    ),
    Package(
        name="boards",
        folder="boards/bitlane_boards",
        tests="tests/boards",
        own=_BOARDS,
        whole={"": ("tests/boards", "tests/system")},
        cold=("",),
    ),
)

PACKAGES = {package.name: package for package in _ALL}
"""All packages by name."""
