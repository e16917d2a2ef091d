"""What can be wrong with a table."""

from __future__ import annotations

from fairwall.errors import UserError


class DataError(UserError):
    """A table cannot be loaded as asked; the message is one line that says what would be right."""
