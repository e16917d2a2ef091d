"""Catalogue of named subjects: all of compliance's mechanisms, the broken twins, and their sound siblings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.mechanism import Guarantee, NotProved
from compliance.mechanisms.selection import PassFail
from fairwall.errors import UserError
from fairwall.laws.metrics.metric import find_metric
from sim.privacy_audit import twins
from sim.privacy_audit.by_group import group_counts
from sim.privacy_audit.exact import LAWS, exact_loss
from sim.privacy_audit.pairs import least_people
from sim.privacy_audit.subject import AuditedSession, Batches, load

Kind = Literal["mechanism", "broken twin", "sound sibling"]


class PrivacyAuditError(UserError):
    """A privacy audit that cannot be run as asked. The text is one line for the user."""


@dataclass(frozen=True)
class Setting:
    """The question of a privacy audit: `n` people, and m = `queries` models in a batch.

    `metric` is a key of `fairwall.laws.metrics.metric.METRICS`. A session asks for `batches` batches, each at epsilon
    and delta.
    """

    metric: str = "sp"
    n: int = 12
    queries: int = 2
    epsilon: float = 1.0
    delta: float = 0.0
    batches: int = 1


@dataclass(frozen=True)
class CatalogueEntry:
    """A named subject, with one line about its fault or merit, and a setting in which a twin's fault shows."""

    about: str
    make: twins.Maker
    setting: Setting = Setting()


@dataclass(frozen=True)
class BelievedVerdicts(PassFail):
    """BROKEN ON PURPOSE: exact verdicts that claim epsilon, as if one bit were private."""

    name: str = "verdicts-exact"
    guarantee: Guarantee = "pure"

    def refuses(self, metric: str, epsilon: float, delta: float) -> None:
        """Return None: nothing is refused."""


_BUILT: Mapping[Kind, Mapping[str, CatalogueEntry]] = {
    "broken twin": {
        "abs-half": CatalogueEntry(
            "Laplace noise on |SP| as if it moved by 1/2 (Theorem 6)",
            twins.additive("laplace", "half-laplace", "abs_sp"),
            Setting("abs_sp", n=4, queries=1),
        ),
        "eo-all-people": CatalogueEntry(
            "Laplace noise on EO from n, not the label-1 count (Thm 5)",
            twins.additive("laplace", "all-people-laplace", "eo"),
            Setting("eo", n=12, queries=1),
        ),
        "larger-groups": CatalogueEntry(
            "Laplace noise for groups of two and more, where one has one",
            twins.additive("laplace", "larger-groups-laplace"),
            Setting(queries=1),
        ),
        "conceal-printed": CatalogueEntry(
            "Conceal with S as printed, not smooth at N0 = 1 (Theorem 7)",
            twins.additive("cauchy", "printed-conceal", "sp"),
            Setting("sp", n=100, queries=25, epsilon=5.0),
        ),
        "noise-reused": CatalogueEntry(
            "the same noise for two requests", twins.service(twins.TwoRequests, broken=True)
        ),
        "seed-known": CatalogueEntry(
            "noise from a seed that the developer knows", twins.service(twins.GuessedSeed, broken=True)
        ),
        "budget-forgotten": CatalogueEntry(
            "a budget that a restart fills up again", twins.service(twins.Restarted, broken=True)
        ),
        "counts-free-size": CatalogueEntry(
            "noisy counts that take no share of epsilon for N0",
            twins.known(twins.BrokenCounts, "free-size"),
            Setting(queries=1),
        ),
        "counts-low-bits": CatalogueEntry(
            "noisy counts, with a public sum added up from secret ones", twins.unknown(twins.BrokenCounts, "low-bits")
        ),
        "cube-step-forgotten": CatalogueEntry(
            "noise from a cube, the grid's step forgotten", twins.known(twins.Cube, "step"), Setting(queries=1)
        ),
        "cells-free-size": CatalogueEntry(
            "noise on cells that takes no share of epsilon for N0",
            twins.known(twins.Cells, "free-size"),
            Setting(queries=1),
        ),
        "cells-by-group": CatalogueEntry(
            "noise on cells that are cut by the protected attribute",
            twins.known(twins.Cells, "by-group"),
            Setting(queries=1),
        ),
        "group-one-count": CatalogueEntry(
            "counts by group, noise for one count that moves, not two",
            group_counts("tables", "one-count"),
            Setting(n=6, queries=1),
        ),
        "group-own-size": CatalogueEntry(
            "rows of counts by group, each with a size of its own",
            group_counts("rows", "own-size"),
            Setting(n=6, queries=1),
        ),
        "sparse-silent": CatalogueEntry(
            "sparse vector without noise on the gaps", twins.unknown(twins.BrokenSparseVector, "silent")
        ),
        "sparse-endless": CatalogueEntry(
            "sparse vector that goes on after its answer",
            twins.unknown(twins.BrokenSparseVector, "endless"),
            Setting(queries=60),
        ),
        "noise-short": CatalogueEntry(
            "Laplace noise, a tenth too little",
            twins.unknown(twins.Additive, "laplace", twins.SCALES["short-laplace"], None),
            Setting(queries=1),
        ),
        "noise-local": CatalogueEntry(
            "Laplace noise on the local sensitivity, which is secret",
            twins.unknown(twins.Additive, "laplace", twins.SCALES["local-laplace"], None),
        ),
        "silent-few": CatalogueEntry(
            "no answer where a group has fewer than three people", twins.unknown(twins.Seldom, "few")
        ),
        "exact-seldom": CatalogueEntry("no noise in one session of 200", twins.unknown(twins.Seldom, "exact")),
        "flip-single": CatalogueEntry(
            "permute-and-flip without the factor of 2", twins.unknown(twins.PermuteAndFlip, "single")
        ),
        "verdicts-exact": CatalogueEntry(
            "whether a gap passes, without noise: it is only a bit",
            lambda _, epsilon: Batches(BelievedVerdicts(threshold=0.3), epsilon, 0.0),
            Setting(n=6, queries=1),
        ),
    },
    "mechanism": {
        "group-counts": CatalogueEntry("claims epsilon", group_counts("tables")),
        "group-rows": CatalogueEntry("claims epsilon", group_counts("rows")),
    },
    "sound sibling": {
        "plain-laplace": CatalogueEntry(
            "Laplace noise from the right sensitivity and the right people",
            twins.additive("laplace", "right-laplace"),
        ),
        "plain-conceal": CatalogueEntry(
            "Conceal with the smooth S",
            twins.additive("cauchy", "right-conceal"),
            Setting("sp", n=100, queries=25, epsilon=5.0),
        ),
        "noise-fresh": CatalogueEntry(
            "new noise for each of two requests", twins.service(twins.TwoRequests, broken=False)
        ),
        "seed-secret": CatalogueEntry(
            "noise from a seed that nobody guesses", twins.service(twins.GuessedSeed, broken=False)
        ),
        "budget-kept": CatalogueEntry("a budget that survives a restart", twins.service(twins.Restarted, broken=False)),
        "cube-whole": CatalogueEntry("noise from a cube for whole steps of its grid", twins.known(twins.Cube, None)),
        "cells-paid": CatalogueEntry("noise on cells that pays for N0", twins.known(twins.Cells, None)),
        "counts-paid": CatalogueEntry("noisy counts that pay for N0", twins.known(twins.BrokenCounts, None)),
        "silent-seldom": CatalogueEntry(
            "no answer in one session of 50, whatever the records", twins.unknown(twins.Seldom, None)
        ),
        "flip-twice": CatalogueEntry("permute-and-flip with its factor", twins.unknown(twins.PermuteAndFlip, None)),
        "sparse-once": CatalogueEntry(
            "sparse vector that stops at its answer", twins.unknown(twins.BrokenSparseVector, None), Setting(queries=4)
        ),
    },
}

