"""What a check finds."""

from __future__ import annotations

from dataclasses import dataclass

from fairwall.errors import UserError


class NoRun(UserError):
    """A folder that holds no run. Its text is one line."""


@dataclass(frozen=True)
class Finding:
    """Something that is not as it must be.

    Attributes
    ----------
    check : "file", "chain", "open", "counterpart", "allowed", "protected", "reported" or "seal".
    where : which file, and where in it.
    text : what is wrong.
    """

    check: str
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.check}: {self.where}: {self.text}"


@dataclass(frozen=True)
class Verification:
    """What came of the checks.

    Attributes
    ----------
    findings : empty if all is well.
    notes : what is exempt, and what could not be checked.
    transcripts, messages, searched_bytes, columns, reports : how much was checked.
    """

    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    transcripts: int
    messages: int
    searched_bytes: int
    columns: int
    reports: int
