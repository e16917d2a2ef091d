"""The training game's deals, lines and canaries, and the scenarios that it refuses."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from numpy.typing import NDArray

from adversary.play import NO_GUESS, guess
from compliance.ledger.accountant import Budget, Loss, LossKind, Rule
from developer.training.model import TrainingStep
from developer.training.play import ModelSubmission, flip_multiplier
from fairwall.errors import DataError
from fairwall.laws.noise.gaussian import gaussian_epsilon
from sim.games import lay_out
from sim.games.cards import DealError
from sim.games.submissions import AuditReport
from sim.games.training.canaries import LEVEL, epsilon_refuted, probability
from sim.games.training.deal import TableRows, TrainingDeal, deal
from sim.games.training.trial import TrainingOutcome, record, summarise
from sim.scenarios.sweep import Cell, ScenarioError

PURSE = {"mechanism": "gaussian", "epsilon": 1.0, "delta": 1e-5}


def scenario(**changes: Any) -> dict[str, Any]:
    """A scenario on German Credit; a change is ``section__key``."""
    values: dict[str, Any] = {
        "scenario": {"name": "toy", "game": "training", "seed": 3},
        "data": {"source": "german", "protected": "sex"},
        "training": {"model": "lr"},
    }
    for name, value in changes.items():
        section, _, key = name.partition("__")
        if key:
            values.setdefault(section, {})[key] = value
        else:
            values[section] = value
    return values


def cell(**changes: Any) -> Cell[Any]:
    return lay_out(scenario(**changes), "toy.toml").cells[0]


def dealt(trial: int = 0, secret: bytes | None = None, **changes: Any) -> TrainingDeal:
    return deal(cell(**changes), trial, "deal-1", *(() if secret is None else (secret,)))


# Deals.


def rows_of(*hands: TableRows) -> list[bytes]:
    return [row.tobytes() for hand in hands for row in np.column_stack([hand.features, hand.protected])]


def test_nobody_is_in_two_hands_and_canaries_are_mislabelled_and_inside_as_the_coins_say() -> None:
    for changes in [
        {},
        {"training__canaries": 60},
        {"data__people": 300, "data__disadvantaged_share": 0.1, "training__canaries": 40, "data__public_share": 0.25},
    ]:
        table = dealt(**changes)
        everybody = dict(zip(rows_of(all_rows()), all_rows().labels.tolist(), strict=True))
        assert len(everybody) == 1000, "rows can be told apart"
        people, test, canaries = (rows_of(hand) for hand in (table.people, table.test, table.canaries))
        inside = [row for row, bit in zip(canaries, table.inside, strict=True) if bit]
        assert len({*people, *test}) == len(people) + len(test)
        assert set(canaries) & set(people) == set(inside)
        assert not set(canaries) & set(test)
        for hand, rows in ((table.people, people), (table.test, test), (table.canaries, canaries)):
            flipped = [everybody[row] != label for row, label in zip(rows, hand.labels.tolist(), strict=True)]
            assert flipped == [row in set(canaries) for row in rows]
        # The public ones come first, and no canary is among them.
        assert table.public_rows == round(changes.get("data__public_share", 0) * (len(people) - len(inside)))
        assert not set(people[: table.public_rows]) & set(canaries)


@cache
def all_rows() -> TableRows:
    whole = dealt()
    return TableRows(
        *(
            np.concatenate([getattr(whole.people, name), getattr(whole.test, name)])
            for name in ("features", "labels", "protected")
        )
    )


def same(a: TrainingDeal, b: TrainingDeal) -> dict[str, bool]:
    """What of two deals is the same."""
    hands = {
        f"{hand}.{name}": np.array_equal(getattr(getattr(a, hand), name), getattr(getattr(b, hand), name))
        for hand in ("people", "test", "canaries")
        for name in ("features", "labels", "protected")
    }
    seeds = a.compliance is not None and b.compliance is not None and a.compliance.seed == b.compliance.seed
    return {**hands, "inside": np.array_equal(a.inside, b.inside), "seed": a.seed == b.seed, "noise": seeds}


def test_the_split_does_not_depend_on_the_model_but_on_the_trial_and_on_the_secret() -> None:
    asked = {"training__canaries": 40, "training__model": "fair-lr", "compliance": PURSE}
    first = dealt(**asked)
    others = ({"training__model": "pflr*", "training__epsilon": 5.0}, {"compliance": {**PURSE, "epsilon": 3.0}})
    for other in ({}, *others, {"training__strength": 4.0}):
        assert all(same(first, dealt(**{**asked, **other})).values())
    held = same(first, dealt(**{**asked, "training__holds_protected": True}))
    assert [name for name, is_same in held.items() if not is_same] == ["noise"], "nobody is asked"
    for other in (dealt(trial=1, **asked), dealt(secret=b"k" * 32, **asked)):
        assert not any(same(first, other).values())
    assert all(same(dealt(secret=b"k" * 32, **asked), dealt(secret=b"k" * 32, **asked)).values())


def test_compliance_is_dealt_the_groups_of_those_who_are_trained_on_where_the_developer_asks_for_them() -> None:
    told = dealt(training__model="fair-lr", training__canaries=30, compliance=PURSE)
    assert told.compliance is not None
    assert np.array_equal(told.compliance.protected, told.people.protected)
    assert told.compliance.statistics is not None
    assert len(told.compliance.labels) == 0
    assert dealt(training__model="fair-lr", training__holds_protected=True).compliance is None
    assert dealt(compliance=PURSE).compliance is None, "who is not fair asks nothing"


def test_so_many_are_disadvantaged() -> None:
    for people, share, few in [(200, 0.1, 20), (100, 0.25, 25), (600, 0.3, 180)]:
        table = dealt(data__people=people, data__disadvantaged_share=share)
        assert ((table.people.protected == 0).sum(), len(table.people.labels)) == (few, people)


BAD_DEALS = {
    "more people than there are": ({"data__people": 10_000}, "data.people: german has 800 people left to train on"),
    "more canaries than there are": ({"training__canaries": 801}, "training.canaries: german has 800 people to train"),
    "people beside canaries": ({"training__canaries": 700, "data__people": 101}, "data.people: german has 100 people"),
    "one person": ({"data__people": 1}, "data.source: german has too few rows: the people trained on are all of one"),
    "nobody tested on": ({"data__test_share": 1e-4}, "data.source: german has too few rows: the people tested on"),
    "a group too small": (
        {"data__people": 700, "data__disadvantaged_share": 0.9},
        "data.disadvantaged_share: of 700 people 630 would be disadvantaged, and german has",
    ),
    "no group": ({"data__people": 100, "data__disadvantaged_share": 1e-3}, "data.disadvantaged_share: of 100 people 0"),
    "no advantaged": (
        {"data__people": 100, "data__disadvantaged_share": 0.999},
        "data.disadvantaged_share: of 100 people 0 would be advantaged",
    ),
    "a group that is not there": ({"data__advantaged": "martian"}, "german: column 'sex' has no value 'martian'"),
}


def test_what_cannot_be_dealt_is_refused_in_one_line() -> None:
    for changes, words in BAD_DEALS.values():
        with pytest.raises((DealError, DataError)) as refused:
            dealt(**changes)
        assert str(refused.value).startswith(words)
        assert "\n" not in str(refused.value)


def test_a_table_of_one_label_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("g,x,y\n" + "".join(f"{n % 2},{n},1\n" for n in range(50)))
    with pytest.raises((DealError, DataError)) as refused:
        dealt(data={"source": str(path), "protected": "g", "advantaged": "1", "label": "y", "positive": "1"})
    assert "\n" not in str(refused.value)


# Lines.


def outcome(decisions: Any, guesses: Any = None, **more: Any) -> TrainingOutcome:
    table = np.array(decisions, dtype=np.uint8)
    said = {"epsilon": math.inf, "delta": 0.0, **more}
    told = None if guesses is None else np.array(guesses, dtype=np.uint8)
    return TrainingOutcome(ModelSubmission(np.zeros(table.shape[1], np.float32), table, **said), told, None)


def line_of(table: TrainingDeal, came: TrainingOutcome) -> dict[str, Any]:
    (line,) = record(cell(), 0, table, came)
    return dict(line)


def small(labels: Any, protected: Any, inside: Any = ()) -> TrainingDeal:
    """A deal whose test rows are these."""
    test = TableRows(np.zeros((len(labels), 1)), np.array(labels, np.uint8), np.array(protected, np.uint8))
    return replace(dealt(), test=test, inside=np.array(inside, np.uint8))


# Two disadvantaged, four advantaged; strata of 1, 1, 3 and 1.
LABELS, PROTECTED = [0, 1, 0, 0, 0, 1], [0, 0, 1, 1, 1, 1]


def test_a_line_scores_each_group_and_stratum_by_itself() -> None:
    line = line_of(small(LABELS, PROTECTED), outcome([[0, 1, 1, 1, 0, 1]]))
    assert line["accuracy"] == pytest.approx(4 / 6)
    assert line["positives"] == [0.5, 0.75]
    assert line["gap"] == 0.25
    assert line["accuracies"] == [1.0, 0.5]
    assert line["false_positives"] == [0.0, pytest.approx(2 / 3)]
    assert line["true_positives"] == [1.0, 1.0]
    assert line["promised"] == "inf"
    assert (line["test_people"], line["people"]) == (6, 800)
    # A stratum without anybody has no rate.
    assert line_of(small([0, 0, 0, 0, 0, 1], PROTECTED), outcome([[0] * 6]))["true_positives"] == [None, 0.0]


def test_the_gap_is_the_advantaged_groups_rate_less_the_others() -> None:
    for favoured, gap in ((1, 1.0), (0, -1.0)):
        decided = (np.array(PROTECTED) == favoured).astype(int).tolist()
        assert line_of(small(LABELS, PROTECTED), outcome([decided]))["gap"] == gap


def test_decisions_by_group_pick_the_rows_own_group() -> None:
    table = small(LABELS, PROTECTED)
    # Right for whoever is of the group that the row of decisions is for, and wrong for all others.
    by_group = [np.where(np.array(PROTECTED) == group, LABELS, 1 - np.array(LABELS)).tolist() for group in (0, 1)]
    assert line_of(table, outcome(by_group))["accuracy"] == 1
    assert line_of(table, outcome(by_group[::-1]))["accuracy"] == 0


def test_guesses_are_counted_where_there_are_any() -> None:
    table = small(LABELS, PROTECTED, inside=[1, 1, 0, 0, 0])
    line = line_of(table, outcome([[0] * 6], guesses=[1, 0, NO_GUESS, 0, 1]))
    assert (line["canaries"], line["guessed"], line["right"]) == (5, 4, 2)
    assert "canaries" not in line_of(table, outcome([[0] * 6]))


def test_what_is_infinite_is_written_as_files_have_it() -> None:
    steps = (TrainingStep("a step", math.inf, 0.0),)
    came = outcome([[0] * 6], group_epsilons=(1.0, math.inf), steps=steps)
    came = replace(came, report=AuditReport((), math.inf))
    line = line_of(small(LABELS, PROTECTED), came)
    assert line["promised_groups"] == [1.0, "inf"]
    assert line["steps"] == [["a step", "inf", 0.0, "everybody"]]
    assert "Infinity" not in json.dumps([line, summarise({}, [line])], allow_nan=False)


def test_told_rates_are_held_against_the_people_trained_on_and_those_against_the_table() -> None:
    table = dealt(training__model="rates", compliance=PURSE)
    exact = [float(table.people.labels[table.people.protected == group].mean()) for group in (0, 1)]
    line = line_of(table, outcome(np.zeros((1, 0)), rates=(exact[0] + 0.1, exact[1] - 0.2)))
    assert line["noise_errors"] == [pytest.approx(0.1), pytest.approx(-0.2)]
    assert line["sampling_errors"] == [exact[group] - table.base_rates[group] for group in (0, 1)]
    assert "accuracy" not in line
    cells = summarise({}, [line, {**line, "noise_errors": [0.3, 0.0]}])
    assert cells["noise_errors"] == [pytest.approx(math.sqrt(0.05)), pytest.approx(math.sqrt(0.02))]


def test_a_cell_is_the_mean_of_its_lines_and_counts_all_their_canaries() -> None:
    table = small(LABELS, PROTECTED, inside=[1, 1, 0, 0, 0])
    came = [outcome([[0, 1, 1, 1, 0, 1]], [1, 1, 0, 0, NO_GUESS]), outcome([[1] * 6], [1, 0, 0, 1, NO_GUESS])]
    lines = [line_of(table, one) for one in came]
    summary = summarise({"training.model": "lr"}, lines)
    assert summary["accuracy"] == pytest.approx((4 / 6 + 2 / 6) / 2)
    assert summary["accuracy_sd"] == pytest.approx(np.std([4 / 6, 2 / 6], ddof=1))
    assert (summary["gap"], summary["trials"]) == (0.125, 2)
    assert summary["positives"] == [0.75, 0.875]
    assert (summary["canaries"], summary["guessed"], summary["right"]) == (10, 8, 6)
    assert summary["epsilon_refuted"] == epsilon_refuted(10, 8, 6, 0.0)


# Canaries.


def test_the_adversary_guesses_by_how_well_the_label_is_fitted() -> None:
    for scores, labels, guesses in [
        ([0.9, 0.1, 0.5], [1, 1, 1], [1, 0, 2]),
        ([0.9, 0.1, 0.5], [0, 0, 0], [0, 1, 2]),
        ([0.9, 0.8, 0.7, 0.6, 0.5, 0.4], [1] * 6, [1, 1, 2, 2, 0, 0]),
        ([0.2], [1], [1]),
        ([], [], []),
    ]:
        assert guess(np.array(scores, dtype=float), np.array(labels, dtype=np.uint8)).tolist() == guesses


def enumerated(canaries: int, guessed: int, right: int, epsilon: float, delta: float) -> float:
    """Steinke, Nasr and Jagielski's bound, each sequence of right and wrong guesses by itself."""
    sure = 1 / (1 + math.exp(-epsilon))
    law = [0.0] * (guessed + 1)
    for bits in np.ndindex(*(2,) * guessed):
        law[sum(bits)] += math.prod(sure if bit else 1 - sure for bit in bits)
    beyond = max((2 / i * sum(law[max(right - i, 0) : right]) for i in range(1, canaries + 1)), default=0.0)
    return min(1.0, sum(law[right:]) + canaries * delta * beyond)


