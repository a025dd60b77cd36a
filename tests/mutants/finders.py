"""Finder of single changes in a Python source. Reads and writes no file.

It skips everything that alters no circuit, or only alters which circuits are refused: docstrings,
annotations, ``__all__``, ``raise``, ``assert``, ``__post_init__``, names and attributes.
"""

import ast
import copy
from collections.abc import Callable, Sequence
from typing import Any

from mutants.changes import Change, Kind


def changes(source: str, file: str) -> list[Change]:
    """Return all changes of ``source``, in the order of their places."""
    finder = _Finder(source, file)
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

_CHOICES = ("attrs", "name", "reset_less", "src_loc_at")
"""Keyword arguments that affect how a circuit is built, not its function."""


class _Finder(ast.NodeVisitor):
    """A visitor that collects the changes of a source in ``found``."""

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

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name == "__post_init__":  # only checks arguments
            return
        defaults = [each for each in node.args.kw_defaults if each is not None]
        self._inside(node.name, [*node.args.defaults, *defaults, *node.body])

    def _inside(self, name: str, nodes: Sequence[ast.AST]) -> None:
        self._where.append(name)
        for node in nodes:
            self.visit(node)
        self._where.pop()

    def visit_Assign(self, node: ast.Assign) -> None:
        if ast.unparse(node.targets[0]) != "__all__":
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        # A number in an annotation is the width of a field.
        for part in (node.annotation, node.value):
            if part is not None and (part is node.value or isinstance(part, ast.Constant)):
                self.visit(part)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in _CHOICES:
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
        if isinstance(node.func, ast.Name) and node.func.id == "Mux":
            condition, one, other = node.args
            self._tell(node, Kind.OPERATOR, self._with(node, args=[condition, other, one]))
        if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS and not node.args:
            method = self._with(node.func, attr=_METHODS[node.func.attr])
            self._tell(node, Kind.OPERATOR, self._with(node, func=method))
        self.generic_visit(node)

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

    # Conditions: of the circuit, which are values of any width, and of Python.

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            if ast.unparse(item.context_expr).startswith(("m.If(", "m.Elif(")):
                [condition] = item.context_expr.args  # type: ignore[attr-defined]
                negated = ast.Compare(condition, [ast.Eq()], [ast.Constant(0)])
                self._tell(condition, Kind.CONDITION, negated)
                self._tell(condition, Kind.CONDITION, ast.Constant(1))
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if not all(isinstance(each, ast.Raise) for each in node.body):
            self._choice(node)

    def _choice(self, node: Any) -> None:
        self._tell(node.test, Kind.CONDITION, ast.UnaryOp(ast.Not(), node.test))
        self.generic_visit(node)

    visit_IfExp = _choice

    # Statements: only those that the rest of the circuit can be built without.

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call) and not ast.unparse(node).startswith("super()"):
            self._tell(node, Kind.STATEMENT, ast.Pass())
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if not ast.unparse(node.target).startswith("m.d."):
            self._tell(node, Kind.STATEMENT, ast.Pass())
            self._swap(node)
        elif isinstance(node.value, ast.List):
            for each in node.value.elts:
                self._tell(each, Kind.STATEMENT, ast.Starred(ast.Tuple([])))
            self.generic_visit(node)
        else:
            self._tell(node, Kind.STATEMENT, ast.Pass())
            self.generic_visit(node)

    # How a change is recorded.

    def _with(self, node: Any, **parts: object) -> Any:
        """Return a copy of ``node`` with some fields replaced."""
        other = copy.copy(node)
        for name, part in parts.items():
            setattr(other, name, part)
        return other

    def _tell(self, node: Any, kind: Kind, other: ast.AST) -> None:
        """Record the change of ``node`` to ``other``."""
        start = self._at(node.lineno, node.col_offset)
        end = self._at(node.end_lineno, node.end_col_offset)
        text = self._lines[node.lineno - 1].decode()
        after = ast.unparse(ast.fix_missing_locations(other))
        if isinstance(other, ast.BinOp | ast.BoolOp | ast.Compare | ast.UnaryOp | ast.IfExp):
            after = f"({after})"
        self.found.append(
            Change(
                file=self._file,
                line=node.lineno,
                column=node.col_offset - len(text) + len(text.lstrip()) + 1,
                where=".".join(self._where),
                text=text.strip(),
                kind=kind,
                before=ast.unparse(node),
                after=after,
                start=start,
                end=end,
            )
        )

    def _at(self, line: int, column: int) -> int:
        """Return the byte offset of a line, counted from 1, and column."""
        return sum(map(len, self._lines[: line - 1])) + column
