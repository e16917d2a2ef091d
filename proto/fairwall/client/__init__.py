"""The client of a compliance service: `AuditClient`, its answers, and its exceptions."""

from fairwall.client.audit_client import AuditClient, AuditRefused, AuditUnavailable, RowsNotCompared
from fairwall.client.by_group import ByGroup, GroupTerms
from fairwall.client.gaps import Answer, ExpectedError, SealedTerms, Terms
from fairwall.client.practice import ByQuantile, BySegment
from fairwall.client.sanitised import Released, ReleaseTerms
from fairwall.client.search import Search

__all__ = [
    "Answer",
    "AuditClient",
    "AuditRefused",
    "AuditUnavailable",
    "ByGroup",
    "ByQuantile",
    "BySegment",
    "ExpectedError",
    "GroupTerms",
    "ReleaseTerms",
    "Released",
    "RowsNotCompared",
    "SealedTerms",
    "Search",
    "Terms",
]
