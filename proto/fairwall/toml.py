"""Reads TOML that somebody else wrote: no text keeps the reader busy for longer than its size explains."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

BYTES_MAX = 2**22
PARTS_MAX = 32

# tomllib takes time and memory with the square of a dotted key's parts. Possessive: linear time.
_LONG_KEY = re.compile(
    r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){%d}""" % PARTS_MAX  # noqa: UP031 - braces
)


class TomlError(ValueError):
    """A text that is not valid TOML, or beyond the bounds. The text says why, without naming the file."""


def read(path: Path) -> dict[str, Any]:
    """Read a file.

    TomlError; OSError or UnicodeDecodeError if the file cannot be read, or is not UTF-8.
    """
    return loads(content(path).decode("utf-8"))


def content(path: Path) -> bytes:
    """Read a file's bytes; TomlError if they are more than a text may have, OSError if it cannot be read."""
    with path.open("rb") as file:
        read = file.read(BYTES_MAX + 1)
    if len(read) > BYTES_MAX:
        raise TomlError(f"more than {BYTES_MAX:,} bytes")
    return read


def loads(text: str) -> dict[str, Any]:
    """Read a text.

    Raises TomlError.
    """
    text = text.removeprefix("\ufeff")  # a byte order mark, which editors write
    if _LONG_KEY.search(text):
        raise TomlError(f"a key has more than {PARTS_MAX} parts")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number too long, brackets too deep
        raise TomlError(str(error)) from None
