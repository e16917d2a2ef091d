"""Checks of a policy across keys, and error messages of one line."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from compliance.answers.groups import GROUPS_MAX
from compliance.deployment.policy.law import PresetError
from compliance.deployment.policy.schema import (
    AuditSection,
    BudgetSection,
    DataSection,
    DeploymentSection,
    DeveloperSection,
    LawSection,
    Policies,
    Policy,
    PolicyError,
    PolicyRelease,
    PolicyTable,
    SealedSection,
)
from compliance.ledger.accountant import Budget, Rule
from compliance.ledger.place import is_database, shown
from compliance.mechanisms import Mechanism
from compliance.mechanisms.mechanism import candidates
from compliance.records.groups import UNKNOWN
from fairwall.errors import NotOneOf, did_you_mean, nearest
from fairwall.laws.local import LocalPrivacyError
from fairwall.tables.columns import names_of
from fairwall.wire.numbers import EPSILON_MIN

FROM_SUMS = ("cube", "counts")
"""Mechanisms that answer from sums alone."""

PRODUCTS_MAX = 1024
"""Most groups times values of an attribute known by probabilities: noise on more takes seconds to draw."""

_TEXT_MAX, _SHOWN_MAX = 4096, 200


def unfit_texts(value: object, *key: str) -> Iterator[str]:
    """Yield an error for each key or text that cannot be part of a path, a name or a line."""
    if isinstance(value, dict):
        for name, below in value.items():
            yield from unfit_texts(name, *key, repr(name)[1:-1])
            yield from unfit_texts(below, *key, repr(name)[1:-1])
    elif isinstance(value, list):
        for each in value:
            yield from unfit_texts(each, *key)
    elif isinstance(value, str):
        where = ".".join(key)[:_SHOWN_MAX]
        if len(value) > _TEXT_MAX:
            yield f"{where}: must have at most {_TEXT_MAX:,} characters, not {len(value):,}"
        elif any(unicodedata.category(each) in ("Cc", "Cs", "Zl", "Zp") for each in value):
            yield f"{where}: must have no control characters and no line breaks, not {_shown(value)}"


def check_names(policies: Sequence[Policy]) -> None:
    """Raise PolicyError for two data sets of one name in the ledger."""
    names = [policy.data_name for policy in policies]
    names += [policy.release_name for policy in policies if policy.release is not None]
    for name in names:
        if names.count(name) > 1:
            raise PolicyError(f"datasets: two of them, or of what they release, are called {name} in the ledger")


def check_released(policies: Sequence[Policy]) -> None:
    """Raise PolicyError for a release of what answers about the file give exactly: ids, labels, public columns."""
    for policy, other in product(policies, repeat=2):
        release, data = policy.release, other.data
        if release is None or data.file is None or release.source.resolve() != data.file.resolve():
            continue
        for column in release.columns.keys() & {data.id, data.label, *data.public}:
            raise PolicyError(
                f"release.columns.{column}: answers about {other.data_name} tell it without noise (data.id, data.label "
                "or data.public): leave it out there or here"
            )


def check_change(before: Policies, after: Policies) -> None:
    """Raise PolicyError if a running service cannot switch policies: its address and its ledger's place must stay."""
    for key in DeploymentSection.model_fields:
        if getattr(before.deployment, key) != getattr(after.deployment, key):
            raise PolicyError(f"deployment.{key}: cannot change while the service runs: start it again")
    if after.scores and not before.scores:
        raise PolicyError("sealed: the first cannot come while the service runs: start it again")
    if before.releases != after.releases:
        raise PolicyError("release: the first cannot come, nor the last go, while the service runs: start it again")


def _shown(value: object) -> str:
    text = repr(shown(value) if isinstance(value, str) and is_database(value) else value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}... of {len(text):,} characters"


