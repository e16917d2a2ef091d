"""What ends a command or a process with its text instead of a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST = 2000


class UserError(Exception):
    """What the user can mend. Its text is one line that says what is wrong and what would be right; exit status 2."""

    def __str__(self) -> str:
        # It quotes names and values, which may be long and hold anything; a terminal obeys some characters.
        text = super().__str__()
        if len(text) > _LONGEST:
            text = f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"
        return "".join(letter if letter.isprintable() else ascii(letter).strip("'\"") for letter in text)


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Find the known name that an unknown one is spelled most like, upper case or lower; none if none is near."""
    spelled = {each.lower(): each for each in known}
    return [spelled[each] for each in difflib.get_close_matches(name.lower(), spelled, n=1)]


def did_you_mean(names: Iterable[str]) -> str:
    """End a refusal of an unknown name with those that may be meant."""
    meant = " or ".join(names)
    return f"; did you mean {meant}?" if meant else ""


class NotOneOf(ValueError):
    """A name that is not in a table. Its text lists the table's names; `names` has those besides that are taken too."""

    def __init__(self, names: Iterable[str], besides: Iterable[str] = ()) -> None:
        listed = tuple(names)
        self.names = (*listed, *besides)
        super().__init__(f"must be one of {', '.join(listed)}")

    def hint(self, name: str) -> str:
        """End a refusal of this name with the one that may be meant."""
        return did_you_mean(nearest(name, self.names))


class RunFailed(Exception):
    """A run that broke off. Its text says who broke it, with the end of that party's log; exit status 1."""
