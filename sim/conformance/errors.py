"""What the tester got wrong, as opposed to what is tested."""

from fairwall.errors import UserError


class ConformanceError(UserError):
    """A description, certificates, a command or a case that nothing can be tested with.

    Its text is one line that says what would be right.
    """
