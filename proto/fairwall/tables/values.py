"""The meaning of values, whatever a file's spelling: equality, missing values, and unknown ones.

A policy, a scenario and a plan name values; a CSV file has them as text, and a Parquet file perhaps as numbers. Both
mean the same by one rule, which docs/serving.md states: `meaning`, `is_missing` and `is_unknown`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bools
from fairwall.errors import DataError
from fairwall.tables.columns import MISSING, by_dlpack, listed, plain

if TYPE_CHECKING:
    import pyarrow as pa

MOST_VALUES_LISTED = 20
OTHERS = ("\0",)
"""Stands for every other value, if a table's own format groups the others; no text equals it."""

# fmt: off
_MISSING = frozenset((
    "", "?", ".", "-", "--", "#n/a", "#n/a n/a", "#na", "-1.#ind", "-1.#qnan", "-nan", "1.#ind", "1.#qnan", "<na>",
    "n.a.", "n/a", "na", "nan", "nat", "nil", "none", "null",
))
# fmt: on
"""Texts that stand for no value, in lower case: pyarrow's for CSV, and those of pandas, R, SAS and people."""

_EDGE = "[\t-\r\x1c- \x85\xa0\xad\u1680\u2000-\u200d\u2028\u2029\u202f\u205f\u2060\u3000\ufeff]*"
"""White space, and characters of no width, such as a byte order mark."""

NOTHING = f"(?i)^{_EDGE}(?:{'|'.join(map(re.escape, sorted(_MISSING)))}){_EDGE}$"
"""A text that stands for no value; Arrow's functions search for it too."""

