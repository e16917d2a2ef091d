"""Read TOML by untrusted authors: no text keeps the reader busy for longer than its size explains."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

BYTES_MAX = 2**22
PARTS_MAX = 32

# tomllib takes time and memory quadratic in a dotted key's parts. Possessive quantifiers: linear time.
_LONG_KEY = re.compile(
    r"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){%d}""" % PARTS_MAX  # noqa: UP031 - braces
)


class TomlError(ValueError):
    """A text that is not valid TOML, or exceeds the bounds. The message says why, without naming the file."""


def read(path: Path) -> dict[str, Any]:
    """Read a file; TomlError as of `loads`, OSError if it cannot be read, UnicodeDecodeError if it is not UTF-8."""
    return loads(content(path).decode("utf-8"))


def content(path: Path) -> bytes:
    """Return a file's bytes; TomlError if there are more than `BYTES_MAX`, OSError if the file cannot be read."""
    with path.open("rb") as file:
        read = file.read(BYTES_MAX + 1)
    if len(read) > BYTES_MAX:
        raise TomlError(f"more than {BYTES_MAX:,} bytes")
    return read


def loads(text: str) -> dict[str, Any]:
    """Parse a text; TomlError if it is not valid, or a dotted key has too many parts."""
    text = text.removeprefix("\ufeff")  # a byte order mark, which editors write
    if _LONG_KEY.search(text):
        raise TomlError(f"a key has more than {PARTS_MAX} parts")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number too long, brackets too deep
        raise TomlError(str(error)) from None
