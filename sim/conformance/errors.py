"""Error for the tester's own inputs, not for the server or client under test."""

from fairwall.errors import UserError


class ConformanceError(UserError):
    """A description, certificates, a command or a case that cannot be used for a test.

    Its text is one line that says what would be right.
    """
