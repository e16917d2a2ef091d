"""A law's requirements as data: a preset is one TOML file, shipped in `laws/` beside this file or the user's own.

A preset lists the tables and the wording that its source requires; it states no more than the source, and changes
nothing that is served. docs/law.md describes the keys.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from fairwall import toml
from fairwall.files import require_end
from fairwall.laws.metrics.metric import key_of

SHIPPED = Path(__file__).with_name("laws")

_TEXT_MAX = 2000


class PresetError(ValueError):
    """A preset that cannot be read. Its text names the key and what is wrong, for the line of a `PolicyError`."""


def _line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be one line, without control characters")
    return text


def _address(text: str) -> str:
    if not text.startswith(("https://", "http://")) or " " in text:
        raise ValueError("must begin with https:// or http://")
    return text


def _different(values: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(values)) < len(values):
        raise ValueError("must have nothing twice")
    return values


_Text = Annotated[str, Field(min_length=1, max_length=_TEXT_MAX), AfterValidator(_line)]

_Texts = Annotated[tuple[_Text, ...], Field(max_length=40)]

_Date = Annotated[date, Field(strict=True)]

Metric = Annotated[str, AfterValidator(key_of)]

_Share = Annotated[float, Field(strict=True, gt=0, le=1)]

Measure = Literal[
    "selection_rate", "scoring_rate", "mean_score", "true_positive_rate", "false_positive_rate", "accuracy"
]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Source(_Strict):
    """The source of a statement: ``dated`` is the meaning of the date, ``read`` the part that was read, and when."""

    title: _Text
    citation: _Text
    url: Annotated[_Text, AfterValidator(_address)]
    date: _Date
    dated: _Text
    read: _Text


class RequiredTable(_Strict):
    """A required table: its attributes, crossed with each other, and its categories, in words."""

    by: Annotated[tuple[_Text, ...], Field(min_length=1, max_length=8), AfterValidator(_different)]
    categories: _Text


class Safeguard(_Strict):
    """A condition that is not a table: the requirement, a deployment's means for it, and what is missing."""

    asked: _Text
    has: _Text
    lacks: _Text


class PresetRules(_Strict):
    """The content of a preset's file.

    ``measures`` need at least one of ``metrics`` to be allowed by the policy; any one of these makes a table. Without
    ``tables``, every existing table of these measures counts. ``small`` is the share of the people below which a group
    may be left out of ratios.
    """

    title: _Text
    jurisdiction: _Text
    checked: _Date
    sources: tuple[Source, ...] = Field(min_length=1, max_length=20)
    metrics: tuple[Metric, ...] = ()
    measures: tuple[Measure, ...] = ()
    tables: tuple[RequiredTable, ...] = Field(default=(), max_length=20)
    threshold: _Share | None = None
    small: _Share | None = None
    wording: _Texts = ()
    noise: _Texts = Field(min_length=1)
    not_said: _Texts = Field(min_length=1)
    safeguards: tuple[Safeguard, ...] = Field(default=(), max_length=20)


@dataclass(frozen=True)
class Preset:
    """A preset that was read.

    `name`: as in the policy; of the user's own file, its name without the folder. `digest`: SHA-256 of the file.
    """

    name: str
    file: Path
    digest: bytes
    asks: PresetRules


def shipped() -> list[str]:
    """Return the names of the presets that come with fairwall."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def read(name: str, folder: Path) -> Preset:
    """Read a preset: one of `shipped`, or a file relative to `folder`; PresetError."""
    if name not in shipped() and not name.endswith(".toml"):
        raise PresetError(f"must be one of {', '.join(shipped())}, or a file that ends with .toml")
    file = SHIPPED / f"{name}.toml" if name in shipped() else folder / name
    try:
        require_end(file)
        content = toml.content(file)
        asks = PresetRules.model_validate(toml.loads(content.decode("utf-8")))
    except OSError as error:
        raise PresetError(f"{file.name}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise PresetError(f"{file.name}: not UTF-8 text") from None
    except toml.TomlError as error:
        raise PresetError(f"{file.name}: not valid TOML: {error}") from None
    except ValidationError as error:
        raise PresetError(f"{file.name}: {_first(error)}") from None
    return Preset(file.name if name not in shipped() else name, file, hashlib.sha256(content).digest(), asks)


def _first(error: ValidationError) -> str:
    problem = error.errors(include_url=False)[0]
    # An unknown key can be any text, also with line breaks.
    key = ".".join(str(part) for part in problem["loc"])
    key = "".join(letter if letter.isprintable() else "?" for letter in key)[:200]
    said = {"missing": "is missing", "extra_forbidden": "unknown key"}.get(problem["type"], problem["msg"])
    return f"{key}: {said.removeprefix('Value error, ')}"
