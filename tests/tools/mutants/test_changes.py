"""Each kind of change is found where it may be, told on one line, and made alone."""

import ast
from dataclasses import replace

import pytest

from mutants.changes import Change, Kind, apply, sample
from mutants.finders import changes
from mutants.packages import PACKAGES, Package
from support.seeds import stride


def summaries(source: str, *, circuit: bool = True) -> list[str]:
    return [change.summary for change in changes(source, "unit.py", circuit=circuit)]


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("x = a + b", ["a + b -> (a - b)"]),
        ("x = a & (b | c)", ["a & (b | c) -> (a | (b | c))", "b | c -> (b & c)"]),
        ("x = a == b", ["a == b -> (a != b)"]),
        ("x = a <= b", ["a <= b -> (a < b)"]),
        ("x = a and b", ["a and b -> (a or b)"]),
        ("x = a in b", ["a in b -> (a not in b)"]),
        ("x = ~a", ["~a -> a"]),
        ("x = Mux(a, b, c)", ["Mux(a, b, c) -> Mux(a, c, b)"]),
        ("x = a.any()", ["a.any() -> a.all()"]),
        ("x |= a", ["without x |= a", "x |= a -> x &= a"]),
    ],
)
def test_operators_change(source: str, found: list[str]) -> None:
    assert sorted(summaries(source)) == sorted(found)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("x = 7", ["7 -> 6", "7 -> 8"]),
        ("x = 0", ["0 -> 1"]),
        ("x = True", ["True -> False"]),
        ("x = a[:2]", ["2 -> 1", "2 -> 3"]),
        ("def f(x: int = 5) -> None: pass", ["5 -> 4", "5 -> 6"]),
        ("class S(Struct):\n    op: 4", ["4 -> 3", "4 -> 5"]),
    ],
)
def test_constants_change_by_one(source: str, found: list[str]) -> None:
    assert summaries(source) == found


@pytest.mark.parametrize("word", ["If", "Elif"])
def test_conditions_of_the_circuit_are_negated_or_always_true(word: str) -> None:
    assert summaries(f"with m.{word}(a):\n    pass") == ["a -> (a == 0)", "a -> 1"]


@pytest.mark.parametrize("source", ["if a:\n    b", "x = b if a else c"])
def test_conditions_of_python_are_negated(source: str) -> None:
    assert "a -> (not a)" in summaries(source)


def test_statements_are_dropped_one_by_one() -> None:
    source = "m.d.comb += [a.eq(b), c.eq(d)]\nm.d.sync += e.eq(f)\nconnect(m, g, h)"
    assert summaries(source) == [
        "without a.eq(b)",
        "without c.eq(d)",
        "without m.d.sync += e.eq(f)",
        "without connect(m, g, h)",
    ]


@pytest.mark.parametrize(
    "source",
    [
        '"""Text."""',
        "__all__ = [f(1)]",
        "def f(x: Shape[2]) -> Shape[3]: pass",
        "if a < 1:\n    raise ValueError(f'{a + 1}')",
        "assert a == 1",
        "x = Memory(attrs={'a': 1}, name=f'x{1}')",
        "x = Signal(reset_less=True)",
        "super().__init__()",
        "def __post_init__(self):\n    self._expect(1, 32)",
    ],
)
def test_what_alters_no_circuit_is_left_alone(source: str) -> None:
    assert summaries(source) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("f(a, b)", ["a, b -> b, a", "without f(a, b)"]),
        ("x = f(a, a, *b)", []),
        ("x = isinstance(a, B)", []),
        ("x = min(a, b)", ["min -> max"]),
        ("x = any(a)", ["any -> all"]),
        ("x = [a for a in b if a]", ["a -> (not a)"]),
        ("if a < b:\n    raise E(a + 1)", ["a < b -> (a <= b)", "a < b -> (not a < b)"]),
        ("def __post_init__(self):\n    self.f()", ["without self.f()"]),
        ("def f(self):\n    self.a = b", ["without self.a = b"]),
        ("def __init__(self):\n    self.a = b", []),
        ("x: Array[3] = f(name=2)", ["2 -> 1", "2 -> 3"]),
        ("x = zip(a, strict=True)", []),
        ("x = LinkError(a + b)", []),
        ("error.add_note(a + b)", []),
        ("async def f(a: B[1]): pass", []),
        ("if TYPE_CHECKING:\n    import a", []),
    ],
)
def test_what_is_changed_outside_a_circuit(source: str, found: list[str]) -> None:
    assert sorted(summaries(source, circuit=False)) == found


def test_arguments_are_swapped_behind_letters_of_several_bytes() -> None:
    source = "x = f('→', b,\n  c)"
    swaps = [each for each in changes(source, "") if each.kind is Kind.ARGUMENT]
    assert [apply(each, source) for each in swaps] == ["x = f(b, '→',\n  c)", "x = f('→', c, b)"]


def test_a_change_says_where_it_is() -> None:
    source = "class Unit:\n    def elaborate(self):\n        return  1 # →\n"
    change = changes(source, "unit.py")[1]
    assert change == Change(
        file="unit.py",
        line=3,
        column=9,
        where="Unit.elaborate",
        text="return  1 # →",
        kind=Kind.CONSTANT,
        before="1",
        after="2",
        start=source.index("1"),
        end=source.index("1") + 1,
    )
    assert str(change) == "unit.py:3: 1 -> 2"


def test_a_change_is_made_behind_letters_of_several_bytes() -> None:
    source = '"""→→"""\nx = [a.eq(b), c.eq(d)]  # →\ny = a + b'
    [change] = (each for each in changes(source, "") if each.before == "a + b")
    assert apply(change, source) == source.replace("a + b", "(a - b)")


@pytest.mark.parametrize("package", PACKAGES.values(), ids=PACKAGES)
def test_changes_of_a_package_make_other_programs(package: Package) -> None:
    """Sixteen files of the circuit have no change, so the total is asserted.

    The quick tier tries every third file.
    """
    step = stride(3)
    tried = 0
    for file, path in list(package.sources().items())[::step]:
        source = path.read_text(encoding="utf-8")
        before = ast.dump(ast.parse(source))
        for change in sample(changes(source, file, circuit=package.circuit), 5, seed=0):
            tried += 1
            assert ast.dump(ast.parse(apply(change, source))) != before, str(change)
    assert tried > 240 // step


def test_samples_are_of_different_places_and_begin_alike() -> None:
    found = changes("x = [1, 2, 3, 4, 5, 6, 7]", "")
    assert len(found) == 14
    assert len(sample(found, 100, 0)) == 7
    assert sample(found, 100, 0)[:3] == sample(found, 3, 0)
    assert sample(found, 100, 0) != sample(found, 100, 1)


def test_an_edit_elsewhere_leaves_a_sample_as_it_was() -> None:
    source = "x = 1\ny = 2\nz = 3\n"
    before = sample(changes(source, ""), 100, 0)
    after = sample(changes("# More.\n" + source + "w = 4\n", ""), 100, 0)
    assert [str(each) for each in after if each.text != "w = 4"] == [
        str(replace(each, line=each.line + 1)) for each in before
    ]
