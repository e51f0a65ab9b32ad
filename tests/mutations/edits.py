"""Small, human-like mistakes in a source text, from its syntax tree.

Every edit replaces a few characters at the position of a node, so it can be
shown as a difference of one line.
"""

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

_COMPARISONS = {
    ast.Lt: ("<", ("<=", ">")),
    ast.LtE: ("<=", ("<", ">=")),
    ast.Gt: (">", (">=", "<")),
    ast.GtE: (">=", (">", "<=")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: (r"is\s+not", ("is",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: (r"not\s+in", ("in",)),
}
_ARITHMETIC = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
}
# Dropping other builtins would give the value an obviously wrong type.
_DROPPED_BUILTINS = ("abs", "float", "int", "reversed", "sorted")
_SYMMETRIC = ("add", "logical_and", "logical_or", "max", "maximum", "min")
_SYMMETRIC += ("minimum", "multiply")
_NEVER_RUN = ("TYPE_CHECKING", "__main__")
_AXES = {"0": ("1", "-1"), "1": ("0", "-1"), "-1": ("0", "1")}


class Edit(NamedTuple):
    """Replacement of the bytes from `start` to `end` by `new`."""

    start: int
    end: int
    new: str


class Source:
    """Text of a module and its syntax tree.

    Args:
        text: The text of a Python module.
    """

    def __init__(self, text: str):
        self.text = text
        self.bytes = text.encode()
        self.tree = ast.parse(text)
        self._line_starts = [0]
        for line in self.bytes.splitlines(keepends=True):
            self._line_starts.append(self._line_starts[-1] + len(line))

    @cached_property
    def statements(self) -> int:
        """Number of statements except docstrings and imports."""
        return sum(
            isinstance(node, ast.stmt)
            and not isinstance(node, ast.Import | ast.ImportFrom)
            and not _is_docstring(node)
            for node in ast.walk(self.tree)
        )

    @cached_property
    def program(self) -> tuple | None:
        """Compiled program, comparable with `==`."""
        return program(self.text)

    @cached_property
    def places(self) -> list[list[Edit]]:
        """Possible edits, by node."""
        found = (list(self._edits(node)) for node in _nodes(self.tree))
        return [edits for edits in found if edits]

    def apply(self, edit: Edit) -> str:
        """Return the edited text."""
        before, after = self.bytes[: edit.start], self.bytes[edit.end :]
        return (before + edit.new.encode() + after).decode()

    def difference(self, edit: Edit) -> tuple[int, str, str]:
        """Return the line number of an edit, and its lines before and after."""
        start = self.bytes.rfind(b"\n", 0, edit.start) + 1
        end = self.bytes.find(b"\n", edit.end)
        before = self.bytes[start:end].decode()
        head = self.bytes[start : edit.start].decode()
        tail = self.bytes[edit.end : end].decode()
        line = self.bytes.count(b"\n", 0, start) + 1
        return line, before, head + edit.new + tail

    def _edits(self, node) -> Iterator[Edit]:
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            old, new = _COMPARISONS[type(node.ops[0])]
            for other in new:
                yield from self._between(
                    node.left, node.comparators[0], old, other
                )
        elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            if not _is_text(node.left) and not _is_text(node.right):
                old, new = _ARITHMETIC[type(node.op)]
                yield from self._between(
                    node.left, node.right, re.escape(old), new
                )
        elif isinstance(node, ast.BoolOp):
            words = ("and", "or")
            old, new = words if isinstance(node.op, ast.And) else words[::-1]
            for left, right in pairwise(node.values):
                yield from self._between(left, right, old, new)
        elif isinstance(node, ast.Constant):
            for new in _other_constants(node.value):
                yield Edit(*self._span(node), new)
        elif isinstance(node, ast.If | ast.While | ast.IfExp):
            yield self._negated(node.test)
        elif isinstance(node, ast.comprehension):
            yield from map(self._negated, node.ifs)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if key is not None:
                    yield self._dropped(
                        self._span(key)[0], self._span(value)[1]
                    )
        elif isinstance(node, ast.Call):
            yield from self._of_call(node)

    def _of_call(self, call) -> Iterator[Edit]:
        plain = [a for a in call.args if not isinstance(a, ast.Starred)]
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        if len(plain) == len(call.args):
            # Nobody confuses the condition of `where` with a branch.
            first = plain[1:] if name == "where" else plain
            for pair in pairwise(first if name not in _SYMMETRIC else ()):
                yield from self._swapped(*pair)
            if len(plain) == 1 and not call.keywords:
                yield from self._without_call(call, plain[0], name)
        for keyword in call.keywords:
            if keyword.arg is not None:
                yield self._dropped(*self._span(keyword))
                if keyword.arg == "axis":
                    for new in _AXES.get(self._text(keyword.value), ()):
                        yield Edit(*self._span(keyword.value), new)
        for value in [*plain, *(k.value for k in call.keywords)]:
            last = getattr(value, "attr", getattr(value, "id", ""))
            if "mask" in last:
                yield Edit(*self._span(value), "None")

    def _span(self, node):
        return (
            self._line_starts[node.lineno - 1] + node.col_offset,
            self._line_starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def _text(self, node):
        start, end = self._span(node)
        return self.bytes[start:end].decode()

    def _between(self, left, right, old, new):
        start, end = self._span(left)[1], self._span(right)[0]
        match = re.search(old.encode(), self.bytes[start:end])
        if match:
            yield Edit(start + match.start(), start + match.end(), new)

    def _negated(self, test):
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return Edit(*self._span(test), self._text(test.operand))
        simple = isinstance(test, ast.Name | ast.Attribute | ast.Call)
        text = self._text(test)
        return Edit(
            *self._span(test), f"not {text}" if simple else f"not ({text})"
        )

    def _dropped(self, start, end):
        """Return the edit that drops an item and one comma."""
        after = re.match(rb"\s*, *", self.bytes[end:])
        if after:
            return Edit(start, end + after.end(), "")
        before = re.search(rb",\s*\Z", self.bytes[:start])
        return Edit(before.start() if before else start, end, "")

    def _swapped(self, left, right):
        first, second = self._text(left), self._text(right)
        # Nobody confuses arguments of different kinds.
        if type(left) is type(right) and first != second:
            start, end = self._span(left)[0], self._span(right)[1]
            middle = self.bytes[self._span(left)[1] : self._span(right)[0]]
            yield Edit(start, end, second + middle.decode() + first)

    def _without_call(self, call, argument, name):
        is_builtin = isinstance(call.func, ast.Name) and hasattr(builtins, name)
        if is_builtin and name not in _DROPPED_BUILTINS:
            return
        simple = ast.Name | ast.Attribute | ast.Call | ast.Subscript
        text = self._text(argument)
        yield Edit(
            *self._span(call),
            text if isinstance(argument, simple) else f"({text})",
        )


def program(text: str) -> tuple | None:
    """Compile a text to a value that is independent of line numbers.

    Args:
        text: The text of a module.

    Returns:
        A value that is equal for equal programs; `None` for invalid text.
    """
    try:
        return _program(compile(text, "module", "exec"))
    except (SyntaxError, ValueError):
        return None


def _program(code):
    constants = [
        _program(c) if hasattr(c, "co_code") else (type(c), repr(c))
        for c in code.co_consts
    ]
    names = code.co_names, code.co_varnames, code.co_freevars
    return code.co_code, constants, names, code.co_exceptiontable


def _nodes(node):
    """Yield the nodes below one that run, in the order of the text.

    Annotations do nothing, tests need not check the texts of errors, and
    Python 3.11 has no positions inside f-strings.
    """
    if isinstance(node, ast.Raise | ast.JoinedStr):
        return
    if isinstance(node, ast.If) and any(
        word in ast.dump(node.test) for word in _NEVER_RUN
    ):
        return
    yield node
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _nodes(child)


def _is_docstring(node):
    return isinstance(node, ast.Expr) and _is_text(node.value)


def _is_text(node):
    is_string = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_string or isinstance(node, ast.JoinedStr)


def _other_constants(value):
    if isinstance(value, bool):
        return [str(not value)]
    if isinstance(value, int):
        return [str(value + 1)] + [str(value - 1)] * (value > 0)
    if isinstance(value, float):
        return [repr(value * 2 or 1.0)]
    return []
