"""Search output for protected data: exact gaps and groups, in any simple form."""

from __future__ import annotations

import base64
import math
import os
import re
import stat
import struct
import tempfile
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sim.conformance import bounds

_TAIL = 1e-10
_DIGITS = (4, 6, 9)
_CROWDED = 20.0
"""Largest density of a text's numbers near gaps, relative to an even spread."""
_NUMBER = re.compile(r"(\d+)\.(\d{2,})")
_BETWEEN = re.compile(r"[,;\t ]+")
_COLUMNS = 8
_COPIES = 3
"""Fewest different gaps, exact to the last bit, that are no accident in a foreign file."""

TESTERS = "fairwall-conformance-"
"""Prefix of the folders of testers, several of which may run."""

_BYTES_MAX = 32 << 20
_FILES_MAX = 2000
_DEPTH = 3

_OUTSIDE = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/var/log")  # noqa: S108 - looked at, not written to


def told_by(data: bytes, groups: NDArray[np.uint8], exact: Sequence[float]) -> str:
    """Return what data reveals: the groups, shape (people,), or exact gaps; "" if nothing.

    Rounded gaps occur in a text with many numbers by accident too, so they are reported if as many occur with a
    probability below 1e-10. Packed bits of 48 people occur in a megabyte of random bytes with a probability of 2^-25.
    """
    if any(form in data for form in _forms(groups)) or _is_a_column(data.decode("latin-1"), groups):
        return "who is in which group"
    # Fractions of small numbers, and short decimals, occur anywhere.
    gaps = [gap for gap in dict.fromkeys(exact) if abs(Fraction(gap).limit_denominator(10_000) - Fraction(gap)) > 1e-12]
    whole = [[struct.pack(f"{order}d", sign * gap) for order in "<>" for sign in (1, -1)] for gap in gaps]
    if sum(any(form in data for form in forms) for forms in whole) >= min(_COPIES, len(gaps) or 1):
        return "exact gaps"
    numbers = _NUMBER.findall(data.decode("latin-1"))
    for digits in _DIGITS:
        for scale in (1, 100):
            places = digits if scale == 1 else digits - 2
            long = [(whole, part[:places]) for whole, part in numbers if len(part) >= places]
            written = set(long)
            told = sum(not written.isdisjoint(_rounded(scale * abs(gap), places)) for gap in gaps)
            if bounds.poisson(told, _CROWDED * max(len(long), 1) * len(gaps) * 10.0**-digits) < _TAIL:
                return "exact gaps"
    return ""


def _is_a_column(text: str, groups: NDArray[np.uint8]) -> bool:
    """Return whether a table has the groups, as 0 and 1, in one of its first columns."""
    rows = [_BETWEEN.split(line.strip())[:_COLUMNS] for line in text.splitlines()]
    wanted = ["".join(map(str, column.tolist())) for column in (groups, 1 - groups)]
    for place in range(_COLUMNS):
        column = "".join(row[place] if len(row) > place and row[place] in ("0", "1") else "?" for row in rows)
        if any(form in column for form in wanted):
            return True
    return False


def _rounded(value: float, places: int) -> set[tuple[str, str]]:
    """Return a number to `places` digits, rounded and cut off, as the parts before and after its point."""
    cut = math.floor(value * 10**places) / 10**places
    before = [f"{each:.{places}f}".partition(".") for each in (value, cut)]
    return {(whole, part) for whole, _, part in before}


def files_of(folders: Sequence[Path], without: Sequence[Path]) -> Iterator[Path]:
    """Yield the files in folders at any depth, except those of `without` and very large ones."""
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path not in without and path.is_file() and path.stat().st_size <= _BYTES_MAX:
                yield path


def files_elsewhere(since: float, excluded: Path) -> Iterator[Path]:
    """Yield files that anybody has written since a time: near the usual roots, outside the tester's folder."""
    roots = dict.fromkeys(
        Path(root).resolve() for root in (*_OUTSIDE, tempfile.gettempdir(), Path.cwd(), Path.home()) if root
    )
    count = 0
    for root in roots:
        for folder, names, files in os.walk(root):
            here = Path(folder)
            near = len(here.parts) - len(root.parts) < _DEPTH
            names[:] = [name for name in names if near and here / name != excluded and not name.startswith(TESTERS)]
            for name in files:
                path = here / name
                try:
                    found = path.lstat()
                except OSError:
                    continue
                if found.st_mtime >= since and stat.S_ISREG(found.st_mode) and found.st_size <= _BYTES_MAX:
                    yield path
                    count += 1
                    if count >= _FILES_MAX:
                        return


def read(path: Path) -> bytes:
    """Return a file's bytes, or b"" if it is gone or not readable."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _forms(groups: NDArray[np.uint8]) -> Iterator[bytes]:
    for column in (groups.astype(np.uint8), 1 - groups.astype(np.uint8)):
        values = column.tolist()
        for between in ("", " ", ",", ", ", "\n", ";", "\t"):
            yield between.join(map(str, values)).encode()
            yield between.join(f"{value}.0" for value in values).encode()
            yield between.join(("true" if value else "false") for value in values).encode()
            yield between.join(str(bool(value)) for value in values).encode()
            if between:
                yield between.join(map(str, np.flatnonzero(column).tolist())).encode()
        yield column.tobytes()
        for kind in ("<i2", "<i4", "<i8", "<f4", "<f8", ">i4", ">i8", ">f8"):
            yield column.astype(kind).tobytes()
        for packed in (np.packbits(column).tobytes(), np.packbits(column, bitorder="little").tobytes()):
            for each in (packed, packed[::-1]):
                yield each
                yield each.hex().encode()
                yield each.hex().upper().encode()
                yield base64.b64encode(each)
