"""What a deployment's noise follows from where it is committed to: no two questions have one noise."""

from __future__ import annotations

import hmac
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from compliance.deployment.committed import Committed, committed
from compliance.deployment.policy.reading import read
from compliance.deployment.policy.schema import Policy
from compliance.ledger.accountant import FREE, Neighbours
from compliance.ledger.entries import Request
from compliance.records.people import Records

EXAMPLE = Path(__file__).parents[3] / "docs" / "example" / "policy.toml"
LABELS, PROTECTED = np.array([0, 1, 1, 0, 1, 0], np.uint8), np.array([1, 1, 0, 0, 1, 0], np.uint8)
ASKED = Request("loans", "alice", "first", b"\x01" * 32, "sp", "laplace", Neighbours.A_FLIP, FREE)
KEY = b"key of a ledger"


def bound(protected: np.ndarray = PROTECTED, key: bytes = KEY, policy: Policy | None = None) -> Committed:
    records = Records(LABELS, protected, ("sp",))
    told = read(EXAMPLE).datasets["loans"] if policy is None else policy
    return committed(told, records, lambda purpose: hmac.digest(key, purpose.encode(), "sha256"))


def noise(of: Committed, asked: Request = ASKED) -> list[float]:
    drawn: list[float] = of.noise_of(asked).laplace(np.zeros(4), 1.0, 2.0**-20).tolist()
    return drawn


def test_the_same_question_has_the_same_noise_and_is_under_the_same_commitment() -> None:
    assert noise(bound()) == noise(bound())
    assert bound() == bound()


OTHERS = {
    "another developer": partial(replace, ASKED, developer="bob"),
    "another id": partial(replace, ASKED, request_id="second"),
    "another question under the id": partial(replace, ASKED, digest=b"\x02" * 32),
    "a name that runs into the id": partial(replace, ASKED, developer="alice/first", request_id=""),
}


def test_no_two_questions_have_one_noise() -> None:
    for other in OTHERS.values():
        assert not set(noise(bound(), other())) & set(noise(bound()))


def test_one_person_of_another_group_is_another_commitment_and_another_noise() -> None:
    """Under a ledger that was begun anew the difference of two answers would tell what has changed."""
    for person in range(len(PROTECTED)):
        flipped = PROTECTED.copy()
        flipped[person] = 1 - flipped[person]
        other = bound(flipped)
        assert other.commitment.root != bound().commitment.root
        assert other.commitment.seed_digest != bound().commitment.seed_digest
        assert not set(noise(other)) & set(noise(bound()))


def test_another_key_hides_otherwise() -> None:
    other = bound(key=b"another key")
    assert other.commitment.root != bound().commitment.root
    assert other.commitment.rows_digest == bound().commitment.rows_digest
