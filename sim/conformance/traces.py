"""Looks for what is protected where nobody should write it: exact gaps and groups, in any simple form."""

from __future__ import annotations

import base64
import os
import stat
import struct
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_TOLD_BY_CHANCE = 3
"""So many of some dozens of numbers of six digits do not stand in a text by accident."""
_ROUNDED_BY_CHANCE = 12
"""Nor so many of four digits."""

_BYTES_MAX = 32 << 20
_FILES_MAX = 2000
_DEPTH = 3

_OUTSIDE = ("/tmp", "/var/tmp", "/dev/shm", "/run", "/var/log")  # noqa: S108 - looked at, not written to


def told_by(data: bytes, groups: NDArray[np.uint8], exact: Sequence[float]) -> str:
    """Say what data tell of the groups, or of exact gaps; empty if nothing.

    Packed bits stand in a megabyte of random bytes with a probability of 2^-25 for 48 people, and eight bytes of a
    gap never: neither is looked for in more than some megabytes.

    Parameters
    ----------
    data : bytes
    groups : ndarray, shape (people,)
    exact : sequence of float
    """
    if any(form in data for form in _forms(groups)):
        return "who is in which group"
    gaps = [gap for gap in exact if gap * 16 % 1]  # 0, 1/2 and the like stand anywhere
    whole = [struct.pack(f"{order}d", sign * gap) for gap in gaps for order in "<>" for sign in (1, -1)]
    if any(form in data for form in whole):
        return "exact gaps"
    text = data.decode("latin-1")
    told = sum(f"{abs(gap):.6f}" in text or f"{abs(gap):.9f}"[:8] in text for gap in gaps)
    percent = sum(f"{100 * abs(gap):.4f}" in text for gap in gaps)
    rounded = sum(f"{abs(gap):.4f}" in text for gap in gaps)
    if max(told, percent) >= _TOLD_BY_CHANCE or rounded >= _ROUNDED_BY_CHANCE:
        return "exact gaps"
    return ""


def files_of(folders: Sequence[Path], without: Sequence[Path]) -> Iterator[Path]:
    """Give the files in folders, at whatever depth."""
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path not in without and path.is_file() and path.stat().st_size <= _BYTES_MAX:
                yield path


def files_elsewhere(since: float, own: Path) -> Iterator[Path]:
    """Give what anybody has written since a time where programs write: not far below, nor in the tester's own folder."""
    roots = dict.fromkeys(
        Path(root).resolve() for root in (*_OUTSIDE, tempfile.gettempdir(), Path.cwd(), Path.home()) if root
    )
    count = 0
    for root in roots:
        for folder, names, files in os.walk(root):
            here = Path(folder)
            near = len(here.parts) - len(root.parts) < _DEPTH
            names[:] = [name for name in names if near and here / name != own and name != "proc"]
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
        for order in ("big", "little"):
            packed = np.packbits(column, bitorder=order).tobytes()  # type: ignore[call-overload]
            for each in (packed, packed[::-1]):
                yield each
                yield each.hex().encode()
                yield each.hex().upper().encode()
                yield base64.b64encode(each)
