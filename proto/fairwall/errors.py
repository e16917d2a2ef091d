"""Exceptions that end a command or a process with their text instead of a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST = 2000


class UserError(Exception):
    """A user's error. Its text is one line that says what is wrong and what would be right; exit status 2."""

    def __str__(self) -> str:
        # The text quotes names and values of any length and content, and a terminal obeys some characters.
        text = super().__str__()
        if len(text) > _LONGEST:
            text = f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"
        return "".join(letter if letter.isprintable() else ascii(letter).strip("'\"") for letter in text)


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Return the known name spelled most like an unknown one, in any case; empty if none is near."""
    spelled = {each.lower(): each for each in known}
    return [spelled[each] for each in difflib.get_close_matches(name.lower(), spelled, n=1)]


def did_you_mean(names: Iterable[str]) -> str:
    """Return the end of a refusal that suggests names; empty without names."""
    meant = " or ".join(names)
    return f"; did you mean {meant}?" if meant else ""


class NotOneOf(ValueError):
    """A name that is not in a table. Its text lists the table's names; `names` has all accepted ones."""

    def __init__(self, names: Iterable[str], besides: Iterable[str] = ()) -> None:
        listed = tuple(names)
        self.names = (*listed, *besides)
        super().__init__(f"must be one of {', '.join(listed)}")

    def hint(self, name: str) -> str:
        """Return the end of a refusal of this name that suggests the nearest one."""
        return did_you_mean(nearest(name, self.names))


class RunFailed(Exception):
    """A run that broke off. Its text names the party at fault, with the end of that party's log; exit status 1."""


class DataError(UserError):
    """An error in a table or a request for it; the message is one line that says what would be right."""
