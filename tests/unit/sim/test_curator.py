"""The game of the curator: what its laws say, by brute force; what each cheat gains; and what finds it, how often."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from compliance.games.curator import cells, nearest
from fairwall.laws.studies import cheat_detection
from sim.games import lay_out
from sim.games.curator.regulator import answers, exact_gaps, judge, scale
from sim.scenarios.sweep import ScenarioError
from tests.support.curator_trial import cell_of, played

CHEATS = ("best", "quiet", "dropped", "relabelled")


def test_the_picked_sample_is_the_nearest_that_passes() -> None:
    for there in [(30, 10, 40, 60), (9, 21, 12, 30), (50, 3, 20, 80)]:
        for passes in [0.0, 0.1, 0.25]:
            out0, in0, out1, in1 = there
            rows, n0 = 20, round(20 * (out0 + in0) / sum(there))
            n1 = rows - n0

            def apart(x: int, n: int, rate: float) -> float:
                return sum(
                    count * math.log(count / (n * part)) for count, part in ((x, rate), (n - x, 1 - rate)) if count
                )

            best = min(
                apart(x0, n0, in0 / (in0 + out0)) + apart(x1, n1, in1 / (in1 + out1))
                for x0 in range(n0 + 1)
                for x1 in range(n1 + 1)
                if x1 / n1 - x0 / n0 <= passes + 1e-12
                and x0 <= in0
                and n0 - x0 <= out0
                and x1 <= in1
                and n1 - x1 <= out1
            )
            found = cells(np.array(there), rows, passes)
            assert found.sum() == rows
            assert found[3] / n1 - found[1] / n0 <= passes + 1e-12
            assert apart(int(found[1]), n0, in0 / (in0 + out0)) + apart(int(found[3]), n1, in1 / (in1 + out1)) == (
                pytest.approx(best)
            )
            with pytest.raises(ValueError, match="no sample of so many rows passes"):
                cells(np.array([40, 0, 0, 60]), rows, passes)


def test_of_several_picked_samples_the_nearest_to_all_rows_is_shown() -> None:
    """By the energy distance, as its definition has it: the mean distance between two laws less those within each."""
    rng = np.random.default_rng(5)
    rows = np.column_stack([rng.normal(size=(60, 3)), np.ones(60), rng.integers(2, size=60)])
    drawn = [rng.choice(60, 12, replace=False).astype(float) for _ in range(20)]
    scaled = (rows / np.where(rows.std(axis=0) > 0, rows.std(axis=0), 1))[:, [0, 1, 2, 4]]
    apart = np.linalg.norm(scaled[:, None] - scaled[None], axis=2)

    def distance(sample: Any) -> float:
        own = sample.astype(int)
        return 2 * apart[own].mean() - apart[np.ix_(own, own)].mean() - apart.mean()

    left = iter(drawn)
    assert nearest(lambda: next(left), rows, 20).tolist() == min(drawn, key=distance).tolist()
    assert distance(min(drawn, key=distance)) < np.median([distance(one) for one in drawn]) / 1.2


@pytest.mark.check
def test_the_nearest_of_several_has_the_gap_that_passes_and_larger_p_values() -> None:
    def shown(strength: int) -> list[dict[str, Any]]:
        cell = cell_of(people=400, cheat="picked", strength=strength, requests=0, sample=60, passes=0.1)
        return [played(cell, trial).line for trial in range(4)]

    alone, nearest_of_30 = shown(1), shown(30)
    for one, best in zip(alone, nearest_of_30, strict=True):
        assert one["gap_shown"] == best["gap_shown"] <= 0.1, "the same counts of each group and label"
    mean, best = (np.mean([line["tests"]["energy"] for line in lines]) for lines in (alone, nearest_of_30))
    assert best > mean + 0.1


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_cheat_moves_answers_and_is_found_by_whatever_opening_is_affected(cheat: str) -> None:
    cell = cell_of(cheat=cheat, strength=4, share=0.5, defence="commitment", requests=8, openings=3)
    lines = [played(cell, trial).line for trial in range(6)]
    assert all(line["accused"] == line["opened_affected"] for line in lines)
    assert not any(line["missed"] for line in lines)
    assert any(line["affected"] > 0 for line in lines)


def test_an_honest_service_moves_nothing_and_is_not_accused() -> None:
    for defence in ("commitment", "statistics"):
        line = played(cell_of(defence=defence, requests=10, openings=10), 0).line
        assert (line["shift"], line["moved"], line["affected"], line["accused"], line["won"]) == (0, 0, 0, False, False)


def test_noise_is_measured_in_its_own_scale() -> None:
    cell = cell_of(requests=300)
    one = played(cell, 0)
    noise = (one.outcome.answered.answers - exact_gaps(one.deal, one.outcome.answered)) / scale(one.deal)
    # The mean size of Laplace noise is its scale; of 300 its deviation is 0.058.
    assert np.abs(noise).mean() == pytest.approx(1, abs=0.2)
    assert cheat_detection.p_value(noise) > 1e-4


def test_attributes_that_were_wrong_before_are_not_found() -> None:
    cell = cell_of(cheat="mislabelled", strength=40, defence="commitment", requests=10, openings=10)
    lines = [played(cell, trial).line for trial in range(3)]
    assert not any(line["accused"] for line in lines)
    assert all(line["affected"] == 1 for line in lines)
    assert any(line["missed"] for line in lines)


def test_whoever_opens_something_else_is_accused() -> None:
    for what in ["attributes", "seed", "salt_key", "length"]:
        one = played(cell_of(defence="commitment", requests=4, openings=1), 0)
        opening = one.outcome.opening
        flipped = opening.attributes.copy()
        flipped[0] ^= 1
        other = {
            "attributes": {"attributes": flipped},
            "length": {"attributes": opening.attributes[1:]},
            "seed": {"seed": bytes(32)},
            "salt_key": {"salt_key": bytes(32)},
        }[what]
        assert not judge(one.deal, one.outcome.answered, one.outcome.commitment, opening).accused
        assert judge(one.deal, one.outcome.answered, one.outcome.commitment, replace(opening, **other)).accused


def test_what_cannot_be_played_is_one_line_that_names_the_key() -> None:
    for asked, words in [
        ({"openings": 101, "defence": "commitment"}, "curator.openings: must be at most the 100 requests, not 101"),
        ({"defence": "commitment"}, "curator.openings: must be above 0 with a defence"),
        ({"openings": 5}, "curator.openings: must be above 0 with a defence"),
        ({"cheat": "lie"}, "curator.cheat: must be one of none, best, quiet, dropped, relabelled, mislabelled, picked"),
        ({"cheat": "picked"}, "curator.sample: must be above 0 for a sample to be picked"),
        ({"sample": 20}, "curator.requests: must be 0 where a sample is shown"),
        ({"requests": 0}, "curator.requests: must be 0 where a sample is shown"),
        ({"sample": 200, "requests": 0}, "curator.sample: must be from 10 to half of the 200 people, not 200"),
        ({"sample": 50, "requests": 0, "cheat": "best"}, 'curator.cheat: of a sample must be "none" or "picked"'),
        ({"cheat": "dropped", "strength": 60}, "curator.strength: must be at most a quarter of the 200 people"),
        ({"share": 2}, "curator.share"),
    ]:
        with pytest.raises(ScenarioError) as refused:
            cell_of(**asked)
        assert words in str(refused.value)


def test_only_seeded_laplace_noise_is_played() -> None:
    for rules, words in [
        ({"mechanism": "counts", "epsilon": 1}, "compliance.mechanism: must be 'laplace'"),
        ({"mechanism": "laplace", "epsilon": "inf"}, "compliance.epsilon: must be a number"),
        ({"mechanism": "laplace", "epsilon": 1, "metric": "eo"}, "compliance.metric: must be 'sp'"),
        ({"mechanism": "laplace", "epsilon": 1, "noise": "system"}, "compliance.noise: must be 'seeded'"),
    ]:
        with pytest.raises(ScenarioError) as refused:
            lay_out(
                {
                    "scenario": {"name": "bad", "game": "curator"},
                    "data": {"source": "adult"},
                    "compliance": rules,
                    "curator": {},
                },
                "bad",
            )
        assert words in str(refused.value)


def test_whoever_answers_by_another_seed_and_opens_that_is_accused() -> None:
    one = played(cell_of(defence="commitment", requests=4, openings=4), 0)
    seed = b"ground" + bytes(26)
    given = one.outcome.answered
    answered = replace(given, answers=answers(one.deal, given, one.outcome.opening.attributes, seed, range(4)))
    assert judge(one.deal, answered, one.outcome.commitment, replace(one.outcome.opening, seed=seed)).accused