def first(error: ValidationError) -> str:
    """Return pydantic's first error in one line."""
    problem = error.errors(include_url=False)[0]
    place = [str(part) for part in problem["loc"] if part != "[key]"]
    # Below a key within a section, the rest of the path is pydantic's; developers' sections and columns are one level
    # deeper.
    deeper = place[0] in ("developers", "tables") or place[:2] in (["release", "columns"], ["data", "groups"])
    key = ".".join(place[: 4 if place[:2] == ["data", "probabilities"] else 3 if deeper else 2])
    match problem["type"]:
        case "extra_forbidden":
            return f"{key}: unknown key" + did_you_mean(nearest(place[-1], _keys(place[0] if len(place) > 1 else "")))
        case "missing":
            return f"{key}: is missing"
        case "value_error" if isinstance(problem["ctx"]["error"], PresetError):
            return f"{key}: {problem['ctx']['error']}"
        case "value_error":
            error = problem["ctx"]["error"]
            hint = error.hint(problem["input"]) if isinstance(error, NotOneOf) else ""
            return f"{key}: {error}, not {_shown(problem['input'])}{hint}"
        case _:
            message = re.sub(r"^\w+ should ", "", problem["msg"])
            return f"{key}: must {message}, not {_shown(problem['input'])}"


def _keys(section: str) -> list[str]:
    sections: dict[str, Any] = {
        "deployment": DeploymentSection,
        "data": DataSection,
        "audit": AuditSection,
        "budget": BudgetSection,
        "developers": DeveloperSection,
        "release": PolicyRelease,
        "tables": PolicyTable,
        "sealed": SealedSection,
        "law": LawSection,
    }
    return list(sections[section].model_fields if section else Policy.model_fields)


def problems(policy: Policy) -> Iterator[str]:
    """Yield the errors that no single key shows."""
    ledger, seal = policy.deployment.ledger, policy.deployment.seal
    if isinstance(ledger, Path) and isinstance(seal, Path) and seal.resolve().is_relative_to(ledger.resolve().parent):
        yield "deployment.seal: must lie outside the ledger's folder: an old copy of that folder must not pass"
    yield from _row_problems(policy.data)
    yield from _engine_problems(policy)
    yield from _sealed_problems(policy)
    yield from _committed_problems(policy)
    most = {"epsilon": policy.budget.epsilon, "delta": policy.budget.delta}
    asked = {"audit.epsilon_max": policy.epsilon_max, "audit.delta": policy.audit.delta}
    for name, share in policy.developers.items():
        asked |= {f"developers.{name}.epsilon": share.epsilon, f"developers.{name}.delta": share.delta}
    for key, value in asked.items():
        unit = key.rpartition(".")[2].removesuffix("_max")
        if value > most[unit]:
            yield f"{key}: must be at most budget.{unit}, not {value:g}"
    if policy.audit.epsilon_min > policy.epsilon_max:
        yield f"audit.epsilon_min: must be at most what a batch may spend, not {policy.audit.epsilon_min:,g}"
    if math.prod(len(values) for values in policy.data.attributes.values()) > GROUPS_MAX:
        yield f"data.groups: their values make more than {GROUPS_MAX} groups, all columns together: list fewer"
    yield from _probability_problems(policy.data)
    yield from _release_problems(policy)
    if policy.law is not None:
        yield from _law_problems(policy, policy.law)
    low, high = policy.audit.shares
    if not 0 < low <= high < 1:
        yield f"audit.shares: must be two numbers above 0 and below 1, the smaller first, not {[low, high]}"
        return
    try:
        mechanism = policy.mechanism
    except ValueError as error:
        yield f"audit.bounding: {error}"
        return
    for metric in policy.audit.metrics:
        if why := mechanism.refuses(metric, policy.epsilon_max, policy.audit.delta):
            yield f"audit.mechanism: {policy.audit.mechanism} does not answer metric {metric}: {why}"
    yield from _unaffordable(policy, mechanism)


