"""`make mutants`: the changes that are made, the tests that judge one, and the verdict."""

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from bitlane_boards import boards
from mutants import page, run
from mutants.changes import Change, Equivalent, Kind, apply, changes, equivalents, sample
from mutants.netlists import circuits, is_same, netlist
from mutants.packages import PACKAGES, PROJECT, Package
from mutants.run import Answer, Outcome, judge, report
from mutants.workplace import NoAnswer, Workplace
from support.seeds import stride

RTL, HOST = PACKAGES["rtl"], PACKAGES["host"]

CIRCUIT = {
    "x = a + b": ["a + b -> (a - b)"],
    "x = a & (b | c)": ["a & (b | c) -> (a | (b | c))", "b | c -> (b & c)"],
    "x = a == b": ["a == b -> (a != b)"],
    "x = a <= b": ["a <= b -> (a < b)"],
    "x = a and b": ["a and b -> (a or b)"],
    "x = a in b": ["a in b -> (a not in b)"],
    "x = ~a": ["~a -> a"],
    "x = Mux(a, b, c)": ["Mux(a, b, c) -> Mux(a, c, b)"],
    "x = a.any()": ["a.any() -> a.all()"],
    "x |= a": ["without x |= a", "x |= a -> x &= a"],
    "x = 7": ["7 -> 6", "7 -> 8"],
    "x = 0": ["0 -> 1"],
    "x = True": ["True -> False"],
    "x = a[:2]": ["2 -> 1", "2 -> 3"],
    "def f(x: int = 5) -> None: pass": ["5 -> 4", "5 -> 6"],
    "class S(Struct):\n    op: 4": ["4 -> 3", "4 -> 5"],
    "with m.If(a):\n    pass": ["a -> (a == 0)", "a -> 1"],
    "with m.Elif(a):\n    pass": ["a -> (a == 0)", "a -> 1"],
    "if a:\n    b": ["a -> (not a)"],
    "x = b if a else c": ["a -> (not a)"],
    "m.d.comb += [a.eq(b), c.eq(d)]": ["without a.eq(b)", "without c.eq(d)"],
    "m.d.sync += e.eq(f)": ["without m.d.sync += e.eq(f)"],
    "connect(m, g, h)": ["without connect(m, g, h)"],
    '"""Text."""': [],
    "__all__ = [f(1)]": [],
    "def f(x: Shape[2]) -> Shape[3]: pass": [],
    "if a < 1:\n    raise ValueError(f'{a + 1}')": [],
    "assert a == 1": [],
    "x = Memory(attrs={'a': 1}, name=f'x{1}')": [],
    "x = Signal(reset_less=True)": [],
    "super().__init__()": [],
    "def __post_init__(self):\n    self._expect(1, 32)": [],
}
"""All changes of sources that build a circuit."""

PROGRAM = {
    "f(a, b)": ["a, b -> b, a", "without f(a, b)"],
    "x = f(a, a, *b)": [],
    "x = isinstance(a, B)": [],
    "x = min(a, b)": ["min -> max"],
    "x = any(a)": ["any -> all"],
    "x = [a for a in b if a]": ["a -> (not a)"],
    "if a < b:\n    raise E(a + 1)": ["a < b -> (a <= b)", "a < b -> (not a < b)"],
    "def __post_init__(self):\n    self.f()": ["without self.f()"],
    "def f(self):\n    self.a = b": ["without self.a = b"],
    "def __init__(self):\n    self.a = b": [],
    "x: Array[3] = f(name=2)": ["2 -> 1", "2 -> 3"],
    "x = zip(a, strict=True)": [],
    "x = LinkError(a + b)": [],
    "error.add_note(a + b)": [],
    "async def f(a: B[1]): pass": [],
    "if TYPE_CHECKING:\n    import a": [],
}
"""All changes of other sources."""


@pytest.mark.parametrize("circuit", [True, False])
def test_what_is_changed(circuit: bool) -> None:
    for source, expected in (CIRCUIT if circuit else PROGRAM).items():
        found = [each.summary for each in changes(source, "unit.py", circuit=circuit)]
        assert sorted(found) == sorted(expected), source


