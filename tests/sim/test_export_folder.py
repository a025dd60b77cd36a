"""Other tools read the contract's values from each file of `bitlane export --folder`."""

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bitlane.command_line import DONE, UNUSABLE, main
from bitlane_rtl import abi
from bitlane_rtl.configurations import small
from bitlane_sim.device import Simulator
from bitlane_sim.export import reset_values
from cppsim import Model
from support.cocotb.simulators import verilator
from support.command_line import CommandLine
from support.processes import C, run_python, succeed

if TYPE_CHECKING:  # the quick tier, which imports the module, has no systemrdl
    from systemrdl import AddrmapNode, RegNode

pytestmark = [pytest.mark.slow, pytest.mark.any_circuit, pytest.mark.any_face]

OF_A_CORE = {"core.v", "core.md", "core.h", "core.rdl", "core.core"}
NAMES = OF_A_CORE | {"bitlane.c", "bitlane.h", "bitlane_registers.h"}
NAMES |= {"README.md", "core.f", "core.sdc", "core_tb.v"}

SLOTS = small().slots


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export") / "hardware"
    assert main(["export", "--configuration", "small", "--folder", str(folder)]) == DONE
    return folder


def printed_by(source: str, folder: Path, exported: Path) -> dict[str, int]:
    """Run a C program with ``source`` in its ``main``; return the printed numbers by name."""
    headers = '#include <stddef.h>\n#include <stdio.h>\n#include "bitlane_registers.h"\n'
    headers += '#include "core.h"\n'
    (folder / "program.c").write_text(f"{headers}int main(void) {{\n{source}\nreturn 0; }}\n")
    words = [*C, *shlex.split("-std=c99 -Wall -Wextra -Werror -pedantic")]
    succeed(*words, f"-I{exported}", "program.c", "-o", "program", cwd=folder)
    lines = succeed("./program", cwd=folder).splitlines()
    return {name: int(value) for name, value in (line.split() for line in lines)}


def shown(name: str) -> str:
    return f'printf("{name} %lu\\n", (unsigned long)({name}));'


def test_all_files_are_there_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], exported: Path
) -> None:
    assert {path.name for path in exported.iterdir()} == NAMES
    again = tmp_path / "hardware"
    again.mkdir()  # an empty folder is as good as none
    assert main(["export", "--configuration", "small", "--folder", str(again)]) == DONE
    words = capsys.readouterr().out.removeprefix(f"wrote {again}: ").replace(",", "").split()
    assert set(words) == NAMES
    for path in exported.iterdir():
        assert path.read_bytes() == (again / path.name).read_bytes(), path.name
    rows = re.findall(r"^\| ([^|]*\.[^|]*) \|", (exported / "README.md").read_text(), flags=re.M)
    assert {name for row in rows for name in row.split(", ")} == NAMES - {"README.md"}
    command = "bitlane export --configuration small --folder hardware"
    for name in OF_A_CORE:
        assert command in (exported / name).read_text(encoding="utf-8"), name


def test_a_name_is_that_of_the_module_and_of_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "x"
    words = ["export", "--configuration", "copy", "--prefix", "inverter", "--folder", str(folder)]
    assert main(words) == DONE
    assert {"inverter.v", "inverter.h", "inverter.rdl", "inverter.core"} <= {
        path.name for path in folder.iterdir()
    }
    assert "addrmap inverter {" in (folder / "inverter.rdl").read_text()
    assert "--prefix inverter --folder x" in (folder / "inverter.md").read_text()


# The C headers.


def contract() -> Iterator[tuple[str, int]]:
    """Yield the definitions that the contract's header must have."""
    for entry in abi.REGISTERS:
        yield f"REG_{entry.name}", entry.offset
        yield from fields(entry.name, entry.bits)
    yield from fields("COMPLETION", abi.COMPLETION)
    for field in abi.RECORD.values():
        yield f"WORD_{field.name}", field.word
        yield from fields(field.name, field.bits)
    for codes in (abi.Op, abi.Lane, abi.Mode, abi.Status, abi.Port):
        yield from ((f"{codes.__name__.upper()}_{code.name}", code.value) for code in codes)
    names = (
        *("IDENTITY", "ABI_VERSION", "CONTROL_SIZE", "WORD_BYTES", "COMPLETION_OFFSET"),
        *("RING_OFFSET", "MAX_LOOPS", "RECORD_WORDS", "RECORD_BYTES", "RECORD_SEAL"),
    )
    yield from ((name, getattr(abi, name)) for name in names)


def fields(of: str, all_bits: tuple[abi.Bits, ...]) -> Iterator[tuple[str, int]]:
    for bits in all_bits:
        yield f"{of}_{bits.name}_SHIFT", bits.low
        yield f"{of}_{bits.name}_MASK", ((1 << bits.width) - 1) << bits.low


def test_the_header_has_every_number_of_the_contract(exported: Path, tmp_path: Path) -> None:
    expected = {f"BITLANE_{name}": value for name, value in contract()}
    assert printed_by("\n".join(map(shown, expected)), tmp_path, exported) == expected


