"""What the commands share: exit statuses, the interruption that ends one, and how wide they print."""

from __future__ import annotations

FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130

WIDTH = 80
"""How wide what is printed may be, where it does not depend on the terminal."""


class Interrupted(BaseException):
    """Ctrl-C, or a request to terminate; the text says what is left of what was done.

    Not a KeyboardInterrupt, which the command-line library would swallow.
    """