def test_changes_are_made_behind_letters_of_several_bytes() -> None:
    source = "x = f('→', b,\n  c + d)"
    made = [apply(each, source) for each in changes(source, "")]
    assert made == [
        "x = f(b, '→',\n  c + d)",
        "x = f('→', c + d, b)",
        "x = f('→', b,\n  (c - d))",
    ]


def test_a_change_says_where_it_is() -> None:
    source = "class Unit:\n    def elaborate(self):\n        return  1 # →\n"
    change = changes(source, "unit.py")[1]
    assert (change.file, change.line, change.column) == ("unit.py", 3, 9)
    assert (change.where, change.text) == ("Unit.elaborate", "return  1 # →")
    assert (change.kind, change.before, change.after) == (Kind.CONSTANT, "1", "2")
    assert (change.start, change.end) == (source.index("1"), source.index("1") + 1)
    assert str(change) == "unit.py:3: 1 -> 2"


@pytest.mark.parametrize("package", PACKAGES.values(), ids=PACKAGES)
def test_changes_of_a_package_make_other_programs(package: Package) -> None:
    """Sixteen files of the circuit have no change, so the total is asserted.

    The quick tier tries every sixth file.
    """
    step = stride(6)
    tried = 0
    for file, path in list(package.sources().items())[::step]:
        source = path.read_text(encoding="utf-8")
        before = ast.dump(ast.parse(source))
        for change in sample(changes(source, file, circuit=package.circuit), 5, seed=0):
            tried += 1
            assert ast.dump(ast.parse(apply(change, source))) != before, str(change)
    assert tried > 240 // step


def test_samples_are_of_different_places_and_stay_when_others_are_edited() -> None:
    source = "x = [1, 2, 3]\ny = [4, 5, 6, 7]\n"
    found = changes(source, "")
    before = sample(found, 100, 0)
    assert (len(found), len(before)) == (14, 7)
    assert before[:3] == sample(found, 3, 0)
    assert before != sample(found, 100, 1)
    after = sample(changes("# More.\n" + source + "w = 4\n", ""), 100, 0)
    assert [str(each) for each in after if each.text != "w = 4"] == [
        str(replace(each, line=each.line + 1)) for each in before
    ]


def test_every_explained_change_can_still_be_made() -> None:
    for known in equivalents():
        package = PACKAGES[known.package]
        source = (PROJECT / package.folder / known.file).read_text(encoding="utf-8")
        all_changes = changes(source, known.file, circuit=package.circuit)
        assert len([each for each in all_changes if known.matches(each)]) == 1, str(known)
        assert known.reason


@pytest.mark.parametrize("package", PACKAGES.values(), ids=PACKAGES)
def test_every_file_has_tests_and_every_prefix_a_file(package: Package) -> None:
    files = package.sources()
    assert len(files) > 50
    for file in files:
        own, whole = package.own_tests(file), package.whole_tests(file)
        assert own, file
        assert package.circuit or not {*own} & {*whole}, file
        for test in (*own, *whole):
            assert (PROJECT / test).exists(), f"{file}: {test}"
    root = PROJECT / package.folder
    names = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
    for prefix in (*package.own, *package.whole, *package.cold):
        assert any(name.startswith(prefix) for name in names), prefix


def test_the_namesake_comes_first_and_other_folders_last() -> None:
    own, whole = HOST.own_tests("links/frames.py"), HOST.whole_tests("links/frames.py")
    assert own[0] == "tests/host/links/test_frames.py"
    beside = (PROJECT / "tests/host/links").glob("test_*.py")
    assert sorted(own) == sorted(path.relative_to(PROJECT).as_posix() for path in beside)
    assert whole.index("tests/host/test_validate.py") < whole.index("tests/system/test_pool.py")


class Adder(wiring.Component):  # type: ignore[type-arg]
    """The low 8 bits of ``a + b + more``, from a sum of ``width`` bits."""

    a: In(8)
    b: In(8)
    total: Out(8)

    def __init__(self, width: int, more: int = 0) -> None:
        self._width = width
        self._more = more
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        total = Signal(self._width)
        m.d.comb += [total.eq(self.a + self.b + self._more), self.total.eq(total)]
        return m