def _row_problems(data: DataSection) -> Iterator[str]:
    if isinstance(data.protected, str) != (data.advantaged is not None):
        yield (
            "data.advantaged: is missing"
            if data.advantaged is None
            else "data.advantaged: goes with one protected column: the advantaged values of several stand beside each"
        )
    if data.disadvantaged and isinstance(data.protected, str) == isinstance(data.disadvantaged, dict):
        yield "data.disadvantaged: must be values of one protected column, or of several columns a table by their names"
    elif isinstance(data.disadvantaged, dict) and (unknown := data.disadvantaged.keys() - set(data.columns)):
        yield f"data.disadvantaged: {names_of(sorted(unknown))} is not in data.protected"
    if data.id in (*data.columns, data.label):
        yield "data.id: must be a column of its own"
    if data.public and data.id is None:
        yield "data.public: needs data.id: rows are compared in the order of ids"
    if {*data.columns, *data.group_columns} & set(data.public):
        yield "data.public: must not have a protected column, or a group's: anybody could try values against a digest"
    if {data.id, data.label} & set(data.groups):
        yield "data.groups: must not have the column of ids, nor the label, which nothing protects"
    if len({data.id, *data.public}) != 1 + len(data.public):
        yield "data.public: must be different columns, without that of ids"
    for column in data.impute.keys() - {*data.columns, data.label}:
        yield f"data.impute.{column}: must be a protected column or the label: nothing else is imputed"


def _probability_problems(data: DataSection) -> Iterator[str]:
    for name, section in data.probabilities.items():
        key = f"data.probabilities.{name}"
        if section.threshold is not None:
            yield (
                f"{key}.threshold: nobody is put in the likeliest group: a threshold takes for sure what probabilities "
                "leave open, and overstates gaps (arXiv 1811.11154); leave it out: people count by their probabilities"
            )
        named = [*section.columns.values(), section.golden]
        if name in data.groups or len({*named, *data.groups, data.label, data.id}) != len(named) + len(data.groups) + 2:
            yield f"{key}: must be another attribute than those of data.groups, of columns of its own"
        if UNKNOWN in section.columns:
            yield f'{key}.columns: "{UNKNOWN}" has no probability: everybody is of some group'
        if math.prod(map(len, data.attributes.values())) * len(section.columns) > PRODUCTS_MAX:
            yield f"{key}.columns: make too many groups with those of data.groups: list fewer values there or here"


def _committed_problems(policy: Policy) -> Iterator[str]:
    """Yield an error for what cannot be committed to: people in an engine, and noise that no key decides."""
    if not policy.audit.committed:
        return
    if policy.data.file is None:
        yield "audit.committed: people who stay in an engine are not committed to: leave it out"
    if len(policy.data.splits) > 1:
        yield "audit.committed: one protected column can be committed to, not several"
    if policy.audit.delta:
        yield "audit.committed: noise is made of a key, which Gaussian noise is not: leave audit.delta out"


def _sealed_problems(policy: Policy) -> Iterator[str]:
    """Yield an error for each feature that no model may get: protected columns, the label and the id."""
    if policy.sealed is None:
        return
    features, data = policy.sealed.features, policy.data
    if data.file is None:
        yield "sealed: people who stay in an engine are asked about by tables alone: leave it out"
    if len(set(features)) < len(features):
        yield "sealed.features: a column stands there twice"
    for column in features:
        if column in policy.hidden or column in (data.label, data.id):
            yield f"sealed.features: {column!r} is protected, the label or the id: leave it out"


def _engine_problems(policy: Policy) -> Iterator[str]:
    """Yield an error for each key that does not go with people in an engine, or with a file."""
    data = policy.data
    if data.file is not None:
        for key in ("data.table", "tables"):
            if data.table if key == "data.table" else policy.tables:
                yield f"{key}: goes with an engine in data.source alone: duckdb:, parquet: or postgresql://"
        return
    in_database = not str(data.source).startswith("parquet:")
    if not isinstance(data.protected, str):
        yield "data.protected: must be one column where people stay in an engine"
    if data.id is None:
        yield "data.id: is missing: people who stay in an engine are joined with predictions on it"
    if in_database != (data.table is not None):
        yield f"data.table: {'is missing' if in_database else 'goes with a database alone'}"
    for key in ("public", "impute", "groups", "probabilities"):
        if getattr(data, key):
            yield f"data.{key}: not of people who stay in an engine: it is asked for sums alone"
    if data.missing != "refuse":
        yield "data.missing: must be refuse for people who stay in an engine"
    if policy.release is not None:
        yield "release: not of people who stay in an engine: it is asked for sums alone"
    if policy.audit.mechanism not in FROM_SUMS:
        yield (
            f"audit.mechanism: must be {' or '.join(FROM_SUMS)}, which answer from sums alone, for people who stay in "
            f"an engine, not {policy.audit.mechanism}"
        )
    if not policy.tables:
        yield "tables: is missing: which tables of predictions developers may ask about, and who"
    for name, table in policy.tables.items():
        if (table.source is None) == (table.table is None):
            yield f"tables.{name}: must have source, Parquet files, or table, one in the data's database"
        elif table.table is not None and not in_database:
            yield f"tables.{name}.table: the people are in Parquet files, in no database: say source"
        elif table.source is not None and is_database(str(data.source)):
            yield f"tables.{name}.source: must be a table of the people's own database, which joins them: say table"
        for developer in set(table.developers) - policy.developers.keys():
            yield f"tables.{name}.developers: {developer} is not among developers"


