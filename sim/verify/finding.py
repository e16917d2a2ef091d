"""What a check finds."""

from __future__ import annotations

from dataclasses import dataclass

from fairwall.errors import UserError


class NoRun(UserError):
    """A folder that holds no run. Its text is one line."""


@dataclass(frozen=True)
class Finding:
    """Something that is not as it must be: which check found it, in which file and where in it, and what is wrong.

    The check is "file", "chain", "open", "counterpart", "allowed", "protected", "reported" or "seal".
    """

    check: str
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.check}: {self.where}: {self.text}"


@dataclass(frozen=True)
class Verification:
    """What came of the checks, and how much was checked. There are no findings if all is well.

    Notes say what is exempt, and what could not be checked.
    """

    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    transcripts: int
    messages: int
    searched_bytes: int
    columns: int
    reports: int
