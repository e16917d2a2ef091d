"""The client of a deployment's compliance service: `AuditClient`, what it answers, and how it refuses."""

from fairwall.client.audit_client import (
    Answer,
    AuditClient,
    AuditRefused,
    AuditUnavailable,
    ExpectedError,
    RowsNotCompared,
    Terms,
)
from fairwall.client.by_group import ByGroup, GroupTerms
from fairwall.client.sanitised import Released, ReleaseTerms

__all__ = [
    "Answer",
    "AuditClient",
    "AuditRefused",
    "AuditUnavailable",
    "ByGroup",
    "ExpectedError",
    "GroupTerms",
    "ReleaseTerms",
    "Released",
    "RowsNotCompared",
    "Terms",
]