def test_the_probability_is_the_theorems_for_every_small_number_of_guesses() -> None:
    for delta in [0.0, 0.03]:
        for canaries in range(1, 7):
            for guessed in range(canaries + 1):
                for right in range(guessed + 1):
                    for epsilon in (0.0, 0.4, 2.0):
                        wanted = enumerated(canaries, guessed, right, epsilon, delta)
                        found = probability(canaries, guessed, right, epsilon, delta)
                        assert found == pytest.approx(wanted, abs=1e-12), (canaries, guessed, right, epsilon)


def test_all_guesses_right_refute_what_one_can_compute_by_hand() -> None:
    # (e^eps / (1 + e^eps))^r = 5%: of 10 guesses sure = 0.741..., of 100 sure = 0.970....
    for guessed in (5, 10, 100):
        sure = LEVEL ** (1 / guessed)
        assert epsilon_refuted(guessed, guessed, guessed, 0.0) == pytest.approx(math.log(sure / (1 - sure)), abs=1e-6)
    # Four right guesses are 1/16, and 1/16 is not rare enough.
    assert epsilon_refuted(4, 4, 4, 0.0) == 0
    assert epsilon_refuted(100, 100, 50, 0.0) == 0
    assert epsilon_refuted(100, 0, 0, 1e-5) == 0
    assert epsilon_refuted(5, 5, 5, 0.5) == 0, "a delta that large explains it"
    with pytest.raises(ValueError, match="no more right guesses"):
        epsilon_refuted(3, 4, 4, 0.0)


