"""The core in a SoC of LiteX, with LiteDRAM, simulated, by way of ``litex_server``."""

import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bitlane
from bitlane.api import open_driver
from bitlane.command_line import DONE, main
from bitlane.driver import Command, Driver
from bitlane.errors import DeviceError, LinkError
from bitlane.links import Link, open_link
from bitlane.lowering import Streams, View, lower
from bitlane_rtl.abi import ABI_VERSION, Op
from support.boards.litex import PAGE, Simulated, of_page, served

pytestmark = [
    pytest.mark.slow,
    pytest.mark.reads("docs", "examples"),
    pytest.mark.rotates(1),  # all tests choose the same board
    pytest.mark.filterwarnings("ignore:invalid escape sequence"),  # LiteX's.
]


# A simulation uses a processor until it ends, so it ends with the module.
@pytest.fixture(scope="module", params=["radiona_ulx3s", "colorlight_i5"])
def soc(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Simulated]:
    """The simulated SoC, by the commands of the page: with byte masks, and without."""
    folder = tmp_path_factory.mktemp("litex")
    words = of_page("python -m bitlane_boards.litex.simulated")
    words = [{"build/simulated": str(folder), "2430": "0"}.get(word, word) for word in words]
    words += ["--board", request.param]
    with served([sys.executable, *words[1:]], folder, request.param) as started:
        yield started


ROOT = Path(__file__).parents[3]
SIZE = 1 << 15
WORD = 4
"""Bytes of a word on a port."""

CHIP_BYTES = {"radiona_ulx3s": 2, "colorlight_i5": 4}
"""Bytes that the chip moves in a cycle."""


def test_it_validates(soc: Simulated, capsys: pytest.CaptureFixture[str]) -> None:
    (options,) = re.findall(r"simulated/csr.csv' (--quick.*)$", PAGE.read_text("utf-8"), re.M)
    assert main(["validate", soc.url(), *options.split()]) == DONE
    assert re.search(r"All \d+ checks passed", capsys.readouterr().out)


def test_a_model_file_gives_what_the_golden_model_does(
    soc: Simulated, capsys: pytest.CaptureFixture[str]
) -> None:
    """``run`` compares the outputs with the NumPy model, and the page has the numbers."""
    assert main(["run", str(ROOT / "examples" / "strided.json"), "--device", soc.url()]) == DONE
    printed = capsys.readouterr().out
    assert re.search(r"Check '.*': \d+ bytes equal", printed)
    assert "17, 132, 7, 34, 261, 7, 67, 518, 7" in printed


def test_arrays_and_a_search(soc: Simulated) -> None:
    random = np.random.default_rng(5)
    a, b = random.integers(0, 256, (2, 61, 16), np.uint8)
    with bitlane.open(soc.url()) as device:
        x, y = device.asarray(a[1:, ::3]), device.asarray(b[:-1, 15::-3])
        assert np.array_equal(np.asarray(x ^ y), a[1:, ::3] ^ b[:-1, 15::-3])
        assert np.array_equal(np.asarray(x & ~y), a[1:, ::3] & ~b[:-1, 15::-3])
        distances, indices = device.search(b[:5], a, 3)
    table = np.bitwise_count(b[:5, None] ^ a[None]).sum(2, dtype=np.int64)
    order = np.argsort(table, axis=1, kind="stable")[:, :3]
    assert np.array_equal(np.take_along_axis(table, order, 1), distances)
    assert np.array_equal(order, indices)


def test_every_byte_of_a_write_lands_and_no_other(soc: Simulated) -> None:
    random = np.random.default_rng(6)
    with open_driver(soc.url()) as driver:
        base = driver.geometry.memory_base + 0x4000
        want = random.integers(0, 256, 3000, np.uint8)
        driver.write(base, want)
        for start in range(4):
            for size in (2041, 1021, 5, 4, 3, 2, 1, 0):
                data = random.integers(0, 256, size, np.uint8)
                driver.write(base + 8 + start, data)
                want[8 + start : 8 + start + size] = data
            assert np.array_equal(driver.read(base + 1, 2999), want[1:])


GUARDED = 512
"""Bytes of the result's memory, with bytes before and behind the result."""


