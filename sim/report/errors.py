"""What can be wrong with a run's files."""

from __future__ import annotations

from fairwall.errors import UserError


class ReportError(UserError):
    """Files that no report can be made of. Its text is one line that names them."""
