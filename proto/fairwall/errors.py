"""What ends a command or a process with its text instead of a traceback."""

from __future__ import annotations


class UserError(Exception):
    """What the user can mend. Its text is one line that says what is wrong and what would be right; exit status 2."""

    def __str__(self) -> str:
        # File names and values of the user's may hold anything; a terminal obeys some of it.
        return "".join(letter if letter.isprintable() else ascii(letter).strip("'\"") for letter in super().__str__())


class RunFailed(Exception):
    """A run that broke off. Its text says who broke it, with the end of that party's log; exit status 1."""
