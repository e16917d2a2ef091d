"""Small disks for tests, which fill up."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(disk: Path, size: str = "1m", owner: int = 0) -> Iterator[Path]:
    """Mount a disk of some size in a new folder; skip the test where that is not allowed."""
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700,uid={owner}", "none", disk]
    mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no right to mount a small disk here: {mounted.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)  # a test that fails leaves files open