def test_netlists_are_the_same_if_only_bits_differ_that_nothing_reads() -> None:
    before, unread = netlist(lambda: Adder(8)), netlist(lambda: Adder(9))
    assert unread["netlist"] != before["netlist"]
    assert is_same(before, unread)
    assert not is_same(before, netlist(lambda: Adder(7)))
    assert not is_same(before, netlist(lambda: Adder(8, more=1)))


def test_a_file_is_looked_for_in_the_circuits_that_have_it() -> None:
    cores, tops = {*circuits("addresses/loop_nest.py")}, {*circuits("serial/uart.py")}
    assert {"copy", "small", "full"} <= cores
    assert tops == {*boards()} == {*circuits("link/executor.py")}
    assert {*circuits("ethernet/packet_fifo.py")} == {
        name for name, board in boards().items() if board.ethernet
    }
    assert "ulx3s-search" in circuits("search/additions.py").keys() < tops
    assert {*circuits("ports/signatures.py")} == {*circuits()} == cores | tops


UNIT = "def total(a, b):\n    return a + b * 0\n"


def change(summary: str) -> Change:
    [found] = (each for each in changes(UNIT, "unit.py") if each.summary == summary)
    return found


ADDED, FACTOR = change("a + b * 0 -> (a - b * 0)"), change("0 -> 1")


class Place(Workplace):
    """A stand-in that runs nothing; ``asked`` lists the requests of `judge` in order."""

    def __init__(self, *failing: str, same: bool = False, package: Package = RTL) -> None:
        self.package = package
        self.warmed: list[str] = []
        self.asked: list[str] = []
        self.broken: list[str] = []
        self._failing = failing
        self._same = same

    def warm_up(self, file: str, tests: Sequence[str]) -> None:
        self.warmed.append(file)

    @contextmanager
    def changed(self, change: Change) -> Iterator[None]:
        yield

    def fails(self, tests: Sequence[str]) -> str:
        self.asked += tests
        return next((test for test in tests if test in self._failing), "")

    def pass_unchanged(self, tests: Sequence[str], by: str) -> bool:
        assert by in tests
        return by not in self.broken

    def has_same_netlists(self, file: str) -> bool:
        self.asked.append("netlists")
        return self._same


BURSTS, QUEUE = "addresses/bursts.py", "driver/queue.py"
OWN, WHOLE, NETLISTS = RTL.own_tests(BURSTS), RTL.whole_tests(BURSTS), ["netlists"]


@pytest.mark.parametrize(
    ("failing", "same", "folder_only", "outcome", "asked"),
    [
        (OWN[0], False, False, Outcome.CAUGHT, OWN),
        (WHOLE[0], False, False, Outcome.CAUGHT, [*OWN, *NETLISTS, *WHOLE]),
        ("", False, False, Outcome.SURVIVED, [*OWN, *NETLISTS, *WHOLE]),
        ("", True, False, Outcome.SAME, [*OWN, *NETLISTS]),
        ("", True, True, Outcome.SURVIVED, OWN),
    ],
    ids=["caught", "caught late", "survived", "same netlists", "folder only"],
)
def test_the_verdict_is_that_of_the_first_test_that_fails(
    failing: str, same: bool, folder_only: bool, outcome: Outcome, asked: list[str]
) -> None:
    place = Place(failing, same=same)
    answer = judge(replace(ADDED, file=BURSTS), place, [], folder_only=folder_only)
    late = outcome is Outcome.CAUGHT and failing in WHOLE
    assert (answer.outcome, answer.by, answer.late) == (outcome, failing, late)
    assert (place.asked, place.warmed) == (asked, [BURSTS])


