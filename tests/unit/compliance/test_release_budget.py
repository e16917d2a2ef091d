"""One budget pays for a release and for queries about the same people, in whatever order and however often."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compliance.answers.audits import AuditCase
from compliance.answers.charging import DEVELOPER
from compliance.answers.releases import ReleaseCase
from compliance.games.release import open_release, open_trained
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2

PEOPLE = 40


def opened(released: float = 3.0, queried: float = 1.0, budget: float = 4.0) -> tuple[ReleaseCase, AuditCase]:
    columns = [game.SensitiveColumn(place=place, domain=2, share=0.5, groups=place == 1) for place in (0, 1)]
    deal = game.ComplianceDeal(
        deal_id="deal",
        noise_seeded=True,
        seed=b"s" * 32,
        release=game.ReleaseCards(
            audits=game.AuditCards(mechanism="counts"),
            terms=game.ReleaseTerms(
                protocol="grr",
                columns=columns,
                sizes=[2],
                epsilon=released,
                budget=budget,
                queried=game.QueryTerms(queries=10, mechanism="counts", epsilon=queried),
            ),
        ),
    )
    rng = np.random.default_rng(1)
    cards: dict[str, Any] = {"release": rng.integers(0, 2, (PEOPLE, 2), dtype=np.uint8)}
    cards |= {"labels": np.arange(4, dtype=np.uint8) % 2, "sensitive": np.zeros((4, 2), np.uint8)}
    case = open_release(deal, cards | {"features": np.zeros((4, 1))})
    trained = open_trained(deal, case.release)
    assert trained is not None
    return case, trained


def release(case: ReleaseCase, epsilon: float, name: str = "release-1") -> None:
    case.release.answer(DEVELOPER, name, name.encode(), epsilon)


def ask(case: AuditCase, epsilon: float, name: str = "metric-1") -> None:
    rows = np.random.default_rng(2).integers(0, 2, (10, PEOPLE)).astype(np.float64)
    case.answer(DEVELOPER, name, name.encode(), "sp", rows, epsilon)


@pytest.mark.parametrize("release_first", [True, False])
def test_both_together_use_the_budget_up_whichever_comes_first(release_first: bool) -> None:
    case, trained = opened()
    if release_first:
        release(case, 3.0)
    ask(trained, 1.0)
    if not release_first:
        release(case, 3.0)
    assert case.release.spent == 4.0
    # Repeats cost nothing and are answered still; the least of anything new is too much.
    release(case, 3.0)
    ask(trained, 1.0)
    for more in (lambda: release(case, 1e-9, "release-2"), lambda: ask(trained, 1e-9, "metric-2")):
        with pytest.raises(Refusal) as refused:
            more()
        assert refused.value.error.reason == error_pb2.REASON_BUDGET_EXHAUSTED
    assert case.release.spent == 4.0


def test_more_than_the_rest_is_refused_to_either() -> None:
    case, trained = opened()
    release(case, 3.0)
    with pytest.raises(Refusal):
        ask(trained, 1.000001)
    ask(trained, 0.25)
    ask(trained, 0.75, "metric-2")
    assert case.release.spent == 4.0
    case, trained = opened()
    ask(trained, 1.5)
    with pytest.raises(Refusal):
        release(case, 3.0)
    assert case.release.spent == 1.5


def test_what_is_answered_about_people_is_about_their_groups() -> None:
    _, trained = opened()
    ask(trained, 1.0)
    assert trained.exact is not None
    assert trained.exact["metric-1"].shape == (10,)
    assert trained.records.people == PEOPLE
