"""What a mechanism takes for the sensitivity is never below what one flip does to an audit's answer."""

from __future__ import annotations

import gc
import itertools
import weakref

import numpy as np
import pytest

from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.mechanism import NO_FACTS, Question, chosen
from compliance.noise.sampling import Seeded
from compliance.records.people import Records, RecordsError
from fairwall.laws.metric import METRICS

FOUR = list(itertools.product((0, 1), repeat=4))
# Equalized odds needs three people of each label.
SIX = [(1, 1, 1, 0, 0, 0)]


def question(metric: str, labels: tuple[int, ...], protected: tuple[int, ...]) -> Question | None:
    try:
        records = Records(np.array(labels, np.uint8), np.array(protected, np.uint8), (metric,))
    except RecordsError:  # refused when they load, before anybody asks
        return None
    decisions = np.array(list(itertools.product((0.0, 1.0), repeat=len(labels))))
    return Question(metric, decisions, records)


def test_what_a_question_says_of_itself_names_nobodys_group() -> None:
    one, other = (question("sp", (0, 1, 0, 1), protected) for protected in ((0, 0, 1, 1), (0, 1, 1, 1)))
    assert repr(one) == repr(other)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["cells", "recommended"])
def test_protected_records_are_not_kept_once_a_question_is_answered(name: str) -> None:
    generator, mechanism = np.random.default_rng(1), MECHANISMS[name]
    records = Records(np.ones(60, np.uint8), np.arange(60, dtype=np.uint8) % 2, ("sp",))
    asked = Question("sp", generator.random((3, 60)), records)
    chosen(mechanism, "sp", 60, 3, 1.0, 0.0, asked)
    bought = mechanism.release(asked, NO_FACTS, 1.0, 0.0, Seeded(generator)).facts
    mechanism.release(asked, bought, 1.0, 0.0, Seeded(generator))
    question_kept, records_kept = weakref.ref(asked), weakref.ref(records)
    del asked, records
    gc.collect()
    assert question_kept() is None
    assert records_kept() is None


@pytest.mark.few(4)
@pytest.mark.parametrize("metric", [name for name, metric in METRICS.items() if metric.bounded])
def test_no_flip_moves_an_answer_by_more_than_the_sensitivities_say(metric: str) -> None:
    checked = 0
    for labels in SIX if len(METRICS[metric].strata) > 1 else FOUR:
        for protected in itertools.product((0, 1), repeat=len(labels)):
            here = question(metric, labels, protected)
            for person in range(len(labels)):
                flipped = tuple(a ^ (j == person) for j, a in enumerate(protected))
                there = question(metric, labels, flipped)
                if here is None or there is None:
                    continue
                moved = np.abs(here.gaps() - there.gaps()).max()
                assert moved <= here.sensitivities().local + 1e-12
                assert here.sensitivities().local <= here.sensitivities().overall
                checked += 1
    assert checked > 10
