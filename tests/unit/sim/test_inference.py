"""The deals of the inference game, and what its lines come to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairwall.game.v1.inference_service_pb2 import ITERATIONS_EPOCHS
from fairwall.wire.training import settings_of
from sim.games import lay_out, read
from sim.games.cards import DealError
from sim.games.inference.deal import InferenceDeal, deal, sides
from sim.games.inference.trial import summarise, training_of
from sim.scenarios.scenario import as_values
from sim.scenarios.sweep import ScenarioError, shipped

VALUES: dict[str, Any] = {
    "scenario": {"name": "dia", "game": "inference", "trials": 3, "seed": 5},
    "data": {"source": "german", "protected": "sex"},
    "adversary": {"attack": ["loss-test", "kl"]},
}


def dealt(trial: int = 0, **developer: Any) -> InferenceDeal:
    (cell,) = lay_out({**VALUES, "developer": developer}, "dia.toml").cells
    return deal(cell, trial, "deal-1")


def test_no_row_is_in_two_hands() -> None:
    for trial in range(5):
        cards = dealt(trial)
        hands = [set(rows.numbers.tolist()) for rows in (cards.developer, cards.adversary, cards.test)]
        assert sum(map(len, hands)) == len(set.union(*hands)) == 1000
        assert abs(len(hands[0]) - len(hands[1])) <= 1


def on(**data: Any) -> InferenceDeal:
    """A deal of a table, by what its section says of it besides."""
    (cell,) = lay_out({**VALUES, "data": {**VALUES["data"], **data}}, "dia.toml").cells
    return deal(cell, 0, "deal-1")


def test_the_split_is_the_scenarios() -> None:
    for shares, sizes in [
        ({}, (400, 400, 200)),
        ({"train_share": 0.8, "test_share": 0.1}, (800, 100, 100)),
        ({"train_share": 0.29}, (290, 510, 200)),
        ({"test_share": 0.5}, (250, 250, 500)),
    ]:
        cards = on(**shares)
        hands = [set(rows.numbers.tolist()) for rows in (cards.developer, cards.adversary, cards.test)]
        assert tuple(map(len, hands)) == sizes
        assert len(set.union(*hands)) == cards.table_rows == 1000


def test_a_large_table_is_held_back_from_in_full_only_where_the_scenario_says_so() -> None:
    adult = {"source": "adult", "advantaged": "Male"}
    assert len(on(**adult).test.labels) == 4000
    assert len(on(**adult, test_share=0.2).test.labels) == 9768


def test_a_split_that_leaves_the_adversary_nothing_is_refused() -> None:
    with pytest.raises(DealError, match=r"data\.train_share: 800 of 1,000 rows leave the adversary none; 200 are held"):
        on(train_share=0.8)


def test_whether_a_table_is_small_is_asked_of_all_its_rows() -> None:
    for rows, small in [(1000, True), (999, False), (0, False)]:
        dealt_out = dealt(defence="fft-paper", small_table=rows, iterations="epochs")
        assert len(dealt_out.developer.labels) == 400
        training = training_of(dealt_out, 1.0)
        assert (training.small_table, training.iterations) == (small, ITERATIONS_EPOCHS)
        settings = settings_of(training)
        assert (settings.small_table, settings.epochs) == (small, True)


def test_steps_are_what_iterations_are_unless_the_scenario_says_epochs() -> None:
    assert not settings_of(training_of(dealt(), 1.0)).epochs


def test_models_may_see_the_group_as_the_last_feature_of_every_hand() -> None:
    with_it, without = on(include_protected=True), on()
    for hand in ("developer", "adversary", "test"):
        seen, unseen = getattr(with_it, hand), getattr(without, hand)
        assert (seen.numbers == unseen.numbers).all()
        assert (seen.features[:, -1] == seen.groups[0]).all()
        assert (seen.features[:, :-1] == unseen.features).all()


def test_the_group_is_no_feature_where_compliance_audits_for_it() -> None:
    values = {
        **VALUES,
        "data": {**VALUES["data"], "include_protected": True},
        "compliance": {"metric": "eodds_max", "mechanism": "laplace", "epsilon": 10.0},
        "developer": {"defence": "fft", "lambdas": [0.1, 1.0]},
    }
    with pytest.raises(ScenarioError, match=r"data\.include_protected: would deal the developer the groups"):
        lay_out(values, "dia.toml")


def test_wherever_defences_are_compared_plain_fine_tuning_is_one_of_them() -> None:
    compared = 0
    for name in shipped():
        sweep = read(name)
        defences = {cell.swept.get("developer.defence") for cell in sweep.cells}
        if sweep.game == "inference" and {"none", "fft"} <= defences:
            compared += 1
            assert "plain-finetune" in defences, name
    assert compared >= 9


def test_the_split_and_the_bits_do_not_depend_on_the_defence() -> None:
    one, other = dealt(), dealt(defence="fft")
    assert (one.bits == other.bits).all()
    assert (one.developer.numbers == other.developer.numbers).all()
    assert one.seeds == other.seeds
    assert len(set(one.seeds.values())) == 2


def test_the_secret_decides_on_split_bits_and_seeds() -> None:
    (cell,) = lay_out({**VALUES, "developer": {}}, "dia.toml").cells
    one, other = (deal(cell, 0, "deal-1", bytes([byte]) * 32) for byte in (1, 2))
    assert (one.developer.numbers != other.developer.numbers).any()
    assert (one.bits != other.bits).any()
    assert not {*one.seeds.values()} & {*other.seeds.values(), *dealt().seeds.values()}


def test_another_trial_has_another_split_and_other_bits() -> None:
    splits = [dealt(trial) for trial in range(8)]
    assert len({cards.developer.numbers.tobytes() for cards in splits}) == 8
    assert len({cards.bits.tobytes() for cards in splits}) > 1
    assert all(0 < cards.bits.sum() < len(cards.bits) for cards in splits)


def test_samples_of_mixtures_hold_their_shares_and_no_row_is_in_both() -> None:
    rng = np.random.default_rng(0)
    group = (np.arange(1000) < 700).astype(np.uint8)
    for purity in (0.5, 0.7, 0.95):
        drawn = sides(group, purity, rng)
        for side in (0, 1):
            assert (drawn == side).sum() == 300
            assert (group[drawn == side] == side).sum() == round(300 * purity)
    assert (sides(group, 1.0, rng) == group).all()


def test_two_attributes_are_dealt_and_neither_is_a_feature() -> None:
    (cell,) = lay_out(
        {
            "scenario": {"name": "two", "game": "inference"},
            "data": {
                "source": "adult",
                "protected": "sex",
                "advantaged": "Male",
                "also_protected": {"race": "White"},
            },
            "adversary": {"attack": ["loss-test"]},
        },
        "two.toml",
    ).cells
    cards = deal(cell, 0, "deal-1")
    single = deal(
        lay_out(
            {**as_values(cell.scenario), "data": {"source": "adult", "protected": "sex", "advantaged": "Male"}},
            "one.toml",
        ).cells[0],
        0,
        "deal-1",
    )
    assert cards.developer.groups.shape == (2, len(cards.developer.labels))
    assert (cards.bits == single.bits).all()
    assert (cards.developer.groups[0] == single.developer.groups[0]).all()
    assert cards.developer.features.shape[1] < single.developer.features.shape[1]
    race = cards.developer.groups[1].astype(float)
    told = [abs(np.corrcoef(column, race)[0, 1]) for column in cards.developer.features.T if column.std()]
    assert max(told) < 0.9


def test_compliance_gets_rows_of_its_own_where_it_is_to_answer() -> None:
    values = {**VALUES, "compliance": {"metric": "eodds_max", "mechanism": "laplace", "epsilon": 10.0}}
    developer = {"defence": "fft", "lambdas": [0.1, 1.0]}
    (cell,) = lay_out({**values, "developer": developer}, "dia.toml").cells
    cards = deal(cell, 0, "deal-1")
    assert cards.audited is not None
    assert cards.compliance is not None
    hands = [set(rows.numbers.tolist()) for rows in (cards.developer, cards.adversary, cards.test, cards.audited)]
    assert sum(map(len, hands)) == len(set.union(*hands)) == 1000
    assert (cards.compliance.protected == cards.audited.groups[0]).all()
    assert cards.compliance.seed not in cards.seeds.values()
    assert (cards.bits == dealt().bits).all()


def line(split: int, correct_b0: int, correct_b1: int) -> dict[str, Any]:
    means = ("gap_base", "gap", "eo_base", "eo", "ppr_gap", "label_gap", "w", "accuracy_base", "accuracy")
    return {
        "attack": "kl",
        "attacks": 2,
        "defence": "none",
        "lambda": 1.0,
        "rehearsal": 0.2,
        "victims": 20,
        "victims_b1": 10,
        "correct_b0": correct_b0,
        "correct_b1": correct_b1,
        "split_seed": split,
        "below_tau": 1,
        "bound_holds": False,
        "corrected_bound_holds": True,
        "membership": 0.5,
        "sampling_error": 0.0,
        "people": 1000,
        "membership_base": 0.5,
        **dict.fromkeys(means, 1.0),
    }


def test_an_adversary_that_is_always_wrong_has_the_whole_advantage() -> None:
    cell = summarise({}, [line(split, 0, 0) for split in range(10)])
    assert (cell["accuracy_b"], cell["advantage"]) == (0, 1)
    assert cell["advantage_low"] > 0.9
    assert cell["family_high"] < 50
    assert (cell["victims"], cell["splits"], cell["below_tau"]) == (200, 10, 10)
    assert (cell["bound_holds"], cell["corrected_bound_holds"]) == (0, 10)


def test_a_coin_has_none() -> None:
    cell = summarise({}, [line(split, 5 + split % 2, 5 - split % 2) for split in range(10)])
    assert cell["accuracy_b"] == pytest.approx(50, abs=1)
    assert cell["advantage_low"] == 0
    assert cell["family_low"] < 50 < cell["family_high"]
