"""What a deployment's noise follows from where it is committed to: no two questions have one noise."""

from __future__ import annotations

import hmac
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

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


POLICY = read(EXAMPLE).datasets["loans"]


def bound(
    protected: np.ndarray = PROTECTED, key: bytes = KEY, policy: Policy = POLICY, begun: bytes = b"ledger"
) -> Committed:
    records = Records(LABELS, protected, ("sp",))
    return committed(policy, records, lambda purpose: hmac.digest(key, purpose.encode(), "sha256"), begun)


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


def changed(value: Any) -> Any:
    """Another value than this, which may be none that a policy can have."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int | float):
        return value + 1
    return f"{value} and more"


NO_NOISE = {"deployment", "budget", "developers", "release", "tables", "sealed", "law"}
"""On what the noise of an audit does not depend: where it is served, who asks for how much, and what else there is."""


def test_every_term_of_which_noise_depends_is_another_noise() -> None:
    """The difference of two answers with one noise and two scales would tell the gap."""
    assert Policy.model_fields.keys() - {"data", "audit"} == NO_NOISE
    seen = [noise(bound())]
    for section in ("data", "audit"):
        part = getattr(POLICY, section)
        for name in type(part).model_fields:
            if (section, name) == ("data", "source"):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of what no policy can have
                other = POLICY.model_copy(
                    update={section: part.model_copy(update={name: changed(getattr(part, name))})}
                )
                seen.append(noise(bound(policy=other)))
    seen.append(noise(bound(begun=b"a ledger that was begun anew")))
    assert len({number for each in seen for number in each}) == 4 * len(seen)
    assert len(seen) > 20


def test_another_key_hides_otherwise() -> None:
    other = bound(key=b"another key")
    assert other.commitment.root != bound().commitment.root
    assert other.commitment.rows_digest == bound().commitment.rows_digest