def _unaffordable(policy: Policy, mechanism: Mechanism) -> Iterator[str]:
    """Yield an error for each budget that covers no batch, or no second batch at another epsilon."""
    audited, rule = policy.audit, Rule(policy.budget.rule)
    kinds = candidates(mechanism, audited.delta)
    least, others = ([kind.cost(times * EPSILON_MIN, audited.delta) for kind in kinds] for times in (1, 2))
    batch = f"a batch of {audited.mechanism} at audit.delta {audited.delta:g}"
    accounts = {"budget": policy.budget} | {f"developers.{name}": share for name, share in policy.developers.items()}
    for key, section in accounts.items():
        if section.epsilon < 3 * EPSILON_MIN:
            yield f"{key}.epsilon: must be at least {3 * EPSILON_MIN:,g}, not {section.epsilon:,g}"
            continue
        account = Budget(section.epsilon, section.delta, rule)
        if not all(account.affords({}, loss) for loss in least):
            yield f'{key}.delta: {section.delta:g} never covers {batch} under budget.rule "{rule}"'
        for loss, other in product(least, others):
            if account.affords({loss: 1}, loss) and not account.affords({loss: 1}, other):
                yield f'{key}.delta: {section.delta:g} covers no two unlike batches: {batch} under budget.rule "{rule}"'


def _release_problems(policy: Policy) -> Iterator[str]:
    release = policy.release
    for name, share in policy.developers.items():
        if release is None and share.release:
            yield f"developers.{name}.release: there is no section release"
        elif release is not None and share.release > release.epsilon:
            yield f"developers.{name}.release: must be at most release.epsilon, not {share.release:g}"
    if release is None:
        return
    if policy.release_name == policy.data_name:
        yield "release.name: must be another than the data set's: what its people lose is counted apart"
    if (release.split == "weights") != bool(release.weights):
        yield 'release.weights: go with split = "weights", and that with them'
        return
    try:
        release.shares  # noqa: B018
    except LocalPrivacyError as error:
        yield f"release.weights: {error}"


def _law_problems(policy: Policy, law: LawSection) -> Iterator[str]:
    name, asks, data = law.preset.name, law.preset.asks, policy.data
    known = sorted({attribute for table in asks.tables for attribute in table.by})
    for attribute in law.columns.keys() - set(known):
        yield f"law.columns.{attribute}: preset {name} has no table by it, but by {', '.join(known) or 'nothing'}"
    if asks.metrics and not set(asks.metrics) & set(policy.audit.metrics):
        yield f"audit.metrics: must have one of {', '.join(asks.metrics)}, without which preset {name} has no tables"
    if asks.measures and not data.attributes:
        yield f"data.groups: is missing: tables of preset {name} are by its columns"
    if len(set(law.by(known))) < len(known):
        yield f"law.columns: two of {', '.join(known)}, by which preset {name} has tables, are one column"
    for column in law.by(known):
        if column not in data.attributes:
            yield f"data.groups: has no {column}, by which preset {name} has a table; law.columns names another column"
    if asks.small is not None and data.least_share > asks.small:
        yield f"data.least_share: must be at most {asks.small:g}, as preset {name} says, not {data.least_share:g}"
