"""Looks for what is protected where nobody should write it: exact gaps and groups, in any simple form."""

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
"""By how much denser than evenly the numbers of a text may lie where gaps do."""
_NUMBER = re.compile(r"(\d+)\.(\d{2,})")
_BETWEEN = re.compile(r"[,;\t ]+")
_COLUMNS = 8
_COPIES = 3
"""So many different gaps to the last bit are in a file of somebody else's by no accident."""

TESTERS = "fairwall-conformance-"
"""How the folders of testers begin, of which several may run."""

_BYTES_MAX = 32 << 20
_FILES_MAX = 2000
_DEPTH = 3

_OUTSIDE = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/var/log")  # noqa: S108 - looked at, not written to


def told_by(data: bytes, groups: NDArray[np.uint8], exact: Sequence[float]) -> str:
    """Say what data tell of the groups, shape (people,), or of exact gaps; empty if nothing.

    Rounded gaps stand in a text that holds many numbers by accident too: so many as it takes for a probability of 1e-10
    are told. Packed bits stand in a megabyte of random bytes with a probability of 2^-25 for 48 people.
    """
    if any(form in data for form in _forms(groups)) or _is_a_column(data.decode("latin-1"), groups):
        return "who is in which group"
    # Fractions of small numbers, and short decimals, stand anywhere.
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
    """Whether a table's lines have the groups, as 0 and 1, in one of their first columns."""
    rows = [_BETWEEN.split(line.strip())[:_COLUMNS] for line in text.splitlines()]
    wanted = ["".join(map(str, column.tolist())) for column in (groups, 1 - groups)]
    for place in range(_COLUMNS):
        column = "".join(row[place] if len(row) > place and row[place] in ("0", "1") else "?" for row in rows)
        if any(form in column for form in wanted):
            return True
    return False


def _rounded(value: float, places: int) -> set[tuple[str, str]]:
    """Write a number with so many places, rounded or cut off, as what stands before its point and behind it."""
    cut = math.floor(value * 10**places) / 10**places
    before = [f"{each:.{places}f}".partition(".") for each in (value, cut)]
    return {(whole, part) for whole, _, part in before}


def files_of(folders: Sequence[Path], without: Sequence[Path]) -> Iterator[Path]:
    """Give the files in folders, at whatever depth."""
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path not in without and path.is_file() and path.stat().st_size <= _BYTES_MAX:
                yield path


def files_elsewhere(since: float, own: Path) -> Iterator[Path]:
    """Give what anybody has written since a time where programs write: not far below, nor in the tester's folder."""
    roots = dict.fromkeys(
        Path(root).resolve() for root in (*_OUTSIDE, tempfile.gettempdir(), Path.cwd(), Path.home()) if root
    )
    count = 0
    for root in roots:
        for folder, names, files in os.walk(root):
            here = Path(folder)
            near = len(here.parts) - len(root.parts) < _DEPTH
            names[:] = [name for name in names if near and here / name != own and not name.startswith(TESTERS)]
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
    """Read a file that may be gone, or somebody else's."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _forms(groups: NDArray[np.uint8]) -> Iterator[bytes]:
    """Write down who is in which group, in every simple way."""
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
