"""What the tester got wrong, as opposed to what is tested."""


class ConformanceError(ValueError):
    """A description, certificates, a command or a case that nothing can be tested with.

    Its text is one line that says what would be right.
    """
