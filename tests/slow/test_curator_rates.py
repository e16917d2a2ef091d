"""What cheats of a curator gain and how often they are found, over up to 1,000 trials each."""

from __future__ import annotations

import numpy as np
import pytest

from fairwall.laws.studies import cheat_detection
from sim.games import read
from tests.support.curator_trial import cell_of, played

pytestmark = pytest.mark.slow(seconds=15)
TRIALS = 1000


@pytest.mark.parametrize(("draws", "printed"), [(2, 0.75), (5, 1.59), (10, 2.25), (100, 4.49)])
def test_the_best_of_several_noises_shifts_answers_as_printed(draws: int, printed: float) -> None:
    trials = 30 if draws < 100 else 10
    cell = cell_of(cheat="best", strength=draws, requests=100)
    shift = np.mean([played(cell, trial).line["shift"] for trial in range(trials)])
    assert shift == pytest.approx(printed, rel=0.05)


@pytest.mark.parametrize(("draws", "openings", "least", "most"), [(5, 40, 0.99, 1.0), (2, 80, 0.0, 0.35)])
def test_statistics_alone_do_not_suffice(draws: int, openings: int, least: float, most: float) -> None:
    cell = cell_of(cheat="best", strength=draws, defence="statistics", requests=openings, openings=openings)
    accused = np.mean([played(cell, trial).line["accused"] for trial in range(TRIALS // 5)])
    assert least <= accused <= most


@pytest.mark.parametrize("cheat", ["best", "relabelled"])
def test_a_cheat_is_found_whenever_an_affected_request_is_opened_and_as_often_as_the_law_says(cheat: str) -> None:
    cell = cell_of(cheat=cheat, strength=4, share=0.1, defence="commitment", requests=10, openings=6)
    lines = [played(cell, trial).line for trial in range(TRIALS)]
    assert [line["accused"] for line in lines] == [line["opened_affected"] for line in lines]
    # A share of 1,000 trials errs by 1.6 points, and by more than 5 in one case of 600.
    accused = np.mean([line["accused"] for line in lines])
    assert accused == pytest.approx(cheat_detection.caught(cheat_detection.affected(cheat, 4, 0.1), 6), abs=0.05)


@pytest.mark.parametrize("cheat", ["quiet", "dropped", "relabelled"])
def test_1000_of_1000_openings_of_an_affected_request_accuse(cheat: str) -> None:
    cell = cell_of(cheat=cheat, strength=4, defence="commitment", requests=1, openings=1)
    assert sum(played(cell, trial).line["accused"] for trial in range(TRIALS)) == TRIALS


@pytest.mark.parametrize(
    ("cheat", "strength", "trials", "least", "most"),
    [("none", 1, TRIALS, 0.008, 0.032), ("picked", 1, TRIALS, 0.008, 0.036), ("picked", 20, 100, 0.0, 0.01)],
    ids=["honest", "picked", "the nearest of 20"],
)
def test_three_of_five_tests_flag_a_sample_as_often_as_the_page_says(
    cheat: str, strength: int, trials: int, least: float, most: float
) -> None:
    asked = [f"curator.cheat={cheat}", f"curator.strength={strength}", "curator.sample=500"]
    (cell,) = read("curator-sample", asked).cells
    flags = np.array([played(cell, trial).line["flags"] for trial in range(trials)])
    assert least <= (flags >= 3).mean() <= most


@pytest.mark.parametrize("defence", ["statistics", "commitment"])
def test_an_honest_service_is_never_accused(defence: str) -> None:
    cell = cell_of(defence=defence, requests=10, openings=10)
    assert not any(played(cell, trial).line["accused"] for trial in range(TRIALS))
