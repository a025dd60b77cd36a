"""Single changes of a Python source, their finders, and samples of them.

Finders skip what no test of behaviour should notice: docstrings, annotations, ``__all__``,
``raise``, ``assert``, the texts of errors and formatted texts. The finder for a circuit also skips
what only alters which circuits are refused. `equivalent.toml` lists changes without an effect.
"""

import ast
import copy
import hashlib
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Any

EQUIVALENT = Path(__file__).with_name("equivalent.toml")


class Kind(Enum):
    """The kind of source construct that a change alters."""

    OPERATOR = "operator"
    CONSTANT = "constant"
    CONDITION = "condition"
    STATEMENT = "statement"
    ARGUMENT = "argument"


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change of one place: ``after`` replaces ``before``, the bytes from ``start`` to ``end``.

    ``file`` is relative to the package, ``where`` names the class and function around it. ``text``
    is the stripped line on which the change begins; ``column`` counts in ``text``, from 1.
    """

    file: str
    line: int
    column: int
    where: str
    text: str
    kind: Kind
    before: str
    after: str
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {textwrap.shorten(self.summary, 120, placeholder=' …')}"

    @property
    def summary(self) -> str:
        """The change in words, without its place."""
        if self.kind is Kind.STATEMENT:
            return f"without {self.before}"
        return f"{self.before} -> {self.after}"

    def lot(self, seed: int) -> str:
        """Return a pseudo-random sort key. It does not depend on the line number."""
        drawn = f"{seed} {self.file} {self.where} {self.text} {self.column} {self.summary}"
        return hashlib.sha256(drawn.encode()).hexdigest()


def apply(change: Change, source: str) -> str:
    """Return ``source`` with ``change`` applied; `finders` must have found it there."""
    raw = source.encode()
    return (raw[: change.start] + change.after.encode() + raw[change.end :]).decode()


def sample(found: Iterable[Change], count: int, seed: int) -> list[Change]:
    """Return up to ``count`` changes, at most one for each place.

    A larger ``count`` only adds changes, and edits elsewhere do not alter the choice at a place.
    """
    places: dict[tuple[str, int, int], list[Change]] = {}
    for change in found:
        places.setdefault((change.file, change.start, change.end), []).append(change)
    chosen = [min(each, key=lambda change: change.lot(seed)) for each in places.values()]
    return sorted(chosen, key=lambda change: change.lot(seed))[:count]


@dataclass(frozen=True)
class Equivalent:
    """A change as in `Change`, ``change`` its ``summary``, and the reason why it has no effect.

    ``column`` is 0 if the line has this change once.
    """

    package: str
    file: str
    where: str
    text: str
    change: str
    reason: str
    column: int = 0

    def matches(self, change: Change) -> bool:
        column = change.column if self.column else 0
        told = change.file, change.where, change.text, column, change.summary
        return (self.file, self.where, self.text, self.column, self.change) == told


def equivalents() -> list[Equivalent]:
    """Return all of `EQUIVALENT`. Raises ``TypeError`` for an entry with wrong fields."""
    packages = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))
    return [
        Equivalent(package=package, file=file, **entry)
        for package, files in packages.items()
        for file, entries in files.items()
        for entry in entries
    ]


def changes(source: str, file: str, *, circuit: bool = False) -> list[Change]:
    """Return all changes of ``source``, in the order of their places.

    ``circuit``: the source builds a circuit with Amaranth.
    """
    finder = (_CircuitFinder if circuit else _Finder)(source, file)
    finder.visit(ast.parse(source))
    return sorted(finder.found, key=lambda change: (change.start, change.end, change.after))


_OPERATORS: dict[type[ast.AST], Callable[[], Any]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_METHODS = {"all": "any", "any": "all"}
_FUNCTIONS = {**_METHODS, "max": "min", "min": "max"}

_SYMMETRIC = ("cast", "connect", "gcd", "isinstance", "issubclass", "lcm", "max", "min")
"""Functions whose arguments are not swapped: their order has no effect, or is always noticed."""

_TEXTS = ("Error", "Warning", "add_note")
"""Ends of the names of functions whose arguments are the text of an error."""

_UNSEEN = ("strict", "stacklevel")
"""Keyword arguments that only guard against bugs, or say which line a warning names."""

_CHOICES = ("attrs", "name", "reset_less", "src_loc_at")
"""Keyword arguments that affect how a circuit is built, not its function."""


class _Finder(ast.NodeVisitor):
    """A visitor that collects the changes of a source in ``found``."""

    choices: tuple[str, ...] = _UNSEEN
    """Keyword arguments that are left alone."""

    def __init__(self, source: str, file: str) -> None:
        self.found: list[Change] = []
        self._raw = source.encode()
        self._lines = self._raw.splitlines(keepends=True)
        self._file = file
        self._where: list[str] = []

    # Nodes that are skipped, wholly or in part.

    def _skip(self, node: ast.AST) -> None:
        pass

    visit_Raise = visit_Assert = visit_Import = visit_ImportFrom = visit_JoinedStr = _skip

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._inside(node.name, node.body)

    def visit_FunctionDef(self, node: Any) -> None:
        defaults = [each for each in node.args.kw_defaults if each is not None]
        self._inside(node.name, [*node.args.defaults, *defaults, *node.body])

    visit_AsyncFunctionDef = visit_FunctionDef

    def _inside(self, name: str, nodes: Sequence[ast.AST]) -> None:
        self._where.append(name)
        for node in nodes:
            self.visit(node)
        self._where.pop()

    def visit_Assign(self, node: ast.Assign) -> None:
        if ast.unparse(node.targets[0]) != "__all__":
            self._drop(node, node.targets[0])
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None and ast.unparse(node.annotation) != "TypeAlias":
            self.visit(node.value)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in self.choices:
            self.generic_visit(node)

    # Operators.

    def _swap(self, node: Any) -> None:
        """Note a change of the operator of ``node`` to its counterpart."""
        if other := _OPERATORS.get(type(node.op)):
            self._tell(node, Kind.OPERATOR, self._with(node, op=other()))
        self.generic_visit(node)

    visit_BinOp = visit_BoolOp = _swap

    def visit_Compare(self, node: ast.Compare) -> None:
        first, *others = node.ops
        if other := _OPERATORS.get(type(first)):
            self._tell(node, Kind.OPERATOR, self._with(node, ops=[other(), *others]))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        self._tell(node, Kind.OPERATOR, node.operand)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = _name(node.func)
        if name.endswith(_TEXTS):
            return
        if isinstance(node.func, ast.Attribute) and name in _METHODS and not node.args:
            method = self._with(node.func, attr=_METHODS[name])
            self._tell(node, Kind.OPERATOR, self._with(node, func=method))
        if isinstance(node.func, ast.Name) and name in _FUNCTIONS:
            self._tell(node.func, Kind.OPERATOR, ast.Name(_FUNCTIONS[name]))
        if name not in _SYMMETRIC:
            self._swap_arguments(node)
        self.generic_visit(node)

    def _swap_arguments(self, node: ast.Call) -> None:
        """Note the swaps of two neighbouring arguments."""
        for one, other in pairwise(node.args):
            starred = isinstance(one, ast.Starred) or isinstance(other, ast.Starred)
            if not starred and ast.dump(one) != ast.dump(other):
                self._tell_pair(one, other)

    # Constants.

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        others: tuple[int, ...] = ()
        if isinstance(value, bool):
            others = (not value,)
        elif isinstance(value, int):
            others = (value + 1, value - 1) if value else (1,)
        for other in others:
            self._tell(node, Kind.CONSTANT, ast.Constant(other))

    # Conditions.

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) != "TYPE_CHECKING":
            self._choice(node)

    def _choice(self, node: Any) -> None:
        self._tell(node.test, Kind.CONDITION, ast.UnaryOp(ast.Not(), node.test))
        self.generic_visit(node)

    visit_IfExp = _choice

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for condition in node.ifs:
            self._tell(condition, Kind.CONDITION, ast.UnaryOp(ast.Not(), condition))
        self.generic_visit(node)

    # Statements: only those that the rest can be executed without.

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            skipped = _name(node.value.func).endswith(_TEXTS)
            if not skipped and not ast.unparse(node).startswith("super()"):
                self._tell(node, Kind.STATEMENT, ast.Pass())
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._tell(node, Kind.STATEMENT, ast.Pass())
        self._swap(node)

    def _drop(self, node: ast.Assign, target: ast.expr) -> None:
        """Note that a part of something is not assigned anew."""
        again = self._where and self._where[-1] != "__init__"
        if isinstance(target, ast.Attribute | ast.Subscript) and again:
            self._tell(node, Kind.STATEMENT, ast.Pass())

    # How a change is recorded.

    def _with(self, node: Any, **parts: object) -> Any:
        """Return a copy of ``node`` with some fields replaced."""
        other = copy.copy(node)
        for name, part in parts.items():
            setattr(other, name, part)
        return other

    def _tell(self, node: Any, kind: Kind, other: ast.AST) -> None:
        """Record the change of ``node`` to ``other``."""
        after = ast.unparse(ast.fix_missing_locations(other))
        if isinstance(other, ast.BinOp | ast.BoolOp | ast.Compare | ast.UnaryOp | ast.IfExp):
            after = f"({after})"
        self._add(node, node, kind, (ast.unparse(node), after))

    def _tell_pair(self, one: ast.expr, other: ast.expr) -> None:
        """Record the swap of ``one`` and ``other``, which follows it."""
        before = f"{ast.unparse(one)}, {ast.unparse(other)}"
        after = ", ".join(_argument(each) for each in (other, one))
        self._add(one, other, Kind.ARGUMENT, (before, after))

    def _add(self, first: Any, last: Any, kind: Kind, texts: tuple[str, str]) -> None:
        """Record the change from ``first`` to ``last``, from a text to another."""
        line = self._lines[first.lineno - 1].decode()
        self.found.append(
            Change(
                file=self._file,
                line=first.lineno,
                column=first.col_offset - len(line) + len(line.lstrip()) + 1,
                where=".".join(self._where),
                text=line.strip(),
                kind=kind,
                before=texts[0],
                after=texts[1],
                start=self._at(first.lineno, first.col_offset),
                end=self._at(last.end_lineno, last.end_col_offset),
            )
        )

    def _at(self, line: int, column: int) -> int:
        """Return the byte offset of a line, counted from 1, and column."""
        return sum(map(len, self._lines[: line - 1])) + column


class _CircuitFinder(_Finder):
    """A finder for sources that build a circuit with Amaranth.

    It leaves alone what only alters which circuits are refused, and how signals are named.
    """

    choices = (*_UNSEEN, *_CHOICES)

    def visit_FunctionDef(self, node: Any) -> None:
        if node.name != "__post_init__":  # only checks arguments
            super().visit_FunctionDef(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        # A number in an annotation is the width of a field.
        for part in (node.annotation, node.value):
            if part is not None and (part is node.value or isinstance(part, ast.Constant)):
                self.visit(part)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id == "Mux":
            condition, one, other = node.args
            self._tell(node, Kind.OPERATOR, self._with(node, args=[condition, other, one]))
        super().visit_Call(node)

    def _swap_arguments(self, node: ast.Call) -> None:
        # Components are connected by their order, and most other arguments are widths and signals
        # whose swap Amaranth refuses.
        pass

    def visit_With(self, node: ast.With) -> None:
        """Note changes of the circuit's conditions, which are values of any width."""
        for item in node.items:
            if ast.unparse(item.context_expr).startswith(("m.If(", "m.Elif(")):
                [condition] = item.context_expr.args  # type: ignore[attr-defined]
                negated = ast.Compare(condition, [ast.Eq()], [ast.Constant(0)])
                self._tell(condition, Kind.CONDITION, negated)
                self._tell(condition, Kind.CONDITION, ast.Constant(1))
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if not all(isinstance(each, ast.Raise) for each in node.body):
            super().visit_If(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if not ast.unparse(node.target).startswith("m.d."):
            super().visit_AugAssign(node)
        elif isinstance(node.value, ast.List):
            for each in node.value.elts:
                self._tell(each, Kind.STATEMENT, ast.Starred(ast.Tuple([])))
            self.generic_visit(node)
        else:
            self._tell(node, Kind.STATEMENT, ast.Pass())
            self.generic_visit(node)


def _name(function: ast.expr) -> str:
    """Return the last name of a called function; empty if it has none."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _argument(node: ast.expr) -> str:
    text = ast.unparse(node)
    return f"({text})" if isinstance(node, ast.GeneratorExp | ast.NamedExpr) else text
