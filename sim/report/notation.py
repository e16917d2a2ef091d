"""Number formats and symbols of the report."""

from __future__ import annotations

import math
from collections.abc import Iterable

MISSING = "–"

_SYMBOLS = {
    "developer.queries": "m",
    "developer.perturbation": "b",
    "compliance.epsilon": "ε",
    "compliance.precision": "digits",
    "data.n0": "n₀",
    "compliance.mechanism": "noise",
    "developer.lambda": "λ",
    "developer.rehearsal": "ρ",
    "developer.purity": "α",
    "developer.training_epsilon": "ε",
    "groups.epsilon": "ε",
    "disclosure.epsilon": "ε",
}
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def symbol(key: str) -> str:
    """Return a short form of a scenario's dotted key, for an axis, a legend, or a column's head."""
    return _SYMBOLS.get(key) or key.rpartition(".")[2].replace("_", " ")


def several(values: Iterable[object]) -> str:
    """Return the different settings of several cells, in order, without None."""
    return ", ".join(dict.fromkeys(setting(value) for value in values if value is not None))


def as_float(value: object) -> float:
    """Return a number that may be the string "inf"; NaN for anything else."""
    if value == "inf":
        return math.inf
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan


def number(value: float | str | None, digits: int = 3) -> str:
    """Return a number with ``digits`` significant digits, without an exponent where that stays short.

    "inf" is infinite; None and NaN give a dash. Whole digits are rounded, too: 1553 becomes 1550.
    """
    if value is None:
        return MISSING
    value = as_float(value)
    if math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    power = int(exponent)
    if not -5 <= power < 6:
        return f"{_trimmed(mantissa)}×10{str(power).translate(_SUPERSCRIPT)}".replace("-", "−")
    rounded = float(f"{mantissa}e{power}")
    decimals = max(0, digits - 1 - power)
    return _trimmed(f"{rounded:,.{decimals}f}").replace("-", "−")


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def count(value: float) -> str:
    """Return a number of people: without decimals if whole, else with one."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def span(values: Iterable[float]) -> str:
    """Return a number of people, or the range of several: least to greatest."""
    low, *_, high = (*(ordered := sorted(values)), ordered[-1])
    return count(low) if low == high else f"{count(low)} to {count(high)}"


def setting(value: object) -> str:
    """Return the text of a swept value; a list's words are joined by a cross, its numbers by commas."""
    if isinstance(value, list | tuple):
        return (" × " if isinstance(next(iter(value), None), str) else ", ").join(map(setting, value))
    if isinstance(value, str) and value != "inf":
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value == "inf" or isinstance(value, int | float):
        return number(as_float(value), digits=6)
    return str(value)


def plural(many: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1."""
    return f"{many:,} {noun}" if many == 1 else f"{many:,} {noun}s"
