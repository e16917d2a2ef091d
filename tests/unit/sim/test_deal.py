"""Deals: what a trial's cards depend on, and who gets which rows."""

from __future__ import annotations

import csv
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwall.laws.metrics.metric import stratum
from sim.datasets import DataError
from sim.games import lay_out
from sim.games.cards import WRITTEN_DOWN, DealError, party_seed
from sim.games.referee import _dealt
from sim.games.reveal.deal import RevealDeal, deal
from sim.scenarios.sweep import Cell

PEOPLE = 200
ID = np.arange(PEOPLE)
DISADVANTAGED = ID % 3 == 0
POSITIVE = ID % 4 < 2

Cells = Callable[..., tuple[Cell, ...]]


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Cells:
    """Lay out cells on a table whose first feature is the row's number: every card can be told from any other."""
    file = tmp_path_factory.mktemp("data") / "people.csv"
    with file.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["id", "group", "y", "nobody_in_b"])
        for i in ID:
            group = "b" if DISADVANTAGED[i] else "a"
            writer.writerow([i, group, int(POSITIVE[i]), int(POSITIVE[i] and group == "a")])

    def cells_of(**changes: Any) -> tuple[Cell, ...]:
        roles = {"protected": "group", "advantaged": "a", "disadvantaged": "b", "label": "y", "positive": "1"}
        values: dict[str, Any] = {
            "scenario": {"name": "x", "game": "reveal"},
            "data": {"source": str(file), "test_size": 20, **roles},
            "compliance": {"mechanism": "laplace", "epsilon": 1.0},
            "developer": {"strategy": "sensing", "queries": 5},
            "adversary": {"attack": ["loss-test"], "probes": 10},
        }
        for key, value in changes.items():
            section, _, field = key.partition("__")
            if field:
                values[section][field] = value
            else:
                values[section] = value
        return lay_out(values, "x.toml").cells

    return cells_of


def cards(dealt: RevealDeal) -> list[bytes | None]:
    """Everything that the parties get, to the bit."""
    training, adversary = dealt.developer.training, dealt.adversary
    return [
        dealt.compliance.labels.tobytes(),
        dealt.compliance.protected.tobytes(),
        dealt.compliance.seed,
        dealt.developer.features.tobytes(),
        dealt.developer.labels.tobytes(),
        dealt.developer.seed,
        training and training.features.tobytes(),
        training and training.labels.tobytes(),
        adversary and adversary.features.tobytes(),
        adversary and adversary.labels.tobytes(),
    ]


def ids(features: np.ndarray) -> list[int]:
    """The numbers of the rows, read off their first feature, which is standardised."""
    return np.rint(features[:, 0] * ID.std() + ID.mean()).astype(int).tolist()


# What a trial's cards depend on.


def test_the_same_trial_of_the_same_cell_gets_identical_cards(cells: Cells) -> None:
    assert cards(deal(cells()[0], 3, "d")) == cards(deal(cells()[0], 3, "d"))


def test_a_trials_cards_do_not_depend_on_the_trials_before_it(cells: Cells) -> None:
    (cell,) = cells(scenario__trials=5)
    forwards = [cards(deal(cell, trial, "d")) for trial in range(5)]
    backwards = [cards(deal(cell, trial, "d")) for trial in reversed(range(5))]
    assert forwards == backwards[::-1]
    assert len({tuple(hand) for hand in forwards}) == 5


def test_a_trial_alone_under_its_own_seed_is_the_same_trial(cells: Cells) -> None:
    in_sequence, alone = cells(scenario__seed=7)[0], cells(scenario__seed=9)[0]
    assert cards(deal(in_sequence, 2, "d")) == cards(deal(alone, 0, "d"))


def test_swept_cells_share_their_test_sets_and_seeds_where_their_data_are_alike(cells: Cells) -> None:
    swept = cells(
        sweep={
            "compliance.mechanism": ["laplace", "conceal"],
            "compliance.epsilon": [1.0, "inf"],
            "developer.strategy": ["sensing", "gaussian"],
            "developer.queries": [5, 6],
        }
    )
    assert len(swept) == 16
    assert len({tuple(cards(deal(cell, 1, "d"))) for cell in swept}) == 1


def test_the_training_table_is_one_for_all_trials_and_seeds(cells: Cells) -> None:
    hands = [deal(cells(scenario__seed=seed)[0], trial, "d") for seed in (0, 5) for trial in (0, 1)]
    assert len({hand.developer.training.digest for hand in hands if hand.developer.training}) == 1


