"""A system is elaborated once for each set of inputs, and again only if they change."""

import json
import shutil
import sys
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import pytest

import bitlane
from bitlane_rtl.abi import Op
from bitlane_rtl.configuration import Configuration
from bitlane_sim.device import elaborated_system, elaboration
from bitlane_sim.system import System
from cppsim.build import CacheWarning
from cppsim.circuits import Circuit, PlainDesign
from cppsim.errors import SimulationError
from support.host.hostile import damaged
from support.processes import succeed
from support.seeds import seeds, slow

pytestmark = [pytest.mark.any_circuit, pytest.mark.any_face, pytest.mark.reads()]

SMALL = Configuration(
    data_width=32, memory_bytes=1 << 16, read_ports=1, loops=1, ops=frozenset({Op.NOT})
)
DESIGN = PlainDesign(names={"a": (2,)})
"""The design of the toy circuit."""

URLS = ["sim:compiled?memory=64KiB&width=32&ports=1&loops=1&ops=not", "sim:compiled"]
"""Two circuits that other tests compile, too."""

PROGRAMS = """
import sys
programs = []
sys.addaudithook(lambda event, about: event == "subprocess.Popen" and programs.append(about[1]))
"""


LOADED = "print(sys.modules.keys() & {'amaranth', 'jschon', 'bitlane_rtl.core'} or 'none')\n"
AGAIN = f"""
first, second = (bitlane.open(url) for url in {URLS})
with bitlane.open({URLS[0] + "&latency=3"!r}) as third: pass
"""