def test_what_is_refuted_grows_with_right_guesses_and_falls_with_delta() -> None:
    found = [[epsilon_refuted(60, 40, right, delta) for right in range(0, 41, 4)] for delta in (0.0, 1e-4, 1e-2)]
    assert all(sorted(row) == row for row in found[:2])
    assert all(a >= b for lines in pairwise(found) for a, b in zip(*lines, strict=True))


@pytest.mark.parametrize(("epsilon", "guessed"), [(1.0, 7), (0.2, 40)])
def test_randomised_response_is_refuted_its_own_epsilon_in_one_run_of_twenty_at_most(
    epsilon: float, guessed: int
) -> None:
    # Exactly: the number of right ones is binomial. The 5% are the method's, no test's.
    sure = 1 / (1 + math.exp(-epsilon))
    law = scipy.stats.binom(guessed, sure).pmf(np.arange(guessed + 1))
    refuted = np.array([epsilon_refuted(guessed, guessed, right, 0.0) for right in range(guessed + 1)])
    false_alarms = float(law[refuted > epsilon].sum())
    assert false_alarms <= LEVEL
    # And it is sharp: nearly so many, as far as whole numbers allow.
    assert false_alarms + law[refuted <= epsilon].max() > LEVEL


def test_a_world_without_privacy_refutes_a_large_epsilon() -> None:
    for canaries, least in ((30, 1.8), (300, 4.1), (3000, 6.4)):
        guessed = 2 * canaries // 3
        assert epsilon_refuted(canaries, guessed, guessed, 1e-5) > least


