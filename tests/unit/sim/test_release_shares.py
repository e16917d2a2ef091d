"""The figure of a run that shares one epsilon out to a release and to queries."""

from __future__ import annotations

import itertools

from sim.games.game import Line
from sim.games.release.figures import along_shares


def cells() -> list[Line]:
    """A control, and two epsilons along the share: at 0 nothing is asked, at 1 nothing is released."""
    control: Line = {"release.epsilon": "inf", "release.queries_share": 0.0, "leakage_baseline": 60.0, "leakage": 100.0}
    return [control] + [
        {
            "release.epsilon": epsilon,
            "release.queries_share": share,
            "leakage_baseline": 60.0,
            "leakage_release": None if share == 1 else 61.0 + epsilon,
            "leakage": None if share == 1 else 62.0 + epsilon,
            "leakage_mixture": None if share == 0 else 70.0 - share,
        }
        for epsilon, share in itertools.product((2, 5), (0.0, 0.5, 1.0))
    ]


def test_each_epsilon_has_a_panel_and_each_guess_its_line() -> None:
    (figure,) = along_shares(cells())
    assert figure.alt.split("; ") == [
        "epsilon 2, guessed from the release, %: 63.0 to 63.0",
        "epsilon 2, guessed from everything, %: 64.0 to 64.0",
        "epsilon 2, guessed with queries about them, %: 69.5 to 69.0",
        "epsilon 5, guessed from the release, %: 66.0 to 66.0",
        "epsilon 5, guessed from everything, %: 67.0 to 67.0",
        "epsilon 5, guessed with queries about them, %: 69.5 to 69.0",
    ]


def test_controls_alone_are_not_drawn() -> None:
    assert along_shares(cells()[:1]) == ()
