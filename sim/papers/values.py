"""Values computed from lines such as those of ``trials.jsonl``, a number for each unit.

A value is written as arithmetic over the keys of a line: ``gap - gap_base``, or ``accuracies[0]`` of a list. Over lines
of several kinds it names them: ``log10(b.query_error_median / a.query_error_median)``. It is computed for every
combination of matching lines of a unit and averaged, so that comparisons, which are 1 or 0, give a share: ``a.SPD <
b.SPD``.
"""

from __future__ import annotations

import ast
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Line = Mapping[str, Any]

_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {
    "abs": abs,
    "log10": math.log10,
    "max": max,
    "min": min,
    "sqrt": math.sqrt,
}


class ValueRefused(ValueError):
    """A value that cannot be computed. The text says why."""


@dataclass(frozen=True)
class Value:
    """The formula of a value: its text, and its arithmetic as a tree.

    ``kinds`` are the conditions that lines of each kind meet, by the kind's name; "" where there is one without a name.
    ``pair`` are keys that the lines of all kinds agree on.
    """

    text: str
    tree: ast.expr
    kinds: Mapping[str, Mapping[str, Any]]
    pair: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, kinds: Mapping[str, Mapping[str, Any]], pair: Sequence[str] = ()) -> Value:
        """Parse a value; ValueRefused if it cannot be computed."""
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise ValueRefused(f"{text!r} is no arithmetic") from None
        value = cls(text, tree, kinds, tuple(pair))
        value._check(tree)
        return value

    def of(self, lines: Iterable[Line], unit: str) -> list[float]:
        """Return the value of each unit, in the order in which units first occur.

        Raises ValueRefused if a line lacks a key, or no unit has lines of all kinds.
        """
        units: dict[Any, list[Line]] = {}
        for line in lines:
            if unit not in line:
                raise ValueRefused(f"{unit}: no such key in a line")
            units.setdefault(line[unit], []).append(line)
        values = []
        for own in units.values():
            found = [self._at(chosen) for chosen in self._combinations(own)]
            if found:
                values.append(math.fsum(found) / len(found))
        if not values:
            raise ValueRefused("no line meets the conditions")
        return values

    def _combinations(self, lines: Sequence[Line]) -> Iterator[Mapping[str, Line]]:
        matching = [[line for line in lines if _meets(line, keys)] for keys in self.kinds.values()]
        first, *others = matching
        # Grouped by the keys of `pair`: 63 cells and 63 would otherwise be 4,000 combinations a unit.
        grouped = [_grouped(each, self.pair) for each in others]
        for line in first:
            place = tuple(_plain(line.get(key)) for key in self.pair)
            for chosen in itertools.product([line], *(group.get(place, []) for group in grouped)):
                yield dict(zip(self.kinds, chosen, strict=True))

    def _at(self, lines: Mapping[str, Line]) -> float:
        try:
            value = float(self._number(self.tree, lines))
        except (ArithmeticError, ValueError) as error:
            if isinstance(error, ValueRefused):
                raise
            raise ValueRefused(f"{self.text}: {error}") from None
        if not math.isfinite(value):
            raise ValueRefused(f"{self.text}: not finite")
        return value

    def _number(self, node: ast.expr, lines: Mapping[str, Line]) -> float:
        match node:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.Name(id=key):
                return _key(lines[""], key)
            case ast.Attribute(value=ast.Name(id=name), attr=key):
                return _key(lines[name], key)
            case ast.Subscript(value=of, slice=ast.Constant(value=int() as place)):
                return self._entry(of, place, lines)
            case ast.BinOp(left=left, op=op, right=right):
                return _BINARY[type(op)](self._number(left, lines), self._number(right, lines))
            case ast.UnaryOp(operand=operand):
                return -self._number(operand, lines)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return _COMPARISONS[type(op)](self._number(left, lines), self._number(right, lines))
            case ast.Call(func=ast.Name(id=function), args=args):
                return _FUNCTIONS[function](*(self._number(each, lines) for each in args))
        raise AssertionError("checked when it was read")

    def _entry(self, of: ast.expr, place: int, lines: Mapping[str, Line]) -> float:
        match of:
            case ast.Name(id=key):
                line = lines[""]
            case ast.Attribute(value=ast.Name(id=name), attr=key):
                line = lines[name]
            case _:
                raise AssertionError("checked when it was read")
        entries = line.get(key)
        if not isinstance(entries, list | tuple) or place >= len(entries):
            raise ValueRefused(f"{key}[{place}]: no such key in a line")
        return _key({key: entries[place]}, key)

    def _check(self, node: ast.expr) -> None:
        parts: list[ast.expr]
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return
            case ast.Name(id=key):
                if "" not in self.kinds:
                    raise ValueRefused(f"{key}: of which lines? They are named {', '.join(self.kinds)}")
                return
            case ast.Attribute(value=ast.Name(id=name)):
                if name not in self.kinds:
                    raise ValueRefused(f"{name}: no lines of that name")
                return
            case ast.Subscript(value=ast.Name() | ast.Attribute() as of, slice=ast.Constant(value=int() as at)) if (
                at >= 0
            ):
                parts = [of]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                parts = [left, right]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                parts = [operand]
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
                parts = [left, right]
            case ast.Call(func=ast.Name(id=function), args=args, keywords=[]) if function in _FUNCTIONS and args:
                parts = args
            case _:
                raise ValueRefused(
                    f"{ast.unparse(node)}: keys, numbers, + - * /, a comparison, "
                    f"and {', '.join(_FUNCTIONS)} are all there is"
                )
        for part in parts:
            self._check(part)


def _meets(line: Line, conditions: Mapping[str, Any]) -> bool:
    return all(key in line and _same(line[key], wanted) for key, wanted in conditions.items())


def _same(there: Any, wanted: Any) -> bool:
    if isinstance(wanted, list | tuple):
        return any(_same(there, each) for each in wanted)
    return bool(_plain(there) == _plain(wanted))


def _plain(value: Any) -> Any:
    # A list is a key's value too; "inf" may be written as TOML's inf.
    if isinstance(value, list):
        return tuple(value)
    return "inf" if value == math.inf else value


def _grouped(lines: Sequence[Line], keys: Sequence[str]) -> dict[tuple[Any, ...], list[Line]]:
    groups: dict[tuple[Any, ...], list[Line]] = {}
    for line in lines:
        groups.setdefault(tuple(_plain(line.get(key)) for key in keys), []).append(line)
    return groups


def _key(line: Line, key: str) -> float:
    value = line.get(key)
    if not isinstance(value, int | float):  # a boolean counts as 1 or 0
        raise ValueRefused(f"{key}: {'no such key in a line' if key not in line else 'no number'}")
    return value
