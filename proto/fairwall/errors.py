"""What a user can mend."""

from __future__ import annotations


class UserError(ValueError):
    """Input, files or circumstances that the user can mend; the command line prints it and ends with status 2.

    Its text is one line that says what is wrong and where.
    """
