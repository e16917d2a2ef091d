"""The error of a table."""

from __future__ import annotations

from fairwall.errors import UserError


class DataError(UserError):
    """An error in a table or a request for it; the message is one line that says what would be right."""
