"""The tester's law of releases: sound draws pass, and each way to draw otherwise is convicted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from compliance.mechanisms.local_protocols import PROTOCOLS, seeded
from fairwall.laws.local import LOCAL_LAWS
from sim.conformance import law, local_law
from sim.conformance.calls import ProtocolViolation
from sim.conformance.world import Result

PEOPLE, DOMAINS, SHARES = 3000, (5, 2, 3), (0.5, 0.2, 0.3)
KNOWN = local_law.PROTOCOLS
RNG = np.random.default_rng(5)
VALUES = np.column_stack([RNG.choice(k, PEOPLE) for k in DOMAINS]).astype(np.uint8)

Encodings = list[NDArray[Any]]


def epsilons(whole: float) -> list[float]:
    return [share * whole for share in SHARES]


def drawn(protocol: str, spent: list[float], seed: bytes | None = None) -> Encodings:
    """A sound release; with a seed, one whose columns are drawn from the same random numbers."""
    return [
        PROTOCOLS[protocol].sanitise(own, k, epsilon, seeded(seed or RNG.bytes(32)))
        for own, k, epsilon in zip(VALUES.T, DOMAINS, spent, strict=True)
    ]


def judge(released: Encodings, spent: list[float], protocol: str) -> Result:
    """Demand a release's law; what another one is compared with."""
    parts = local_law.uniform(released, VALUES, spent, protocol)
    local_law.require_law(parts)
    return Result(None, uniform=np.concatenate([part.own for part in parts]), discrete=True)  # type: ignore[arg-type]


def test_the_tester_knows_the_law_of_each_protocol_that_a_policy_may_name() -> None:
    assert set(KNOWN) == {name for name in LOCAL_LAWS if LOCAL_LAWS[name].domain is None}


# A false alarm has a probability of at most 1e-9 a release: below 1e-7 of all these.
@pytest.mark.few(1)
@pytest.mark.parametrize("protocol", KNOWN)
def test_sound_releases_pass_and_one_that_is_the_one_before_does_not(protocol: str) -> None:
    for whole in (0.5, 10.0):
        spent = epsilons(whole)
        first, second = (judge(drawn(protocol, spent), spent, protocol) for _ in range(2))
        law.require_unrelated(first, second)
        with pytest.raises(ProtocolViolation, match="the same noise"):
            law.require_unrelated(first, first)


def bare(protocol: str, spent: list[float]) -> Encodings:
    first = drawn(protocol, spent)
    return [*first[:2], np.eye(3, dtype=first[2].dtype)[VALUES[:, 2]]]


def unsplit(protocol: str, spent: list[float]) -> Encodings:
    return drawn(protocol, [sum(spent)] * 3)


def noisier(protocol: str, spent: list[float]) -> Encodings:
    return drawn(protocol, [epsilon / 2 for epsilon in spent])


def of_others(protocol: str, spent: list[float]) -> Encodings:
    return [np.roll(part, 1, axis=0) for part in drawn(protocol, spent)]


def moved(protocol: str, spent: list[float]) -> Encodings:
    return [np.roll(part, 1, axis=1) for part in drawn(protocol, spent)]


BROKEN: list[Callable[[str, list[float]], Encodings]] = [bare, unsplit, noisier, of_others, moved]


@pytest.mark.few(2)
@pytest.mark.parametrize("protocol", KNOWN)
def test_a_release_of_another_law_is_convicted(protocol: str) -> None:
    spent = epsilons(8.0)
    for draw in BROKEN:
        with pytest.raises(ProtocolViolation):
            judge(draw(protocol, spent), spent, protocol)


def test_columns_that_share_their_draws_are_convicted() -> None:
    spent = epsilons(4.0)
    with pytest.raises(ProtocolViolation, match="columns 1 and 2 are not drawn each by itself"):
        judge(drawn("grr", spent, bytes(32)), spent, "grr")