def _random_results(driver: Driver, count: int) -> None:
    """Run ``count`` commands with odd offsets, sizes and strides; no other byte may change."""
    random = np.random.default_rng(7)
    base = driver.geometry.memory_base
    for number in range(count):
        size, stride = int(random.integers(1, 90)), int(random.integers(1, 5))
        starts = [GUARDED * k + int(random.integers(60)) for k in (2, 0, 1)]
        memory = random.integers(0, 256, 3 * GUARDED, np.uint8)
        driver.write(base, memory)
        strides = (stride, *random.integers(1, 5, 2).tolist())
        y, a, b = (View(base + x, (step,), 1) for x, step in zip(starts, strides, strict=True))
        op = (Op.XOR, Op.COPY)[number % 2]
        streams = Streams(a, b if op.reads_b else None, y)
        has = driver.geometry
        driver.run(list(lower(op, (size,), streams, has.abilities, has.memory)))
        at_y, at_a, at_b = (
            slice(x, x + step * size, step) for x, step in zip(starts, strides, strict=True)
        )
        memory[at_y] = memory[at_a] ^ (memory[at_b] if op.reads_b else 0)
        assert np.array_equal(driver.read(base, memory.size), memory), (number, size, strides)


def test_no_byte_beside_a_result_changes(soc: Simulated) -> None:
    with open_link(soc.url()) as link, Driver(link) as driver:
        _random_results(driver, 40)


