"""Constants of all commands: exit statuses, the exception for an interruption, and the width of output."""

from __future__ import annotations

FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130

WIDTH = 80
"""Most columns of output that does not depend on the terminal."""


class Interrupted(BaseException):
    """Ctrl-C, or a request to terminate; the text says what is left of what was done.

    Not a KeyboardInterrupt, which the command-line library would swallow.
    """
