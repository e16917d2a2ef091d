"""What ends a command or a process with its text instead of a traceback."""

from __future__ import annotations

_LONGEST = 2000


class UserError(Exception):
    """What the user can mend. Its text is one line that says what is wrong and what would be right; exit status 2."""

    def __str__(self) -> str:
        # It quotes names and values, which may be long and hold anything; a terminal obeys some characters.
        text = super().__str__()
        if len(text) > _LONGEST:
            text = f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"
        return "".join(letter if letter.isprintable() else ascii(letter).strip("'\"") for letter in text)


class RunFailed(Exception):
    """A run that broke off. Its text says who broke it, with the end of that party's log; exit status 1."""