def test_without_an_attack_nobody_deals_the_adversary_in_and_the_others_cards_stay(cells: Cells) -> None:
    with_it, without = (deal(cells(adversary__attack=attack)[0], 0, "d") for attack in (["loss-test"], []))
    assert without.adversary is None
    assert cards(without)[:8] == cards(with_it)[:8]


# Seeds.


def test_no_two_parties_or_trials_share_a_seed(cells: Cells) -> None:
    hands = [deal(cells()[0], trial, "d") for trial in range(5)]
    seeds = [seed for hand in hands for seed in (hand.compliance.seed, hand.developer.seed)]
    seeds += [party_seed(WRITTEN_DOWN, trial, "referee") for trial in range(5)]
    assert len(set(seeds)) == 15
    assert {len(seed) for seed in seeds} == {32}


def test_the_secret_decides_on_people_and_groups_and_not_on_the_training_table(cells: Cells) -> None:
    one, other = (deal(cells()[0], 0, "d", bytes([byte]) * 32) for byte in (1, 2))
    for mine, theirs in zip(cards(one)[:6], cards(other)[:6], strict=True):
        assert mine != theirs
    assert set(ids(one.developer.features)) != set(ids(other.developer.features))
    assert one.developer.training is not None
    assert other.developer.training is not None
    assert one.developer.training.digest == other.developer.training.digest
    assert cards(one) == cards(deal(cells()[0], 0, "d", bytes([1]) * 32))


def test_printed_cards_show_neither_protected_attributes_nor_seeds(cells: Cells) -> None:
    printed = repr(deal(cells()[0], 0, "d"))
    assert "protected=array" not in printed
    assert "seed=b" not in printed


# Rows.


def test_test_rows_training_rows_and_public_rows_are_disjoint(cells: Cells) -> None:
    for trial in range(3):
        hand = deal(cells()[0], trial, "d")
        assert hand.developer.training is not None
        assert hand.adversary is not None
        rows = [
            ids(part) for part in (hand.developer.features, hand.developer.training.features, hand.adversary.features)
        ]
        assert [len(part) for part in rows] == [20, 100, 10]
        assert len({row for part in rows for row in part}) == 130


def test_every_card_of_a_row_is_about_that_row(cells: Cells) -> None:
    hand = deal(cells()[0], 0, "d")
    assert hand.developer.training is not None
    rows = ids(hand.developer.features)
    assert (hand.compliance.protected == ~DISADVANTAGED[rows]).all()
    assert (hand.compliance.labels == POSITIVE[rows]).all()
    assert (hand.developer.labels == POSITIVE[rows]).all()
    assert (hand.developer.training.labels == POSITIVE[ids(hand.developer.training.features)]).all()


def test_a_hidden_test_set_is_the_same_one_in_compliance_s_hand_alone(cells: Cells) -> None:
    shown, hidden = (deal(cells(data__hidden=value)[0], 0, "d") for value in (False, True))
    assert shown.compliance.features is None
    assert hidden.compliance.features is not None
    assert hidden.compliance.features.tobytes() == shown.developer.features.tobytes()
    assert (hidden.developer.features, hidden.developer.labels) == (None, None)
    assert hidden.compliance.labels.tobytes() == shown.compliance.labels.tobytes()
    assert hidden.compliance.protected.tobytes() == shown.compliance.protected.tobytes()
    assert hidden.developer.training.digest == shown.developer.training.digest


def test_the_public_sample_has_half_of_each_group_with_the_disadvantaged_first(cells: Cells) -> None:
    public = deal(cells()[0], 0, "d").adversary
    assert public is not None
    rows = ids(public.features)
    assert public.disadvantaged_rows == 5
    assert DISADVANTAGED[rows].tolist() == [True] * 5 + [False] * 5
    assert (public.labels == POSITIVE[rows]).all()


def test_exactly_n0_disadvantaged_people_are_dealt_and_in_no_telling_order(cells: Cells) -> None:
    for n0 in [1, 6, 19]:
        hands = [deal(cells(data__n0=n0)[0], trial, "d").compliance.protected for trial in range(4)]
        assert [(len(protected), int((protected == 0).sum())) for protected in hands] == [(20, n0)] * 4
        assert len({protected.tobytes() for protected in hands}) > 1


def test_where_n0_is_public_the_developer_is_dealt_that_of_each_stratum(cells: Cells) -> None:
    for metric in ["sp", "eo", "fpr", "eodds_max", "eodds_sum"]:
        (known,) = cells(compliance__metric=metric, developer__strategy="best", developer__knows=["n0"])
        (unknown,) = cells(compliance__metric=metric, developer__strategy="best")
        dealt = deal(known, 0, "deal-1")
        labels, groups = dealt.compliance.labels, dealt.compliance.protected
        strata = {"sp": [labels < 2], "eo": [labels == 1], "fpr": [labels == 0]}.get(metric, [labels == 1, labels == 0])
        assert dealt.developer.disadvantaged == tuple((groups[stratum] == 0).sum() for stratum in strata)
        assert deal(unknown, 0, "deal-1").developer.disadvantaged == ()


