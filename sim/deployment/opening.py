"""Requests that a regulator opens: recomputed from what compliance committed to, and compared with its answers.

The regulator works where compliance's data and keys are, with what the developer kept (`fairwall.client.kept`). The
developer gets the verdict, and nothing else.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from compliance.answers.audit_service import candidates_in
from compliance.answers.audits import AuditCase, values_of
from compliance.answers.charging import game_ledger
from compliance.deployment.accounts import case_of
from compliance.deployment.committed import committed
from compliance.deployment.policy.loading import Data, load_all
from compliance.deployment.policy.reading import read
from compliance.ledger.accountant import Budget, Neighbours
from compliance.ledger.entries import LedgerEntry
from compliance.ledger.head import derived, load_key
from compliance.ledger.place import inspect
from fairwall.client.kept import Kept, KeptAnswer
from fairwall.errors import UserError
from fairwall.wire.audits import audit_digest


class OpeningError(UserError):
    """A request that cannot be opened. Its text is one line, and tells nothing of who is in which group."""


@dataclass(frozen=True)
class OpenedRequests:
    """The opened requests of the ``of`` that a developer kept, and faults by request id, "" for the commitment's."""

    opened: tuple[str, ...]
    of: int
    wrong: dict[str, str]


def open_requests(policy_file: Path, folder: Path, openings: int | None) -> OpenedRequests:
    """Open randomly chosen requests, which nobody can foresee, or all, of the folder that the developer kept."""
    kept = Kept.read(folder)
    if openings is not None and openings > len(kept.request_ids):
        raise OpeningError(f"--openings: the developer kept {len(kept.request_ids)} requests, not {openings}")
    data = _data_of(policy_file, kept)
    place = data.policy.deployment
    key_file = place.credentials / "seal.key"
    if not key_file.exists():
        raise OpeningError(f"{key_file}: no such file: it is the key that the service commits by")
    derive = partial(derived, load_key(key_file))
    chains = (chain for chain in inspect(place.ledger) if chain.chain in ("", data.policy.data_name))
    begun = next((chain.genesis for chain in chains), b"")
    bound = committed(data.policy, data.first, derive, begun)
    if bound.terms_digest != kept.terms_digest:
        raise OpeningError(f"{policy_file}: its data and audit sections are not those that were committed to")
    if bound.commitment != kept.commitment:
        return OpenedRequests(
            (), len(kept.request_ids), {"": "it is to other people, another group of somebody, another key or ledger"}
        )
    names = sorted(kept.request_ids)
    chosen = names if openings is None else sorted(secrets.SystemRandom().sample(names, openings))
    answered = _answered(data, kept.developer)
    case = case_of(data, game_ledger(data.policy.data_name, Neighbours.A_FLIP, Budget(1.0)), derive, begun)
    wrong = {name: found for name in chosen for found in _wrong(case, answered.get(name), kept.asked(name))}
    return OpenedRequests(tuple(chosen), len(names), wrong)


def _data_of(policy_file: Path, kept: Kept) -> Data:
    policies = read(policy_file, None)
    found = [each for each in load_all(policies) if each.policy.data_name == kept.data]
    if not found:
        raise OpeningError(f"{policy_file}: it has no data set {kept.data!r}")
    if not found[0].policy.audit.committed:
        raise OpeningError(f"{policy_file}: audit.committed is not set: nothing was committed to")
    return found[0]


_Answered = tuple[LedgerEntry, tuple[bytes, ...]]
"""An answer, and the facts that its developer had bought before."""


def _answered(data: Data, developer: str) -> dict[str, _Answered]:
    found, bought = dict[str, _Answered](), tuple[bytes, ...]()
    for chain in inspect(data.policy.deployment.ledger):
        for record in chain.records:
            if not isinstance(record, LedgerEntry):
                continue
            asked = record.request
            if (asked.dataset, asked.developer) == (data.policy.data_name, developer):
                found[asked.request_id] = record, bought
                bought += (record.reply.facts,) if record.reply.facts else ()
    return found


def _wrong(case: AuditCase, answered: _Answered | None, request: KeptAnswer) -> Iterator[str]:
    if answered is None:
        yield "the ledger does not have it"
        return
    entry, bought = answered
    if entry.request.digest != audit_digest(request.header, request.predictions):
        yield "the ledger has another question under its id"
    elif not np.array_equal(values_of(entry), request.gaps):
        yield "the ledger has another answer than the developer got"
    else:
        predictions = request.predictions.astype(np.float64)
        if case.rows is not None:
            predictions = case.rows.of_records(predictions, by_ids=bool(request.header.rows_digest))
        if not case.again(entry, predictions, request.header.epsilon, bought, candidates_in(request.header)):
            yield "it was answered otherwise than by the people and the noise that were committed to"
