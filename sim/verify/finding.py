"""The findings of a check."""

from __future__ import annotations

from dataclasses import dataclass

from fairwall.errors import UserError


class NoRun(UserError):
    """A folder without a run. Its text is one line."""


@dataclass(frozen=True)
class VerifyFinding:
    """A fault: the check that found it, the file and the place in it, and a description.

    The check is "file", "chain", "open", "counterpart", "allowed", "protected", "reported" or "seal".
    """

    check: str
    where: str
    text: str

    def __str__(self) -> str:
        return f"{self.check}: {self.where}: {self.text}"


@dataclass(frozen=True)
class Verification:
    """The result of the checks, and the amount checked. There are no findings if all is well.

    Notes list exemptions, and what could not be checked.
    """

    findings: tuple[VerifyFinding, ...]
    notes: tuple[str, ...]
    transcripts: int
    messages: int
    searched_bytes: int
    columns: int
    reports: int
