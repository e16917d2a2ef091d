"""What `fairwall verify` says that batches cost is what a case charges for them, whichever mechanism answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from compliance.answers.audits import AuditCase, game_case, values_of
from compliance.answers.charging import DEVELOPER
from compliance.answers.exposure import limited
from compliance.ledger.accountant import Budget
from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.mechanism import Mechanism
from compliance.mechanisms.noise_on_gaps import bounded
from compliance.records.people import Records
from fairwall.compliance.v1.audit_service_pb2 import AuditResponse
from fairwall.laws.privacy.exposure import Limit
from fairwall.rpc.arrays import to_message
from fairwall.wire.metrics import number_of
from sim.transcripts.messages import RecordedBatch
from sim.verify.charges import charges

RNG = np.random.default_rng(16)
SCORES, LABELS, PROTECTED = RNG.random(600), RNG.integers(0, 2, 600, np.uint8), RNG.integers(0, 2, 600, np.uint8)
ALIKE = (np.linspace(0.3, 0.7, 25)[:, np.newaxis] < SCORES).astype(np.float64)
"""Decisions by thresholds of one score: few cells tell nearly all of them."""
NEARLY = (np.linspace(0.31, 0.69, 15)[:, np.newaxis] < SCORES).astype(np.float64)
OTHERS = RNG.integers(0, 2, (25, 600)).astype(np.float64)

ASKED = [
    *(("sp", ALIKE, 1.0), ("sp", NEARLY, 1.0), ("eo", ALIKE, 0.5), ("sp", OTHERS, 1.0), ("sp", OTHERS, 1.0)),
    *(("sp", ALIKE, 1.5), ("sp", NEARLY, 6.0), ("sp", OTHERS, 5.0), ("eo", OTHERS, 7.0), ("sp", NEARLY, 0.1)),
]
"""Metric, predictions and epsilon of batches, one after the other."""


def case_of(mechanism: Mechanism) -> AuditCase:
    records = Records(LABELS, PROTECTED, ("sp", "eo"))
    return game_case("deal-1", records, mechanism, Budget(1e3), 0.0, 100, seed=bytes(32))


def settled(
    case: AuditCase, asked: Sequence[tuple[str, NDArray[np.float64], float]]
) -> list[tuple[RecordedBatch, float]]:
    """Ask a case, one batch after the other; what was asked, and what was charged."""
    batches = []
    for number, (metric, predictions, epsilon) in enumerate(asked):
        entry = case.answer(DEVELOPER, f"metric-{number}", b"", metric, predictions, epsilon)
        charged = entry.request.loss.epsilon
        answer = AuditResponse(gaps=to_message(values_of(entry)), epsilon_charged=charged)
        place = 2 * number
        batch = RecordedBatch(
            f"metric-{number}",
            number_of(metric),
            epsilon,
            len(predictions),
            predictions,
            answer,
            True,
            place,
            place + 1,
        )
        batches.append((batch, charged))
    return batches


def told(case: AuditCase, batches: Sequence[tuple[RecordedBatch, float]]) -> list[float | None]:
    return [None if loss is None else loss.epsilon for loss in charges(case, batches)]


CHOSEN = MECHANISMS["recommended"]
SPENT, MOST = pytest.approx(1.5 / math.sqrt(2)), pytest.approx(8 * math.log(1.5) / 2)
"""What is spent of larger epsilons: beside what was asked for, and in steps from where the limit binds nothing."""
PLAYED = {
    "randomized-response": (MECHANISMS["randomized-response"], [1.0, 0, 0, 0, 0, 1.5, 6.0, 0, 7.0, 0]),
    "cells": (MECHANISMS["cells"], [1.0, 0, 0, 0, 0, 1.5, 6.0, 0, 7.0, 0]),
    "cells, clamped": (bounded(MECHANISMS["cells"], "clamp"), [1.0, 0, 0, 0, 0, 1.5, 6.0, 0, 7.0, 0]),
    "cells within a limit": (limited(MECHANISMS["cells"], Limit(0.6)), [1.0, 0, 0, 0, 0, 1.5, 6.0, 0, 7.0, 0]),
    "recommended": (CHOSEN, [1.0, 0, 0, 1.0, 0, 1.5, 6.0, 5.0, 7.0, 0]),
    "recommended within a limit": (limited(CHOSEN, Limit(0.6)), [1.0, 0, 0, 1.0, 1.0, SPENT, MOST, MOST, 0, 0]),
    "laplace": (MECHANISMS["laplace"], [epsilon for _, _, epsilon in ASKED]),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", PLAYED)
def test_what_a_case_charges_is_what_its_batches_cost(name: str) -> None:
    mechanism, costs = PLAYED[name]
    batches = settled(case_of(mechanism), ASKED)
    assert [charged for _, charged in batches] == costs
    # Of people of whom the other half is disadvantaged, and of other noise: what is free is public.
    anybody = replace(case_of(mechanism), records=Records(LABELS, 1 - PROTECTED, ("sp", "eo")), seed=b"other")
    assert told(anybody, batches) == costs
    # Twins that give all away, and that charge for everything, are told what it costs all the same.
    assert told(anybody, [(batch, 0.0) for batch, _ in batches]) == costs
    assert told(anybody, [(batch, batch.epsilon) for batch, _ in batches]) == costs


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["randomized-response", "cells", "recommended"])
def test_of_two_batches_at_once_both_may_be_charged(name: str) -> None:
    case = case_of(MECHANISMS[name])
    first, second = (batch for batch, _ in settled(case_of(MECHANISMS[name]), ASKED[:2]))
    meanwhile = replace(second, asked=first.answered - 1)
    assert told(case, [(first, 1.0), (meanwhile, 1.0)]) == [1.0, 1.0]
    assert told(case, [(first, 1.0), (meanwhile, 0.0)]) == [1.0, 0.0]


def test_what_follows_from_predictions_that_are_not_there_is_not_told() -> None:
    batches = settled(case_of(MECHANISMS["cells"]), ASKED[:3])
    gone = [(replace(batch, predictions=None), charged) for batch, charged in batches]
    case = case_of(MECHANISMS["cells"])
    assert told(case, [gone[0], *batches[1:]]) == [1.0, None, None]
    assert told(case, [batches[0], gone[1], batches[2]]) == [1.0, None, None]
    assert told(case_of(MECHANISMS["laplace"]), gone) == [1.0, 1.0, 0.5]