@pytest.mark.parametrize(
    ("file", "package"), [("abi/record.py", RTL), ("configuration.py", RTL), (QUEUE, HOST)]
)
def test_what_makes_more_than_a_circuit_is_not_judged_by_netlists(
    file: str, package: Package
) -> None:
    place = Place(same=True, package=package)
    assert judge(replace(ADDED, file=file), place, []).outcome is Outcome.SURVIVED
    assert place.asked == [*package.own_tests(file), *package.whole_tests(file)]


def test_a_test_that_always_fails_is_no_answer() -> None:
    place = Place(*RTL.whole_tests(ADDED.file))
    place.broken += RTL.whole_tests(ADDED.file)
    with pytest.raises(NoAnswer, match="fails without any change"):
        judge(ADDED, place, [])


def test_a_stored_answer_counts_while_the_test_that_gave_it_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "PROJECT", tmp_path)
    (tmp_path / ADDED.file).write_text(UNIT)
    test, path = tmp_path / "test_unit.py", tmp_path / "answers.jsonl"
    test.write_text("one")
    for by in ("test_unit.py::test_total", "deadline"):
        caught = Answer(Outcome.CAUGHT, by, 1)
        run.Answers(path, "").add(ADDED, caught)
        assert run.Answers(path, "").get(ADDED) == caught
    run.Answers(path, "").add(ADDED, Answer(Outcome.CAUGHT, "test_unit.py::test_total", 1))
    test.write_text("other")
    assert run.Answers(path, "").get(ADDED) is None
    test.unlink()
    assert run.Answers(path, "").get(ADDED) is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--file nothing/", "--file: 'nothing/': nothing to change in rtl/bitlane_rtl; expected"),
        ("--count 0", "--count: '0'; expected a whole number from 1 on"),
        ("--count -3", "--count: '-3'; expected a whole number from 1 on"),
    ],
)
def test_a_run_that_would_change_nothing_is_refused(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run.main([*words.split(), "--list"])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_an_explained_change_is_not_counted_and_a_survivor_is_named() -> None:
    place = Place()
    told = ADDED.file, ADDED.where, ADDED.text, ADDED.summary
    known = Equivalent("rtl", *told, "b is 0")
    explained = judge(ADDED, place, [known])
    assert (explained.outcome, explained.by, place.asked) == (Outcome.EXPLAINED, "b is 0", [])
    survived = judge(FACTOR, place, [known])
    assert survived.outcome is Outcome.SURVIVED
    caught = Answer(Outcome.CAUGHT, "test", 1)
    text, good = report(RTL, [(ADDED, explained), (FACTOR, caught)])
    assert ("1 caught" in text, "100.0% of 1" in text, good) == (True, True, True)
    text, good = report(RTL, [(ADDED, explained), (FACTOR, survived)])
    assert "rtl/bitlane_rtl/unit.py:2: 0 -> 1 [total]" in text
    assert ("0.0% of 1" in text, good) == (True, False)


def test_a_summary_counts_each_outcome_once_and_has_a_row_and_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "SUMMARIES", tmp_path)
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    caught = Answer(Outcome.CAUGHT, "a test", 1)
    answers = [caught, replace(caught, late=True), caught, Answer(Outcome.SURVIVED, "", 1)]
    answers.append(Answer(Outcome.EXPLAINED, "why", 0))
    judged = [(replace(ADDED, line=line), each) for line, each in enumerate(answers, 1)]
    for part in ("links/", "", "links/arq.py"):
        page.record(page.summary(HOST, judged, 11, "quick", part) | {"date": "2026-11-28"})
    files = {path.name for path in tmp_path.glob("*.json")}
    assert files == {"host.json", "host-links.json", "host-links-arq.json"}
    text = page.PAGE.read_text()
    figures = "| 2026-11-28 | quick | 11 | 5 | 2 | 1 | 1 | 1 | 75.0% |"
    assert [line for line in text.splitlines() if line.startswith("| host")] == [
        f"| host{part} {figures}" for part in ("", ", `links/`", ", `links/arq.py`")
    ]
    assert text.endswith("host/bitlane/unit.py:4\n    a + b * 0 -> (a - b * 0)\n```\n")


def test_the_page_is_that_of_the_recorded_summaries() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.text(page.recorded())