@pytest.fixture
def elaborations(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return the list of requests that are elaborated, and append to it."""
    asked: list[bytes] = []
    elaborate = elaboration.elaborate

    def count(request: bytes, folder: Path) -> None:
        asked.append(request)
        elaborate(request, folder)

    monkeypatch.setattr(elaboration, "elaborate", count)
    return asked


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elaborations: list[bytes]) -> Path:
    """Replace the circuit's sources by one file, and return it; count quick elaborations."""
    (tmp_path / "toy.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(elaboration, "SOURCES", ("toy",))

    def elaborate(request: bytes, folder: Path) -> None:
        elaborations.append(request)
        (folder / elaboration._FIELDS).touch()
        content = elaboration.pickle.dumps(DESIGN)
        (folder / elaboration._DESIGN).write_bytes(content)
        sums = elaboration.source_digest("toy"), "", {}, {}, elaboration._sum(content), []
        about = elaboration._About(*sums)
        (folder / elaboration._ABOUT).write_text(json.dumps(asdict(about)))

    monkeypatch.setattr(elaboration, "elaborate", elaborate)
    return tmp_path / "toy.py"


def python(script: str, **environment: str) -> str:
    """Run ``script`` in a new process, and return its output."""
    return succeed(sys.executable, "-c", script, **environment)


@pytest.mark.slow
@pytest.mark.parametrize(
    "configuration",
    [SMALL, replace(SMALL, ops=frozenset({Op.NOT, Op.COUNT}))],
    ids=["not", "not, count"],
)
def test_a_system_is_what_its_own_elaboration_gives(
    configuration: Configuration, fresh_cache: Path
) -> None:
    known = elaborated_system(configuration)
    circuit = Circuit(System(configuration))
    assert known.design == circuit.design
    assert known.digest == circuit.digest
    assert known.contents == [elaboration._without_zeros(rows) for rows in circuit.contents]
    assert known.widths == circuit.widths
    assert list(known.widths) == list(circuit.widths)
    assert set(known.input_widths) == set(circuit.inputs)


@pytest.mark.parametrize("left", [[], [7], [0, 7], [1, 0, -7]])
def test_zeros_at_the_end_of_a_memory_are_left_out(left: list[int]) -> None:
    assert elaboration._without_zeros([*left, 0, 0]) == left


@pytest.mark.usefixtures("toy")
def test_a_cache_that_was_emptied_is_told_of(fresh_cache: Path) -> None:
    known = elaborated_system(SMALL)
    assert known.design == DESIGN
    shutil.rmtree(fresh_cache)
    with pytest.raises(SimulationError, match="is gone; open again"):
        print(known.design)


def entry(cache: Path) -> Path:
    """Return the folder of the only elaboration."""
    (folder,) = (path for path in (cache / "systems").iterdir() if path.is_dir())
    return folder


_ABOUT: dict[str, object] = {
    **dict.fromkeys(("sources", "design", "pickled"), ""),
    "inputs": {},
    "outputs": {},
    "contents": [],
}
"""A complete description of an elaboration; each test replaces one entry."""

ABOUTS = [
    *(b"", b"{", b"[]", b"{}", b"3", b"\xff", b'{"sources": 1}', b"[" * 9999),
    *(
        json.dumps(_ABOUT | wrong).encode()
        for wrong in (
            {"inputs": 3},
            {"inputs": {"a": "x"}},
            {"design": 3},
            {"\x1b": 1},
            *({"contents": contents} for contents in (3, {}, [3], [["x"]], [[True]])),
        )
    ),
]


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize("sums", [None, b"{}", b"[]", b"\xff"])
@pytest.mark.parametrize("about", [None, *ABOUTS])
def test_a_damaged_entry_is_built_anew(
    fresh_cache: Path, about: bytes | None, sums: bytes | None, elaborations: list[bytes]
) -> None:
    elaborated_system(SMALL)
    folder = entry(fresh_cache)
    for name, content in ((elaboration._ABOUT, about), ("checksums.json", sums)):
        (folder / name).unlink()
        if content is not None:
            (folder / name).write_bytes(content)
    with pytest.warns(CacheWarning, match="damaged; it is built anew"):
        again = elaborated_system(SMALL)
    assert (again.widths, again.design, len(elaborations)) == ({}, DESIGN, 2)


@pytest.mark.usefixtures("toy")
@pytest.mark.filterwarnings("ignore::cppsim.build.CacheWarning")
@pytest.mark.parametrize("seed", seeds(60, 600))
def test_damage_of_any_kind(fresh_cache: Path, seed: int) -> None:
    """One line, or the same circuit again: in files with checksums or without."""
    elaborated_system(SMALL)
    folder = entry(fresh_cache)
    choose = Random(seed)
    file = choose.choice(sorted(folder.iterdir()))
    file.write_bytes(damaged(choose, file.read_bytes()))
    if choose.randrange(2):
        (folder / "checksums.json").unlink(missing_ok=True)
    system = elaborated_system(SMALL)
    try:
        design = system.design
    except SimulationError:
        design = elaborated_system(SMALL).design
    assert design == DESIGN


@pytest.fixture(scope="module")
def warm() -> None:
    for url in URLS:
        bitlane.open(url).close()


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize(
    ("opens", "printed"),
    [
        (f"bitlane.open({URLS[0]!r}).close()\n{LOADED}", ["none"]),
        (f"{AGAIN}first.close()\nbitlane.open({URLS[0]!r}).close()\nsecond.close()\n", []),
    ],
    ids=["without amaranth", "again and another way"],
)
def test_a_new_process_opens_what_is_known_without_an_elaboration(
    opens: str, printed: list[str]
) -> None:
    script = f"{PROGRAMS}\nimport bitlane\n{opens}print(*{{program[-1] for program in programs}})"
    assert python(script).splitlines() == [*printed, "--version"]


def edit(toy: Path, patch: pytest.MonkeyPatch) -> None:
    toy.write_text("x = 2\n")


def update_python(toy: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sys, "version", "4.0")


ANOTHER = [
    *({"data_width": 64}, {"memory_base": 1 << 12}, {"memory_bytes": 1 << 15}),
    *({"ops": frozenset(Op)}, {"counters": False}),
]


@pytest.mark.parametrize(
    "change", [None, edit, update_python, *ANOTHER], ids=lambda x: getattr(x, "__name__", str(x))
)
def test_whatever_the_design_depends_on_is_in_the_key(
    fresh_cache: Path,
    toy: Path,
    elaborations: list[bytes],
    monkeypatch: pytest.MonkeyPatch,
    change: Any,
) -> None:
    elaborated_system(SMALL)
    other = replace(SMALL, **change) if isinstance(change, dict) else SMALL
    if callable(change):
        change(toy, monkeypatch)
    for configuration in (other, replace(other, ops=frozenset(sorted(other.ops, reverse=True)))):
        elaborated_system(configuration)
        assert len(elaborations) == 1 + (change is not None)


def test_sources_that_change_meanwhile_leave_nothing_behind(
    fresh_cache: Path, toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elaborate = elaboration.elaborate

    def save_a_file(request: bytes, folder: Path) -> None:
        toy.write_text("x = 2\n")
        elaborate(request, folder)

    monkeypatch.setattr(elaboration, "elaborate", save_a_file)
    with pytest.raises(SimulationError, match="sources have changed while they were read; open"):
        elaborated_system(SMALL)
    assert not [path for path in (fresh_cache / "systems").iterdir() if path.is_dir()]
    assert elaborated_system(SMALL).widths == {}


def test_an_elaboration_that_fails_says_why_and_leaves_nothing_behind(
    fresh_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elaborate = elaboration.elaborate
    broken = elaboration.pickle.dumps(({"data_width": 33}, False))
    monkeypatch.setattr(elaboration, "elaborate", lambda request, folder: elaborate(broken, folder))
    with pytest.raises(SimulationError, match=r"cannot be elaborated: ValueError: .*33") as raised:
        elaborated_system(SMALL)
    assert "\n" not in str(raised.value)
    assert "Traceback" in raised.value.__notes__[0]
    assert not [path for path in (fresh_cache / "systems").iterdir() if path.is_dir()]


@pytest.mark.slow
def test_a_session_gets_the_circuit_of_the_sources_not_of_what_it_has_loaded(
    fresh_cache: Path, tmp_path: Path
) -> None:
    """An edit that Python misses, because it has the same size in the same second."""
    packages = tmp_path / "packages"
    for name in ("bitlane_rtl", "bitlane_sim"):
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(spec.origin).parent, packages / name, ignore=ignored)
    script = (
        "import os, sys\n"
        f"sys.path.insert(0, {str(packages)!r})\n"
        "import bitlane_rtl.bit_unit.logic as edited\n"
        "from bitlane_rtl.abi import Op\n"
        "from bitlane_rtl.configuration import Configuration\n"
        "from bitlane_sim.device import elaboration\n"
        "from bitlane_sim.system.system import System\n"
        "small = Configuration(data_width=32, memory_bytes=1 << 16, loops=1,"
        " ops=frozenset({Op.XOR}))\n"
        "made, elaborate = [], elaboration.elaborate\n"
        "elaboration.elaborate = lambda *given: made.append(1) or elaborate(*given)\n"
        "text, times = open(edited.__file__).read(), os.stat(edited.__file__)\n"
        "def save(text):\n"
        "    open(edited.__file__, 'w').write(text)\n"
        "    os.utime(edited.__file__, ns=(times.st_atime_ns, times.st_mtime_ns))\n"
        "    print(elaboration.elaborated_system(small).digest, len(made))\n"
        "save(text)\n"
        "save(text.replace('self.a ^ self.b', 'self.a | self.b'))\n"
        "save(text)\n"
        "save(text + '# a comment\\n')\n"
    )
    lines = python(script, PYTHONDONTWRITEBYTECODE="").splitlines()
    digests, made = zip(*(line.split() for line in lines), strict=True)
    assert digests[0] == digests[2] == digests[3] != digests[1]
    assert made == ("1", "2", "2", "3")


@pytest.mark.parametrize(
    "fields",
    [{"data_width": 32, "read_ports": 1, "loops": 1, "ops": frozenset({Op.NOT})}, slow({})],
    ids=["small", "default"],
)
def test_nothing_else_is_loaded_that_could_change_a_design(
    fields: dict[str, object], tmp_path: Path
) -> None:
    """Elaboration loads no other modules than those for data sheets and for arrays."""
    (tmp_path / elaboration._FIELDS).write_bytes(elaboration.pickle.dumps((fields, False)))
    script = (
        "import sys; before = set(sys.modules)\n"
        "from pathlib import Path\nfrom bitlane_sim.device import elaboration\n"
        f"elaboration._main(Path({str(tmp_path)!r}))\n"
        "tops = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(*sorted(tops - set(sys.stdlib_module_names) - set(elaboration.SOURCES)))"
    )
    # rfc3986 takes idna along where it is installed.
    assert set(python(script).split()) - {"idna"} == {"jschon", "numpy", "rfc3986"}
