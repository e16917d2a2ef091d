"""The tester's own inputs: their reading, and the error about them."""

from __future__ import annotations

from pathlib import Path

from fairwall.errors import UserError


class ConformanceError(UserError):
    """A description, certificates, a command or a case that cannot be used for a test.

    Its text is one line that says what would be right.
    """


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ConformanceError(f"{path}: cannot be read: {why}") from None