@pytest.mark.deep  # it builds a SoC
def test_bytes_change_without_masks_if_the_core_is_told_that_there_are_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The simulated chip shows the fault that `WholeBeatsModule` mends."""
    from bitlane_boards.litex import add_bitlane, simulated

    def add(soc: Any, **options: Any) -> Any:
        options["masks"] = True
        return add_bitlane(soc, **options)

    monkeypatch.setattr(simulated, "add_bitlane", add)
    program = simulated.verilate(tmp_path, simulated.write(tmp_path, "colorlight_i5"))
    with (
        served([str(program), "0"], tmp_path, "colorlight_i5") as soc,
        open_link(soc.url()) as link,
        Driver(link) as driver,
        pytest.raises(AssertionError, match=r"\(0, "),
    ):
        _random_results(driver, 1)


MEMORY_AT = "memory_region,bitlane_memory,0x"
OTHER_MAPS = [
    (r"^constant,bitlane_build,\d+", "constant,bitlane_build,7", "the file of build 0x"),
    (r"^(csr_register,bitlane_build),0x\w+", r"\1,0x00000804", "the file of build 0x"),
    (
        r"^(constant,bitlane_abi_version),\d+",
        rf"\1,{ABI_VERSION - 1}",
        rf"ABI version is {ABI_VERSION - 1}; expected {ABI_VERSION}",
    ),
    (r"^memory_region,bitlane_control.*\n", "", "not the map of a SoC with a core bitlane"),
    (r"(?s)\A.*\Z", "", "not a csr.csv of LiteX"),
    # Nothing is there: the bus answers with ones after its timeout.
    (f"^{MEMORY_AT}4", f"{MEMORY_AT}2", "memory at 0x20000000 does not answer: 0xffffffff, 0xff"),
]


def test_another_map_is_refused(soc: Simulated, tmp_path: Path) -> None:
    csr = tmp_path / "csr.csv"
    for pattern, other, complaint in OTHER_MAPS:
        changed, count = re.subn(pattern, other, soc.csr.read_text("utf-8"), flags=re.M)
        assert count == 1
        csr.write_text(changed, encoding="utf-8")
        with pytest.raises(LinkError, match=complaint) as raised:
            bitlane.open(soc.url(csr))
        assert "\n" not in str(raised.value)


NO_ADDRESS = r"no address; expected litex://HOST\[:PORT\]\?csr=FILE"


def test_a_server_that_is_not_there_is_named(soc: Simulated, tmp_path: Path) -> None:
    for url, complaint in (
        (f"litex://localhost:1?csr={soc.csr}", "no litex_server answers: .*_server --uart"),
        (soc.url(tmp_path / "none.csv"), r"csr .*none.csv: No such file"),
        (f"litex://a..b?csr={soc.csr}", "no litex_server answers: encoding"),
        *((url, NO_ADDRESS) for url in ("litex:", "litex:localhost:1234", "litex://?csr=a")),
        *(
            (f"litex://localhost:{port}", f"port is '{port}'; expected 1 to 65535")
            for port in ("x", "0", "65536")
        ),
        (soc.url(options="&baud=1"), "no option 'baud'; choose csr, core, timeout"),
    ):
        with pytest.raises(LinkError, match=complaint) as raised:
            bitlane.open(url)
        assert "\n" not in str(raised.value)


def test_a_closed_link_says_so(soc: Simulated) -> None:
    link = open_link(soc.url())
    link.close()
    with pytest.raises(LinkError, match="it is closed; open it again"):
        link.read(0x40000000, 4)


def _board(name: str) -> Any:
    """Return the SoC that ``bitlane build`` makes for the board, without the core."""
    # The quick tests collect this module, and have no LiteX.
    target = import_module(f"litex_boards.targets.{name}").BaseSoC
    return target(sys_clk_freq=50e6, cpu_type=None, with_uart=False, with_uartbone=True, l2_size=0)


def _parts(soc: Any, masks: int) -> dict[str, object]:
    """Return the properties of the chip of ``soc``, as LiteDRAM drives it."""
    settings, region = soc.sdram.controller.settings, soc.bus.regions["main_ram"]
    phy = {name: getattr(settings.phy, name) for name in ("memtype", "databits", "nranks", "cl")}
    return {
        **phy,
        **{f"geometry {name}": value for name, value in vars(settings.geom).items()},
        **{f"timing {name}": value for name, value in vars(settings.timing).items()},
        "masks": masks,
        "region": (region.origin, region.size),
        "clock": soc.sys_clk_freq,
    }


@pytest.mark.parametrize("name", CHIP_BYTES)
def test_the_simulated_chip_is_that_of_the_board(name: str) -> None:
    from litex.build.sim import SimPlatform

    from bitlane_boards.litex import simulated

    board = _board(name)
    pads = board.platform.constraint_manager.lookup_request("sdram")
    soc = simulated.SimulatedSoC(SimPlatform("SIM", simulated._PINS), name)
    # Without masks there is one enable for the whole word.
    masks = len(getattr(pads, "dm", ())) or 1
    enables = {
        len(port.we)
        for memory in soc.sdrphy.get_fragment().specials
        for port in getattr(memory, "ports", ())
        if port.we is not None
    }
    assert len(enables) == 1
    assert _parts(soc, enables.pop()) == _parts(board, masks)


def test_the_memory_starts_by_the_steps_of_litedram(soc: Simulated) -> None:
    from litedram.init import get_sdram_phy_py_header

    settings = _board(soc.board).sdram.controller.settings
    names: dict[str, Any] = {}
    exec(get_sdram_phy_py_header(settings.phy, settings.timing), names)
    want = [(a, bank, value, cycles) for _, a, bank, value, cycles in names["init_sequence"]]
    (text,) = re.findall(
        r"^constant,bitlane_memory_start,(.*),,$", soc.csr.read_text("utf-8"), re.M
    )
    steps = [word.split(":") for word in text.split()]
    got = [(int(a), int(bank), int(value), int(cycles)) for _, value, a, bank, cycles in steps]
    assert got == want
    assert [kind for kind, *_ in steps] == ["control"] + ["command"] * 6


_PLACES = {"one bank": (2 << 20, 0, 1 << 20), "own banks": (2 << 20 | 2048, 0, 1 << 20 | 1024)}
"""Offsets of Y, A and B in the memory, which changes the bank every KiB."""

_ENABLE = {Op.COPY: 0b011, Op.XOR: 0b111}
"""The streams of an operator, in the order of the register ``enable``."""


_BOUNDS = {
    "radiona_ulx3s": {
        "coupled": {"one bank": 0.95, "own banks": 0.95},
        "free": {"one bank": 0.85, "own banks": 0.95},
        "no turns": {"one bank": 0.95, "own banks": 1.05},
        "a word a cycle": {"one bank": 0.65, "own banks": 0.7},
    },
    "colorlight_i5": {
        "coupled": {"one bank": 1.05, "own banks": 0.95},
        "free": {"one bank": 0.95, "own banks": 0.85},
        "no turns": {"one bank": 0.8, "own banks": 0.7},
        "a word a cycle": {"one bank": 0.75, "own banks": 0.7},
    },
}
"""Least shares of the rates of LiteDRAM's DMAs, and of a word in each cycle, for both operators.

