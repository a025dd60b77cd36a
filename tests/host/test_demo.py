"""The demo's parts run on a device that computes with NumPy, and fail on faulty devices."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import bitlane
from bitlane.demo import command, digits, metering, parity, picture
from bitlane.model_file import ModelFileError
from bitlane_rtl import abi
from support.command_line import CommandLine, opens
from support.host.indexes import nearest
from support.host.model_files import not_model
from support.host.model_link import ModelLink

Array = np.ndarray[Any, np.dtype[Any]]


class Honest:
    """A device that computes with NumPy."""

    def bit_xor(self, a: Array, b: Array, /, *, out: Array | None = None) -> Array:
        result: Array = np.bitwise_xor(a, b, out=out)
        return result

    def search(self, queries: Array, database: Array, k: int, /) -> tuple[Array, Array]:
        return nearest(queries, database, k)


class Wrong(Honest):
    """A device that flips a bit of each exclusive or, and is wrong once in each search.

    ``distance`` is what it adds to a distance, ``index`` to a found row.
    """

    def __init__(self, distance: int = 0, index: int = 0) -> None:
        self._distance, self._index = distance, index

    def bit_xor(self, a: Array, b: Array, /, *, out: Array | None = None) -> Array:
        result = super().bit_xor(a, b, out=out)
        result[(0,) * result.ndim] ^= 1
        return result

    def search(self, queries: Array, database: Array, k: int, /) -> tuple[Array, Array]:
        distances, indices = super().search(queries, database, k)
        distances[-1, -1] += self._distance
        indices[0, :1] += self._index
        return distances, indices


@pytest.fixture(scope="module")
def found() -> digits.Neighbours:
    return digits.search(Honest(), digits.load())


def test_a_pixel_is_a_bit() -> None:
    images = np.zeros((64, 8, 8))
    for pixel in range(64):
        images[pixel].flat[pixel] = digits.THRESHOLD
    rows = digits.pack(images)
    assert rows.shape == (64, 8)
    assert np.bitwise_count(rows).sum(axis=1).tolist() == [1] * 64
    assert np.bitwise_or.reduce(rows).tolist() == [255] * 8
    assert not digits.pack(np.full((1, 8, 8), digits.THRESHOLD - 0.5)).any()


def test_images_are_either_query_or_database_and_the_digits_are_found(
    found: digits.Neighbours,
) -> None:
    assert len(found.queries.rows) == digits.HELD_OUT
    assert len(found.queries.rows) + len(found.database.rows) == 1797
    assert found.distances.shape == found.indices.shape == (digits.HELD_OUT, 5)
    assert found.wrong == 0
    # What exact nearest neighbours under this threshold give; a tie goes to the first row.
    assert np.count_nonzero(found.correct) == 271


@pytest.mark.parametrize("device", [Wrong(index=1), Wrong(distance=1)])
def test_wrong_neighbours_are_counted(device: Honest) -> None:
    found = digits.search(device, digits.load())
    assert found.wrong == -(-digits.HELD_OUT // digits.QUERIES_PER_CALL)


def small_photo(size: int) -> Array:
    return np.random.default_rng(1).integers(0, 256, size, np.uint8)


@pytest.mark.parametrize("size", [1, parity.UNIT, 4 * parity.UNIT, 22 * parity.UNIT + 5])
def test_every_disk_can_be_lost(size: int) -> None:
    photo = small_photo(size)
    disks = parity.stripe(Honest(), photo)
    for lost in range(parity.DISKS):
        damaged = disks.copy()
        damaged[lost] = 0xEE
        damaged[lost] = parity.rebuild(Honest(), damaged, lost)
        assert np.array_equal(damaged, disks)
        assert np.array_equal(parity.join(damaged, size), photo)


def test_parity_stands_on_every_disk_in_turn() -> None:
    assert [parity.parity_disk(stripe) for stripe in range(6)] == [4, 3, 2, 1, 0, 4]
    disks = parity.stripe(Honest(), small_photo(20 * parity.UNIT))
    assert not np.bitwise_xor.reduce(disks, axis=0).any()


def test_a_wrong_parity_shows() -> None:
    photo = small_photo(4 * parity.UNIT)
    disks = parity.stripe(Wrong(), photo)
    rebuilt = parity.rebuild(Honest(), disks, 0)
    assert np.count_nonzero(rebuilt != disks[0]) == 1


def test_picture_of_digits(found: digits.Neighbours, tmp_path: Path) -> None:
    path = tmp_path / "new" / "digits.png"
    picture.save(picture.digits_picture(found), path)
    with Image.open(path) as image:
        assert image.format == "PNG"
    assert path.stat().st_size < 200_000
    assert [file.name for file in path.parent.iterdir()] == ["digits.png"]


def test_a_picture_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    class Broken(Image.Image):
        def save(self, *_: object, **__: object) -> None:
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        picture.save(Broken(), tmp_path / "x.png")
    assert list(tmp_path.iterdir()) == []


class Counters:
    """Counter registers that wrap, advanced by hand."""

    def __init__(self, start: int) -> None:
        self.values = dict.fromkeys(("BUSY_CYCLES", "A_BEATS", "B_BEATS", "Y_BEATS"), start)
        self.meter = metering.Meter(lambda name: self.values[name] % 2**32)

    def advance(self, *counts: int) -> None:
        for name, count in zip(self.values, counts, strict=True):
            self.values[name] += count


def test_cost_is_what_the_counters_gained_even_when_they_wrap() -> None:
    counters = Counters(2**32 - 5)
    meter = counters.meter
    counters.advance(7, 7, 7, 7)  # before the part, so none of it
    with meter.part("first"):
        counters.advance(100, 90, 40, 80)
    with meter.part("second"):
        counters.advance(50, 10, 0, 10)
    costs = [(cost.cycles, cost.beats, cost.bound) for cost in meter.costs]
    assert costs == [(100, 210, 90), (50, 20, 10)]
    header, *rows = metering.table([*meter.costs, meter.total], 8)
    assert header.split() == ["bytes", "moved", "cycles", "beats/cycle", "seconds"]
    assert [row.split()[:4] for row in rows] == [
        ["first", "1,680", "100", "0.900"],
        ["second", "160", "50", "0.200"],
        ["all", "1,840", "150", "0.667"],
    ]


def test_the_busiest_port_is_that_of_each_lap() -> None:
    counters = Counters(0)
    with counters.meter.part("one"):
        counters.advance(100, 100, 0, 0)
        counters.meter.lap()
        counters.advance(100, 0, 0, 100)
    assert counters.meter.total.beats_per_cycle == 1.0


class LyingLink(ModelLink):
    """A device whose memory returns the lowest bit of every fourth byte inverted."""

    def read(self, address: int, size: int) -> Array:
        data = super().read(address, size)
        if address < abi.CONTROL_BASE:
            data[::4] ^= 1
        return data


class SlowLink(ModelLink):
    """A device that reports that it is slow."""

    slow = True


class Demo:
    """`bitlane demo` on a model of the device, with a model file of its own as the example."""

    def __init__(self, folder: Path, run: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
        self._run = run
        self._examples, self.output = folder / "examples", folder / "out"
        self._examples.mkdir()
        (self._examples / "not.json").write_text(json.dumps(EXAMPLE), encoding="utf-8")
        self.link = ModelLink(memory_bytes=1 << 24)
        opens(monkeypatch, lambda _: self.link)

    def words(self, *words: str, **options: object) -> list[str]:
        options = {"examples": self._examples, "output": self.output} | options
        return ["demo", *words, *(f"--{name}={value}" for name, value in options.items())]

    def __call__(self, *words: str, code: int = 0, **options: object) -> str:
        """Return the text on standard output."""
        ended = self._run(*self.words(*words, **options))
        assert (ended.code, ended.err) == (code, "")
        return ended.out

    def refusal(self, *words: str, **options: object) -> str:
        """Return the line on standard error; expect that no output is made."""
        line = self._run.refuse(*self.words(*words, **options))
        assert not self.output.exists()
        return line

    @property
    def files(self) -> list[str]:
        return sorted(path.name for path in self.output.iterdir())


@pytest.fixture
def demo(tmp_path: Path, run: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Demo:
    return Demo(tmp_path, run, monkeypatch)


EXAMPLE = not_model()
EXAMPLE["commands"] += [{"type": "writeFile", "targetPath": "y.npy", "resource": "out"}]


@pytest.mark.parametrize(("kind", "code"), [(ModelLink, 0), (LyingLink, 1)])
def test_the_whole_demo(kind: type[ModelLink], code: int, demo: Demo) -> None:
    demo.link = kind(memory_bytes=1 << 24)
    lines = demo(queries=6, code=code).splitlines()
    assert demo.link.closed
    assert demo.files == ["digits.png", "photo.png", "y.npy"]
    judged = [line for line in lines if line.endswith(("identical", "DIFFERENT", "NumPy's"))]
    if code == 0:
        assert lines[-1] == "All checks passed."
        assert len(judged) == 8
        assert not any("DIFFER" in line for line in lines)
    else:
        # Disks rebuilt from a parity that is wrong in the same way come out right.
        assert lines[-1] == "A CHECK FAILED: see above."
        assert ["DIFFER" in line for line in judged[:3]] == [True] * 3


def test_a_rebuilt_parity_that_is_wrong_fails(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    """The photo, which has no parity in it, is right all the same."""
    rebuild = parity.rebuild

    def spoilt(device: Any, disks: Array, lost: int) -> Array:
        found = rebuild(device, disks, lost)
        row = next(row for row in range(len(found)) if parity.parity_disk(row) == lost)
        found[row, 0] ^= 1
        return found

    monkeypatch.setattr(parity, "rebuild", spoilt)
    lines = demo("parity", code=1).splitlines()
    rebuilt = [line for line in lines if "rebuilt: " in line]
    assert [line.rpartition(" ")[2] for line in rebuilt] == ["DIFFERENT"] * parity.DISKS


def test_a_checkout_has_model_files_where_the_demo_looks_for_them() -> None:
    examples = Path(__file__).parents[2] / "examples"
    assert examples in command._EXAMPLES
    assert list(examples.glob("*.json"))


def test_a_slow_device_gets_less_to_do_and_says_so(demo: Demo) -> None:
    demo.link = SlowLink(memory_bytes=1 << 24)
    said = demo()
    reduced = "because this simulation is slow: 6 of 297 queries, one pixel in 64 of the photo"
    for part in (reduced, "6 held-out images", "9,000 distances", "12,960 bytes in 13 stripes"):
        assert part in said
    # The picture is as large as that of the whole photo.
    with Image.open(demo.output / "photo.png") as image:
        assert image.size == (2 * 640 + 16, 54 * 8 + 44)


@pytest.mark.parametrize(("slow", "made"), [(False, True), (True, False)])
def test_a_part_with_few_queries_writes_to_its_output(
    slow: bool, made: bool, demo: Demo, tmp_path: Path
) -> None:
    """The demo runs the requested number of queries, and creates a missing output folder."""
    demo.link = (SlowLink if slow else ModelLink)(memory_bytes=1 << 24)
    demo.output = tmp_path / "new" / "out"
    if made:
        demo.output.mkdir(parents=True)
    said = demo("digits", queries=3)
    assert demo.files == ["digits.png"]
    assert "4,500 distances by device.search; the 5 nearest: identical to NumPy's" in said
    assert "Parity" not in said


@pytest.mark.parametrize("package", ["sklearn", "PIL"])
def test_a_missing_package_is_named(
    package: str, demo: Demo, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda x: None if x == package else find(x))
    assert demo.refusal() == (
        f"bitlane: demo needs the Python package {package}, which is not installed:"
        " pip install 'bitlane[demo]' brings it"
    )


NO_PART = "no part 'digit'; expected examples, digits, parity"
CANNOT = "bitlane: --output /proc/x: expected a folder that can be written to; /proc cannot"


@pytest.mark.parametrize(
    ("words", "options", "message"),
    [
        (["digits"], {"output": "file"}, "--output file: is not a folder; expected one, or none"),
        (["parity"], {"output": "/proc/x"}, CANNOT),
        ([], {"examples": "."}, "no model files (*.json) there"),
        (["digit"], {}, NO_PART),
        ([], {"queries": 0}, "--queries 0: expected 1 to 297"),
        ([], {"queries": 298}, "--queries 298: expected 1 to 297"),
    ],
)
def test_bad_words_are_refused_at_once(
    words: list[str],
    options: dict[str, Any],
    message: str,
    demo: Demo,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("{}")
    assert message in demo.refusal(*words, **options)


def test_models_that_the_circuit_was_not_built_for_are_left_out(tmp_path: Path) -> None:
    folder = Path(__file__).parents[2] / "examples"
    models = [folder / f"{name}.json" for name in ("bit_not", "uint64")]
    lines: list[str] = []
    with bitlane.open("numpy?board=hx8k") as device:
        assert command.run_examples(device, models, tmp_path, lines.append, lambda: None)
        assert [line.split()[:2] for line in lines] == [["bit_not", "1"], ["uint64", "left"]]
        assert lines[1].endswith("this device has no SHIFT_LEFT")
        for lacking in (models[1:], models[1:] * 2):
            with pytest.raises(ModelFileError, match="is SHIFT_LEFT; expected an operation that"):
                command.run_examples(device, lacking, tmp_path, lines.append, lambda: None)