class TooKeen:
    """Broken: it takes each guess for a fair coin's, whatever epsilon allows."""

    @staticmethod
    def refuted(guessed: int, right: int) -> float:
        share = right / max(guessed, 1)
        return max(0.0, math.log(share / (1 - share))) if 0 < share < 1 else 0.0


def test_an_audit_that_leaves_chance_out_raises_false_alarms() -> None:
    sure, guessed = 1 / (1 + math.exp(-1.0)), 40
    law: NDArray[np.float64] = scipy.stats.binom(guessed, sure).pmf(np.arange(guessed + 1))
    refuted = np.array([TooKeen.refuted(guessed, right) for right in range(guessed + 1)])
    assert law[refuted > 1.0].sum() > 0.3


# Scenarios.

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no such model": ({"training__model": "svm"}, "training.model: must be one of s-nn, f-nn, "),
    "epsilon 0": ({"training__epsilon": 0}, "training.epsilon: must be a positive number"),
    "epsilon below 0": ({"training__epsilon": -1.0}, "training.epsilon: must be a positive number"),
    "epsilon NaN": ({"training__epsilon": math.nan}, "training.epsilon: must be a positive number"),
    "no epsilon": (
        {"training__model": "priv-lr", "training__epsilon": "inf"},
        "training.epsilon: a private model needs",
    ),
    "too much epsilon": (
        {"training__model": "dp-nn", "training__epsilon": 1e6},
        "training.epsilon: a private network's",
    ),
    "delta 0": ({"training__model": "dp-nn", "training__delta": 0.0}, "training.delta: a private network needs"),
    "delta 1": ({"training__delta": 1.0}, "training.delta: must be less than 1"),
    "strength below 0": ({"training__strength": -1.0}, "training.strength: must be greater than or equal to 0"),
    "strength NaN": ({"training__strength": math.nan}, "training.strength: must be a finite number"),
    "share 0": ({"training__statistics_share": 0.0}, "training.statistics_share: must be greater than 0"),
    "steps below 0": ({"training__steps": -1}, "training.steps: must be greater than or equal to 0"),
    "canaries of rates": (
        {"training__model": "rates", "training__canaries": 3, "compliance": PURSE},
        "training.canaries: are about a model, and rates are none",
    ),
    "too many canaries": ({"training__canaries": 10_001}, "training.canaries: must be less than or equal to 10000"),
    "no purse": ({"training__model": "fair-lr"}, 'compliance.mechanism: sums by group are told with "gaussian" noise'),
    "another mechanism": (
        {"training__model": "f-nn", "compliance": {**PURSE, "mechanism": "laplace"}},
        'compliance.mechanism: sums by group are told with "gaussian" noise',
    ),
    **{
        f"a purse of {epsilon}": (
            {"training__model": "rates", "compliance": {**PURSE, "epsilon": epsilon}},
            "compliance.epsilon: must be from 0.01 to 700",
        )
        for epsilon in ("inf", 0.001, 1000.0)
    },
    **{
        f"a purse's delta of {delta}": (
            {"training__model": "rates", "compliance": {**PURSE, "delta": delta}},
            "compliance.delta: must be from 1e-09 to 0.01",
        )
        for delta in (0.0, 1e-12, 0.5)
    },
    "sums for pure epsilon": (
        {"training__model": "pflr*", "training__delta": 0.0, "compliance": PURSE},
        "training.delta: must be above 0 where sums by group are told",
    ),
    **{
        f"sums beyond the promise of {model}": (
            {"training__model": model, "compliance": PURSE},
            "training.epsilon: is 0.1, and sums by group at compliance.epsilon = 1 cost each record 0.",
        )
        for model in ("pflr*", "dpf-nn")
    },
    "a metric": (
        {"training__model": "fair-lr", "compliance": {**PURSE, "metric": "eo"}},
        "compliance.metric: is about audits",
    ),
    "made people": (
        {"data": {"source": "synthetic"}},
        "data.source: synthetic people have no features to learn from",
    ),
    "roles of the case study": (
        {"data": {"source": "case-study", "protected": "sex"}},
        "data.protected: the roles of case-study are known",
    ),
    "a share of 1": ({"data__disadvantaged_share": 1.0}, "data.disadvantaged_share: must be less than 1"),
    "all public": ({"data__public_share": 1.0}, "data.public_share: must be less than 1"),
    "nobody to train on": ({"data__test_share": 1.0}, "data.test_share: must be less than 1"),
    "a table of another game": ({"adversary": {"attack": ["loss-test"]}}, "adversary: is a table of the reveal game"),
}