A beat of the core is a word of the Colorlight's chip, and two words of the ULX3S's.
"""


def test_copy_and_xor_use_what_the_ports_give(
    soc: Simulated, record_property: Callable[[str, object], None]
) -> None:
    """LiteDRAM's DMAs do the same work: free, each as fast as it can, and coupled, as the core."""
    shares: dict[tuple[str, str, str], float] = {}
    with open_link(soc.url()) as link, Driver(link) as driver:
        registers = _registers(link)
        for banks, places in _PLACES.items():
            write, read = (_dma_cycles(registers, bit, places) for bit in (0b001, 0b010))
            for op, enable in _ENABLE.items():
                streams = 2 + op.reads_b
                ceilings = {
                    "a word a cycle": streams * SIZE // CHIP_BYTES[soc.board],
                    "no turns": write + (streams - 1) * read,
                    "free": _dma_cycles(registers, enable, places),
                    "coupled": _dma_cycles(registers, enable, places, coupled=True),
                }
                cycles = _cycles(driver, op, places)
                for ceiling, fewest in ceilings.items():
                    shares[op.name, ceiling, banks] = fewest / cycles
    figures = "; ".join(f"{' '.join(key)} {share:.3f}" for key, share in shares.items())
    record_property("report", f"{soc.board}: shares of LiteDRAM's own DMAs' rates: {figures}")
    bounds = _BOUNDS[soc.board]
    assert all(share >= bounds[ceiling][banks] for (_, ceiling, banks), share in shares.items())


def _registers(link: Link) -> Any:
    """Return the SoC's registers by name, which only a link to LiteX has."""
    from bitlane_boards.litex import LitexLink

    assert isinstance(link, LitexLink)
    return link.registers


def _dma_cycles(
    registers: Any, enable: int, places: tuple[int, ...], *, coupled: bool = False
) -> int:
    """Return the cycles in which LiteDRAM's own DMAs transfer SIZE bytes each."""
    for name, place in zip("yab", places, strict=True):
        getattr(registers, f"streams_{name}_base").write(place // WORD)
    registers.streams_words.write(SIZE // WORD)
    registers.streams_coupled.write(coupled)
    registers.streams_enable.write(enable)
    while not registers.streams_done.read():
        pass
    cycles = registers.streams_cycles.read()
    registers.streams_enable.write(0)
    return int(cycles)


def _cycles(driver: Driver, op: Op, places: tuple[int, ...]) -> int:
    driver.write_register("COUNTERS_CLEAR", 1)
    driver.run(_commands(driver, op, SIZE, places))
    return driver.read_register("BUSY_CYCLES")


def _commands(driver: Driver, op: Op, size: int, places: tuple[int, ...]) -> list[Command]:
    """Return commands on a result and operands that begin at ``places``, in the order Y, A, B."""
    y, a, b = (View(driver.geometry.memory_base + place, (1,), 1) for place in places)
    streams, has = Streams(a, b if op.reads_b else None, y), driver.geometry
    return list(lower(op, (size,), streams, has.abilities, has.memory))


def test_memory_that_falls_silent_is_reported(soc: Simulated) -> None:
    """Answers are lost, so that the core waits for ever: this simulation is not used again."""
    command = [str(soc.folder / "simulation" / "Vsoc"), "0"]
    with (
        served(command, soc.folder, soc.board) as soc,
        open_link(soc.url()) as link,
        Driver(link) as driver,
    ):
        commands = _commands(driver, Op.COPY, 4096, _PLACES["one bank"])
        driver.run(commands)
        _registers(link).main_silent.write(1)
        driver.timeout = 3
        with pytest.raises(DeviceError) as raised:
            driver.run(commands)
        assert "\n" not in str(raised.value)