_NOTHING, _EDGES = re.compile(NOTHING), re.compile(f"^{_EDGE}|{_EDGE}$")
_NUMERAL = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]{0,300})(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?")
_INFINITE = re.compile(r"([+-]?)inf(?:inity)?", re.IGNORECASE)
_MOMENT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(\.[0-9]+)?(Z|[+-]00:?00)?")
_OF_WHAT = "(?:(?:race|sex|gender|ethnicity|age|disability|information|data|value|status|answer) )*"
_NO = "available|applicable|specified|reported|stated|disclosed|provided|known|given|recorded|answered|collected"
_KEPT = "(?:say|answer|state|disclose|respond|report|specify|provide|tell|(?:self )?identify)(?: .*)?"
_NOT_KNOWN = re.compile(
    f"{_OF_WHAT}(?:unknown|unspecified|undisclosed|unreported|undetermined|unavailable|missing|withheld"
    f"|not (?:{_NO})(?: by .*)?|(?:no|non) (?:answer|response|data|information)|do(?:es)?(?: not|n ?t) know"
    f"|(?:i )?(?:would )?(?:prefer(?:s|red)?|rather|chooses?|chose|wish(?:es)?) not to {_KEPT}"
    f"|(?:i )?d(?:o|id|oes)(?: not|n ?t) (?:(?:wish|want) to )?{_KEPT}"
    f"|(?:decline|refuse)[ds]?(?: to {_KEPT})?)"
    f"(?: (?:or )?(?:unknown|race|sex|gender|ethnicity|not (?:{_NO})))*"
)
_TURNED_DOWN = re.compile("(?:decline|refuse)[ds]?", re.IGNORECASE)
"""Answers that are unknown of a person, and known of an application."""


def meaning(text: str) -> str:
    """Return the one spelling of a text's meaning: numbers, booleans and moments have one, other text is itself.

    White space at the ends and the composition of letters do not count. A numeral with an extra leading 0 is text: 0101
    and 101 are two values, 1 and 1.0 are one.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    text = _EDGES.sub("", text)
    if _NUMERAL.fullmatch(text):
        number = Decimal(text)
        if number == number.to_integral_value():
            return str(int(number))
        near = float(text)
        return str(int(near)) if near.is_integer() else repr(near)
    if text.casefold() in ("true", "false"):
        return text.casefold()
    if sign := _INFINITE.fullmatch(text):
        return sign[1].replace("+", "") + "inf"
    if moment := _MOMENT.fullmatch(text):
        day, time, part, zone = moment.groups("")
        time, part = f"{time}:00"[:8], part.rstrip("0").rstrip(".")
        return day if time + part + zone == "00:00:00" else f"{day} {time}{part}{'Z' if zone else ''}"
    return text


def is_missing(text: str) -> bool:
    """Return whether a text stands for no value."""
    return _NOTHING.search(text) is not None


def is_unknown(text: str) -> bool:
    """Return whether a text says that the value is not known, as "Race Not Available" does, or stands for none."""
    return is_missing(text) or _NOT_KNOWN.fullmatch(re.sub(r"[\W_]+", " ", text.casefold()).strip()) is not None


def favourable(classes: Sequence[Any], positive: object = None) -> int:
    """Return the index of the favourable one of two classes, 0 or 1; ValueError if that would be a guess."""
    if len(classes) != 2:
        raise ValueError(f"a classifier must be fitted to two classes to be audited, and has {len(classes)}")
    named = [str(each) for each in classes]
    if positive is None:
        if all(isinstance(each, bool | np.bool_ | Real) and each == place for place, each in enumerate(classes)):
            return 1
        raise ValueError(
            f"which class is favourable, {named[0]!r} or {named[1]!r}? Say positive={named[0]!r}, or the other"
        )
    found = [place for place, each in enumerate(named) if meaning(each) == meaning(str(positive))]
    if len(found) != 1:
        raise ValueError(f"positive must be one of the classes, {named[0]!r} or {named[1]!r}, not {str(positive)!r}")
    return found[0]


def several(values: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return one value, several or none as a tuple."""
    return () if values is None else (values,) if isinstance(values, str) else tuple(values)


@dataclass(frozen=True)
class ColumnValues:
    """A column's sorted distinct values, by `meaning`, and for every row the index of its value."""

    where: str
    values: tuple[str, ...]
    codes: NDArray[np.intp]
    is_whole: bool = False

    @classmethod
    def of(
        cls, name: str, column: str, columns: pa.Table, named: Sequence[str] = (), missing: Sequence[str] = ()
    ) -> ColumnValues:
        """Return the values of a table's column; ``name`` is the table's in errors. DataError for another type.

        Texts for no value, with those in ``missing``, become `MISSING`, unless ``named`` has them.
        """
        import pyarrow as pa

        where = f"{name}: column {column!r}"
        values = plain(where, columns.column(column))
        encoded = values.combine_chunks().dictionary_encode(null_encoding="encode")
        texts = encoded.dictionary.cast(pa.string()).to_pylist()
        whole = pa.types.is_integer(values.type)
        return replace(cls.spelt(where, texts, by_dlpack(encoded.indices), named, missing), is_whole=whole)

    @classmethod
    def spelt(
        cls,
        where: str,
        texts: Sequence[str | None],
        codes: NDArray[np.integer],
        named: Sequence[str] = (),
        missing: Sequence[str] = (),
    ) -> ColumnValues:
        """Return the values of texts, given each row's index into these."""
        kept = set(map(meaning, named)) - {MISSING}
        none = _MISSING | {meaning(each).casefold() for each in missing}
        meant = ["" if text is None else meaning(text) for text in texts]
        meant = [each if each in kept or each.casefold() not in none else MISSING for each in meant]
        values = tuple(sorted(set(meant)))
        rank = {value: code for code, value in enumerate(values)}
        return cls(where, values, np.array([rank[each] for each in meant], np.intp)[codes])

    @property
    def there(self) -> tuple[str, ...]:
        """The values that some row has, except `MISSING`."""
        return tuple(self.values[code] for code in np.unique(self.codes) if self.values[code] != MISSING)

    def having(self, *values: str) -> Bools:
        """Return the rows that have one of some values; DataError for a value that no row has."""
        sought = list(map(meaning, values))
        if set(self.there) <= {"true", "false"}:
            sought = [{"1": "true", "0": "false"}.get(each, each) for each in sought]
        for value, meant in zip(values, sought, strict=True):
            if meant not in self.values:
                digits = meant.lstrip("0") or "0"
                lost = f"; it has {digits}, a whole number, without the zeros before it"
                hint = lost * (self.is_whole and digits in self.values)
                raise DataError(f"{self.where} has no value {value!r}; {self.known()}{hint}")
        return np.isin(self.codes, [self.values.index(each) for each in sought])

    def missing(self) -> Bools:
        """Return the rows that have no value."""
        return self.having(MISSING) if MISSING in self.values else np.zeros(len(self.codes), np.bool_)

    def filled(self, value: str | None) -> ColumnValues:
        """Return the values with missing ones replaced by a value that occurs; unchanged for None."""
        if value is None:
            return self
        code = int(self.codes[self.having(value)][0])
        return replace(self, codes=np.where(self.missing(), code, self.codes))

    def sides(self, ones: Sequence[str], zeros: Sequence[str], words: tuple[str, str]) -> tuple[Bools, Bools]:
        """Return the rows with a value of one side, and those with one of the other; a row may be in neither.

        Without zeros the only other value is the other side. DataError if a value is missing or on both sides, or if,
        without zeros, there are several other values or the only one says that the value is not known.
        """
        one, named = self.having(*ones), " or ".join(map(repr, ones))
        others = tuple(value for value in replace(self, codes=self.codes[~one]).there)
        if tuple(zeros) == OTHERS:
            zeros = [value for value in others if not is_unknown(value)]
        elif not zeros:
            a_label = words[1] == "negative"
            unknown = [each for each in others if is_unknown(each) and not (a_label and _TURNED_DOWN.fullmatch(each))]
            if len(others) > 1 or unknown:
                which = f"{unknown[0]!r}, which says that it is not known" if len(others) == 1 else "several others"
                raise DataError(
                    f"{self.where} has besides {named} {which}; {self.known(4)}; say in {words[1]} which of them are "
                    "meant, and take rows with others out"
                )
            zeros = others
        if not zeros:
            raise DataError(f"{self.where} has no value but {named}; the {words[1]} group is empty")
        zero = self.having(*zeros)
        if (one & zero).any():
            raise DataError(f"{self.where} cannot have {named} both {words[0]} and {words[1]}")
        return one, zero

    def counted(self, one: Bools, zero: Bools, words: tuple[str, str]) -> str:
        """Return the values on each side, with numbers of rows, as text that only the table's holder may read."""
        parts = []
        for word, rows in (*zip(words, (one, zero), strict=True), ("neither", ~one & ~zero)):
            codes, counts = np.unique(self.codes[rows], return_counts=True)
            found = zip(codes[:MOST_VALUES_LISTED], counts, strict=False)
            told = [f"{self.values[code]!r} {count:,}" for code, count in found]
            parts += [f"{word} {', '.join(told)}"] * bool(told)
        return f"{self.where}: {'; '.join(parts)}"

    def known(self, few: int = 2) -> str:
        """Return the values if they are few, or categories; only their number if they may identify rows."""
        if len(self.values) > min(MOST_VALUES_LISTED, max(len(self.codes) // 2, few)):
            return f"it has {len(self.values):,} different values in {len(self.codes):,} rows"
        return f"its values are {listed(self.values)}"
