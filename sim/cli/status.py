"""The exit statuses of ``fairwall``, and the interruption that ends it."""

from __future__ import annotations

FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130


class Interrupted(BaseException):
    """Ctrl-C, or a request to terminate; the text says what is left of what was done.

    Not a KeyboardInterrupt, which the command-line library would swallow.
    """