_NAMED = {name: entry for entries in _BUILT.values() for name, entry in entries.items()}

_GUARANTEES = {"pure": "claims epsilon", "approximate": "claims epsilon and delta"}

_DELTA = 1e-5
"""Default delta for a mechanism that needs one."""


def names(kind: Kind) -> dict[str, str]:
    """Return the subjects of a kind, each name with a line about it."""
    found = {name: entry.about for name, entry in _BUILT[kind].items()}
    if kind == "mechanism":
        found |= {
            name: _GUARANTEES[mechanism.guarantee]
            for name, mechanism in MECHANISMS.items()
            if mechanism.guarantee != "none"
        }
    return found


def prepare(
    name: str,
    *,
    metric: str | None = None,
    n: int | None = None,
    queries: int | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    batches: int | None = None,
) -> tuple[AuditedSession, Setting]:
    """Return a subject and its setting, changed by the arguments that are not None.

    A name with a colon is that of the user's own mechanism, see `foreign.load`.
    """
    changes = {"metric": metric, "n": n, "queries": queries, "epsilon": epsilon, "delta": delta}
    changes["batches"] = batches
    changes = {key: value for key, value in changes.items() if value is not None}
    setting = replace(_default(name), **changes)  # type: ignore[arg-type]
    try:
        setting = replace(setting, metric=find_metric(setting.metric).name)
        if setting.n < least_people(setting.metric):
            raise PrivacyAuditError(f"n: metric {setting.metric} needs at least {least_people(setting.metric)} people")
        for key in ("queries", "batches"):
            if getattr(setting, key) < 1:
                raise PrivacyAuditError(f"{key}: must be at least 1")
        subject = _make(name, setting)
        refusal = subject.refuses(setting.metric)
        claim = subject.claim
    except ValueError as error:
        raise PrivacyAuditError(str(error)) from error
    except Exception as error:
        if ":" not in name or isinstance(error, UserError):
            raise
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        raise PrivacyAuditError(
            f"{name} is no mechanism: {what}; give it refuses, cost and release, or a law"
        ) from error
    if refusal:
        raise PrivacyAuditError(refusal)
    if math.isinf(claim.epsilon):
        raise PrivacyAuditError(f"{name} claims no privacy at epsilon {setting.epsilon:,g}: there is nothing to audit")
    return subject, setting


def _default(name: str) -> Setting:
    if name in _NAMED:
        return _NAMED[name].setting
    if ":" in name:
        return Setting()
    if name not in MECHANISMS:
        raise PrivacyAuditError(f"unknown mechanism {name!r}; `fairwall test privacy --list` names them all")
    # Theorem 8 (conceal-laplace) is stated for epsilon below 1 only.
    return Setting(epsilon=0.9, delta=_DELTA) if MECHANISMS[name].guarantee == "approximate" else Setting()


def _make(name: str, setting: Setting) -> AuditedSession:
    if name in _NAMED:
        if setting.delta:
            raise PrivacyAuditError(f"delta: {name} claims epsilon alone")
        if setting.batches > 1:
            raise PrivacyAuditError(f"batches: a session with {name} is what it is")
        return _NAMED[name].make(name, setting.epsilon)
    if ":" in name:
        return Batches(load(name), setting.epsilon, setting.delta, batches=setting.batches)
    mechanism = MECHANISMS[name]
    if isinstance(mechanism, NotProved):
        mechanism = mechanism.own  # many sessions are drawn at once, so answers are not those of one batch
    exact, law = exact_loss(mechanism), LAWS.get(name)
    return Batches(mechanism, setting.epsilon, setting.delta, exact, law, setting.batches)