def test_without_a_training_share_there_is_no_training_table_and_everybody_can_be_tested(cells: Cells) -> None:
    (cell,) = cells(data__train_share=0, data__test_size=PEOPLE, adversary__attack=[])
    hand = deal(cell, 0, "d")
    assert hand.developer.training is None
    assert sorted(ids(hand.developer.features)) == ID.tolist()


def test_synthetic_people_need_no_training_and_have_exactly_n0_disadvantaged(cells: Cells) -> None:
    data = {"source": "synthetic", "n": 40, "n0": 7, "scores": "beta(2,3)"}
    hand = deal(cells(data=data, adversary__attack=[])[0], 0, "d")
    assert hand.developer.scored
    assert hand.developer.training is None
    assert hand.developer.features.shape == (40, 1)
    assert (hand.compliance.protected == 0).sum() == 7


@given(seed=st.integers(0, 10**6), metric=st.sampled_from(["sp", "eo"]), size=st.integers(4, 9))
def test_the_metrics_stratum_always_holds_both_groups(cells: Cells, seed: int, metric: str, size: int) -> None:
    (cell,) = cells(scenario__seed=seed, compliance__metric=metric, data__test_size=size, adversary__attack=[])
    hand = deal(cell, 0, "d").compliance
    members = hand.protected[stratum(metric, hand.labels)]
    assert len(members) >= 3
    assert set(members.tolist()) == {0, 1}


# What cannot be dealt.


def test_a_deal_that_the_table_cannot_give_is_refused_in_one_line_that_names_the_key(cells: Cells) -> None:
    for changes, key, numbers in [
        ({"data__test_size": 101}, "data.test_size", ("101", "100")),
        ({"data__test_size": PEOPLE, "data__train_share": 0.25}, "data.test_size", ("200", "150", "0.25")),
        ({"data__test_size": 90, "data__n0": 80}, "data.n0", ("80",)),
        ({"data__test_size": 90, "data__n0": 1}, "data.test_size", ("89",)),
        ({"adversary__probes": 1000}, "adversary.probes", ("500",)),
        ({"compliance__metric": "eo", "data__label": "nobody_in_b"}, "data.test_size", ("eo", "20")),
    ]:
        (cell,) = cells(**changes)
        with pytest.raises(DealError) as refused:
            deal(cell, 0, "d")
        text = str(refused.value)
        assert len(text.splitlines()) == 1
        assert key in text
        assert all(number in text for number in numbers)


def test_the_advice_of_a_refusal_is_not_what_was_done_already(cells: Cells) -> None:
    (cell,) = cells(compliance__metric="eo", data__label="nobody_in_b", data__n0=5)
    with pytest.raises(DealError) as refused:
        deal(cell, 0, "d")
    assert "or set data.n0" not in str(refused.value)


def test_a_table_without_what_the_scenario_names_is_refused_in_one_line(cells: Cells) -> None:
    for changes, named in [
        ({"data__advantaged": "zz"}, "'zz'"),
        ({"data__disadvantaged": "zz"}, "'zz'"),
        ({"data__protected": "zz"}, "'zz'"),
        ({"data__label": "zz"}, "'zz'"),
        ({"data__positive": "zz"}, "'zz'"),
        ({"data__drop": ["zz"]}, "'zz'"),
        ({"data__source": "/nowhere/people.csv"}, "/nowhere/people.csv"),
    ]:
        (cell,) = cells(**changes)
        with pytest.raises(DataError) as refused:
            deal(cell, 0, "d")
        assert len(str(refused.value).splitlines()) == 1
        assert named in str(refused.value)


def test_an_unknown_law_of_synthetic_scores_is_refused_in_one_line(cells: Cells) -> None:
    (cell,) = cells(data={"source": "synthetic", "n": 40, "n0": 7, "scores": "normal"}, adversary__attack=[])
    with pytest.raises(DataError, match=r"^[^\n]*'normal'[^\n]*$"):
        deal(cell, 0, "d")


def test_compliance_is_dealt_a_seed_only_where_its_noise_repeats(cells: Cells) -> None:
    for noise in ["system", "seeded"]:
        dealt = deal(cells(compliance__noise=noise)[0], 0, "d")
        message, _ = _dealt(dealt, dealt.compliance)
        assert message.noise_seeded == (noise == "seeded")
        assert message.seed == (dealt.compliance.seed if noise == "seeded" else b"")