def test_the_cores_header_has_what_its_registers_read(exported: Path, tmp_path: Path) -> None:
    names = [entry.name for entry in abi.REGISTERS if entry.reset is None]
    numbers = ["DATA_BYTES", "SLOTS", "LOOPS", "LENGTH_BITS", "COUNT_BITS", "READ_PORTS"]
    told = printed_by("\n".join(shown(f"CORE_{x}") for x in names + numbers), tmp_path, exported)
    configuration = small()
    for name in numbers:
        assert told.pop(f"CORE_{name}") == getattr(configuration, name.lower())
    offsets = [abi.register(name.removeprefix("CORE_")).offset for name in told]
    with closing(Simulator(configuration, Model)) as simulator:
        assert list(told.values()) == simulator.access((), offsets)


# SystemRDL.


@pytest.fixture(scope="module")
def address_map(exported: Path) -> "AddrmapNode":
    from systemrdl import AddrmapNode, RDLCompiler

    compiler = RDLCompiler()
    compiler.compile_file(str(exported / "core.rdl"))
    top = compiler.elaborate(top_def_name="core").top
    assert isinstance(top, AddrmapNode)
    return top


def described(node: "RegNode") -> dict[str, tuple[int, int]]:
    return {field.inst_name: (field.low, field.width) for field in node.fields()}


def expected_fields(bits: tuple[abi.Bits, ...]) -> dict[str, tuple[int, int]]:
    return {x.name: (x.low, x.width) for x in bits} or {"VALUE": (0, 32)}


def test_registers_lie_and_reset_as_the_contract_says(address_map: "AddrmapNode") -> None:
    built = reset_values(small())
    for entry in abi.REGISTERS:
        (node,) = (node for node in address_map.registers() if node.inst_name == entry.name)
        assert node.absolute_address == entry.offset
        assert described(node) == expected_fields(entry.bits)
        assert node.has_sw_readable == (entry.access is not abi.Access.WRITE)
        assert node.has_sw_writable == (entry.access is not abi.Access.READ)
        start = sum(field.get_property("reset") << field.low for field in node.fields())
        assert start == built[entry.name], entry.name


def test_the_rdl_has_completions_and_the_ring(address_map: "AddrmapNode") -> None:
    (completions,) = (x for x in address_map.registers() if x.inst_name == "COMPLETION")
    assert described(completions) == expected_fields(abi.COMPLETION)
    places = [node.absolute_address for node in completions.unrolled()]
    assert places == [abi.COMPLETION_OFFSET + 4 * slot for slot in range(SLOTS)]
    ring = address_map.get_child_by_name("RING")
    assert ring is not None
    for slot, record in enumerate(ring.unrolled()):
        start = abi.RING_OFFSET + slot * abi.RECORD_BYTES
        words = {x.inst_name: x for x in record.registers()}
        assert {name: x.absolute_address - start for name, x in words.items()} == {
            name: field.word * 4 for name, field in abi.RECORD.items()
        }
        for name, field in abi.RECORD.items():
            assert described(words[name]) == expected_fields(field.bits)


def test_codes_are_enumerations_of_their_fields(address_map: "AddrmapNode") -> None:
    from systemrdl import RegNode

    found = {
        bits.get_property("encode").type_name: {
            member.name: member.value for member in bits.get_property("encode")
        }
        for node in address_map.descendants()
        if isinstance(node, RegNode)
        for bits in node.fields()
        if bits.get_property("encode")
    }
    assert found == {
        codes.__name__: {code.name: code.value for code in codes}
        for codes in (abi.Op, abi.Lane, abi.Mode, abi.Status, abi.Port)
    }


def peakrdl(*words: str | Path, cwd: Path) -> str:
    return succeed(sys.executable, "-m", "peakrdl", *words, cwd=cwd)


def test_peakrdl_writes_a_c_header_with_the_same_offsets(exported: Path, tmp_path: Path) -> None:
    peakrdl("c-header", exported / "core.rdl", "-o", "peak.h", cwd=tmp_path)
    equal = [(f"offsetof(core_t, {x.name})", f"BITLANE_REG_{x.name}") for x in abi.REGISTERS]
    equal += [
        (f"CORE__{x.name}__{bits.name}_bm", f"BITLANE_{x.name}_{bits.name}_MASK")
        for x in abi.REGISTERS
        for bits in x.bits
    ]
    equal += [
        ("offsetof(core_t, COMPLETION)", "BITLANE_COMPLETION_OFFSET"),
        ("offsetof(core_t, RING)", "BITLANE_RING_OFFSET"),
        ("sizeof(core__RING_t)", "BITLANE_RECORD_BYTES"),
    ]
    lines = [f"#include {name}" for name in ("<stddef.h>", '"peak.h"', '"bitlane_registers.h"')]
    lines += [f'static_assert({theirs} == {ours}, "{ours}");' for theirs, ours in equal]
    (tmp_path / "check.c").write_text("\n".join(lines) + "\n")
    succeed(*C, "-std=c11", "-fsyntax-only", f"-I{exported}", "check.c", cwd=tmp_path)


