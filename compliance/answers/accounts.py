"""The open accounts, one mapping for each kind of request."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from compliance.answers.audits import AuditCase
from compliance.answers.groups import GroupCase
from compliance.answers.releases import AttributeRelease, ReleaseCase
from compliance.answers.statistics import Cohort
from compliance.answers.studies import Study


@dataclass(frozen=True)
class Accounts:
    """The open accounts, which services share: `replace` changes the mappings in place.

    `releases`: a `AttributeRelease` alone is a deployment's, to which no model comes back.
    """

    audits: dict[str, AuditCase] = field(default_factory=dict)
    groups: dict[str, GroupCase] = field(default_factory=dict)
    releases: dict[str, ReleaseCase | AttributeRelease] = field(default_factory=dict)
    tables: dict[str, Study] = field(default_factory=dict)
    sums: dict[str, Cohort] = field(default_factory=dict)

    def replace(self, by: Accounts) -> None:
        """Open and close accounts while they are served; an account in both sets is present at every moment."""
        for kind in fields(self):
            served, other = getattr(self, kind.name), getattr(by, kind.name)
            served.update(other)
            for name in served.keys() - other.keys():
                del served[name]
