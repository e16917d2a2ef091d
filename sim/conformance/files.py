"""Read the tester's own files."""

from __future__ import annotations

from pathlib import Path

from sim.conformance.errors import ConformanceError


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ConformanceError(f"{path}: cannot be read: {why}") from None
