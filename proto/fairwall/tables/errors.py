"""What can be wrong with a table."""

from __future__ import annotations


class DataError(ValueError):
    """A table cannot be loaded as asked; the message is one line that says what would be right."""