def test_what_cannot_be_played_is_refused_in_one_line() -> None:
    for changes, words in BAD.values():
        with pytest.raises(ScenarioError) as refused:
            cell(**changes)
        assert str(refused.value).startswith(f"toy.toml: {words}"), refused.value
        assert "\n" not in str(refused.value)


def test_a_purse_pays_for_what_it_is_shared_out_to_and_hardly_more() -> None:
    for epsilon, delta in [(0.01, 1e-9), (1.0, 1e-5), (700.0, 0.01)]:
        scenario = cell(training__model="rates", compliance={**PURSE, "epsilon": epsilon, "delta": delta}).scenario
        assert scenario.told
        for times in (1, 2, 11):
            multiplier = flip_multiplier(epsilon, delta, times)
            spent = Budget(epsilon, delta, Rule.TIGHT).spent(
                {Loss(gaussian_epsilon(multiplier, delta), delta, LossKind.GAUSSIAN, multiplier): times}
            )
            assert 0.998 * epsilon < spent <= epsilon


def test_who_is_dealt_in_follows_from_the_model() -> None:
    for model, fair in (
        ("s-nn", 0),
        ("dp-nn", 0),
        ("lr", 0),
        ("priv-lr", 0),
        ("f-nn", 1),
        ("fair-lr", 1),
        ("rates", 1),
    ):
        played = cell(training__model=model, training__epsilon=10.0, compliance=PURSE).scenario
        assert played.told == bool(fair)
        assert not cell(training__model=model, training__epsilon=10.0, training__holds_protected=True).scenario.told
        assert ("SubmitAuditReport" in played.steps()) == bool(fair)
    assert cell(training__canaries=2).scenario.steps() == ("SubmitModel", "SubmitCanaries")