def test_peakrdl_writes_pages_of_every_register(exported: Path, tmp_path: Path) -> None:
    peakrdl("html", exported / "core.rdl", "-o", "pages", cwd=tmp_path)
    assert (tmp_path / "pages" / "index.html").is_file()
    written = {path.name for path in (tmp_path / "pages").rglob("*") if path.is_file()}
    content = "".join(
        path.read_text(encoding="utf-8", errors="replace")
        for path in (tmp_path / "pages").rglob("*")
        if path.suffix in (".html", ".js", ".json")
    )
    assert [x.name for x in abi.REGISTERS if x.name not in content] == [], written


# FuseSoC.


def fusesoc(exported: Path, cwd: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    script = "import sys; from fusesoc.main import main; sys.exit(main())"
    command = ("-c", script, "--cores-root", exported, *words)
    environment = {"HOME": str(cwd), "XDG_CACHE_HOME": str(cwd), **verilator().environment}
    return run_python(*command, cwd=cwd, **environment)


def test_fusesoc_knows_the_core_and_lints_it(exported: Path, tmp_path: Path) -> None:
    told = fusesoc(exported, tmp_path, "core", "show", "core")
    assert told.returncode == 0, told.stderr
    assert "bitlane::core:" in told.stdout
    linted = fusesoc(exported, tmp_path, "run", "--target", "lint", "core")
    assert linted.returncode == 0, linted.stdout + linted.stderr
    assert "%Warning" not in linted.stdout + linted.stderr


def test_fusesoc_finds_fault_with_a_core_that_is_wrong(exported: Path, tmp_path: Path) -> None:
    broken = shutil.copytree(exported, tmp_path / "broken")
    text = (broken / "core.v").read_text()
    wrong = "  wire nothing_drives;\n  wire driven = nothing_drives;\nendmodule"
    (broken / "core.v").write_text(text.replace("endmodule", wrong))
    linted = fusesoc(broken, tmp_path, "run", "--target", "lint", "core")
    assert linted.returncode != 0
    assert "nothing_drives" in linted.stdout + linted.stderr


# What is refused.


@pytest.mark.usefixtures("in_an_empty_folder")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--folder", "full"], "--folder: full is not empty; choose another, or --force to"),
        (["--folder", "file"], "--folder: file is a file; expected a folder"),
        (["--folder", "no/x"], "--folder: "),
        (["--folder", "new", "--prefix", "wire"], "--prefix: a module cannot be called 'wire'"),
        (["--folder", "new", "--prefix", "bitlane"], "--prefix: bitlane is what the driver's"),
        (["--folder", "new", "--prefix", "regfile"], "--prefix: regfile is a word of SystemRDL"),
        (["--folder", "new", "--prefix", "Lane"], "--prefix: Lane is a word of SystemRDL"),
        (["--folder", "new", "--data-width", "48"], "--data-width: 48 is not supported"),
        (["--folder", "blocked", "--force"], "--folder: blocked/core.md is a folder"),
        (["--folder", "new", "-o", "x.v"], ""),
        ([], ""),
        (["--folder", "new", "--configuration", "huge"], ""),
    ],
)
def test_bad_input(words: list[str], message: str, cli: CommandLine) -> None:
    Path("full").mkdir()
    Path("full/notes").write_text("mine")
    Path("blocked/core.md").mkdir(parents=True)
    Path("file").write_text("")
    before = sorted(Path().rglob("*"))
    refused = cli.refuse("export", *words)
    assert not message or refused.startswith(f"bitlane: {message}")
    assert sorted(Path().rglob("*")) == before
    assert Path("full/notes").read_text() == "mine"


@pytest.mark.usefixtures("in_an_empty_folder")
def test_force_replaces_what_export_writes_and_nothing_else(exported: Path) -> None:
    Path("hardware").mkdir()
    Path("hardware/notes").write_text("mine")
    Path("hardware/core.v").write_text("old")
    words = ["export", "--configuration", "small", "--folder", "hardware"]
    assert main(words) == UNUSABLE
    assert main([*words, "--force"]) == DONE
    assert Path("hardware/core.v").read_bytes() == (exported / "core.v").read_bytes()
    assert Path("hardware/notes").read_text() == "mine"
    assert {path.name for path in Path("hardware").iterdir()} == NAMES | {"notes"}


@pytest.mark.usefixtures("in_an_empty_folder")
@pytest.mark.parametrize("existed", [False, True])
@pytest.mark.parametrize("broken", ["write_text", "replace", "mkdir"])
def test_a_disk_that_is_full_is_told_in_a_line_and_leaves_nothing(
    broken: str, existed: bool, monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    if existed:
        Path("new").mkdir()
    if (broken, existed) == ("mkdir", True):
        broken = "write_text"

    def full(self: Path, *_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr("bitlane_sim.export.export", lambda *_, **__: ("\nmodule core();", "page"))
    with monkeypatch.context() as patch:
        patch.setattr(Path, broken, full)
        said = cli.refuse("export", "--folder", "new")
    assert said == "bitlane: --folder: new cannot be written: No space left on device"
    assert Path("new").exists() == existed
    assert list(Path().rglob("*/*")) == []
