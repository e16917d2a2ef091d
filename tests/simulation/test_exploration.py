"""Whatever two replicas do with three requests, and whatever fails, the ledger keeps its promises; twins break them."""

from __future__ import annotations

import pytest

from tests.simulation import twins
from tests.simulation.explore import Case, explore, request
from tests.simulation.world import Faults, Rules

ONE = (request("a"),), (request("a"),)
"""A request and its repeat."""
TWO = (request("a"),), (request("b"),)
BOTH = (request("a"),), (request("b", developer="bob"),)
"""Of two developers, neither of whom has to wait for the other's turn."""
THREE = (request("a"), request("c")), (request("a"), request("b"))
"""Three requests, of which the budget covers two, and a repeat."""
MORE = (request("a"), request("c", "others")), (request("a"), request("b", "others"))
"""About two data sets, each of which has a chain, a seal and a budget of its own."""
ACROSS = (request("a"), request("c")), (request("a", "others"), request("b"))
"""An id that both use, for different data sets."""
FILE = Rules(one_line=True)
UNGUARDED = Rules(unique=False)

SMALL = {
    "undisturbed": (Case(THREE), 1_700),
    "a file": (Case(THREE, Faults(crashes=1), FILE), 12_000),
    "a crash": (Case(THREE, Faults(crashes=1)), 15_000),
    "two developers, a crash": (Case(BOTH, Faults(crashes=1)), 7_000),
    "connections are cut": (Case(THREE, Faults(cuts=1)), 27_000),
    "a seal fails": (Case(THREE, Faults(unsealed=1)), 7_000),
    "a failover": (Case(TWO, Faults(failovers=1)), 3_000),
    "a failover that not all follow": (Case(TWO, Faults(splits=1)), 22_000),
    "one id, two data sets": (Case(ACROSS, Faults(crashes=1)), 25_000),
}
FULL = {
    "a file, two crashes, a seal fails": (Case(THREE, Faults(crashes=2, unsealed=1), FILE), 200_000),
    "two crashes": (Case(THREE, Faults(crashes=2)), 50_000),
    "cut twice": (Case(THREE, Faults(cuts=2)), 140_000),
    "cut, and a crash": (Case(THREE, Faults(crashes=1, cuts=1)), 230_000),
    "one id, two data sets, a failover": (Case(ACROSS, Faults(failovers=1)), 140_000),
    "a failover that not all follow, and a repeat": (Case(THREE, Faults(splits=1)), 150_000),
    "a failover that not all follow, and cut": (Case((THREE[0], ONE[0]), Faults(splits=1, cuts=1)), 480_000),
    "a failover, a seal fails": (Case(THREE, Faults(failovers=1, unsealed=1)), 330_000),
    "a failover, and cut": (Case(THREE, Faults(failovers=1, cuts=1)), 740_000),
    "a failover, and a crash": (Case(THREE, Faults(failovers=1, crashes=1)), 900_000),
}
LARGEST = {
    "two failovers": (Case(THREE, Faults(failovers=2, lag=1)), 1_000_000),
    "two data sets, a failover, and a crash": (Case(MORE, Faults(failovers=1, crashes=1)), 2_100_000),
    "a failover, cut, and a crash": (
        Case((THREE[0], ONE[0]), Faults(failovers=1, cuts=1, crashes=1)),
        3_000_000,
    ),
}
"""With how many states each has at least: fewer would mean that something is not tried any more."""

TWINS = {
    "replies before the commit": (Case(ONE, client=twins.replies_before_the_commit), "left without its record"),
    "seals before the commit": (Case(ONE, ledger=twins.SealsBeforeTheCommit), "sealed before it was durable"),
    "repeats what it only looked at": (
        Case(ONE, Faults(unsealed=1), ledger=twins.RepeatsWhatItOnlyLookedAt),
        "left before its record was sealed",
    ),
    "replies before the seal": (Case(ONE, ledger=twins.RepliesBeforeTheSeal), "left before its record was sealed"),
    "repeats before the seal": (Case(ONE, ledger=twins.RepeatsBeforeTheSeal), "left before its record was sealed"),
    "looks before the turn": (Case(ONE, rules=UNGUARDED, ledger=twins.LooksBeforeTheTurn), "a was charged twice"),
    "counts before the turn": (Case(THREE, ledger=twins.CountsBeforeTheTurn), "budget of people was exceeded"),
    "keeps ids in memory": (Case(ONE, rules=UNGUARDED, ledger=twins.KeepsIdsInMemory), "a was charged twice"),
    "takes a lost commit for done": (
        Case(ONE, Faults(cuts=1), ledger=twins.TakesALostCommitForDone),
        "left without its record",
    ),
    "takes old copies": (
        Case(ONE, Faults(failovers=1), patches={"_check_seal": twins.takes_old_copies}),
        "an old copy was accepted",
    ),
    "holds no lock": (Case(BOTH, rules=Rules(locks=False, unique=False)), "nothing was lost"),
    "seals over what is sealed": (
        Case(THREE, Faults(cuts=1), Rules(seal=twins.seals_over_what_is_sealed)),
        "the seal went back",
    ),
    "leaves a late seal out": (
        Case(TWO, Faults(failovers=1), Rules(seal=twins.leaves_a_late_seal_out)),
        "left before its record was sealed",
    ),
    "leaves a late seal out, and not all follow": (
        Case(TWO, Faults(splits=1), Rules(seal=twins.leaves_a_late_seal_out)),
        "left before its record was sealed",
    ),
    "seals in two places": (
        Case((TWO[0], (request("b"), request("c"))), Faults(cuts=1), Rules(seal=twins.seals_in_two_places), budget=3.0),
        "the seal went back",
    ),
}


def keeps_its_promises(case: Case, least: int) -> None:
    found = explore(case)
    print(found)  # noqa: T201
    assert (found.fault, found.path) == ("", ())
    assert found.states > least
    assert (found.halted > 0) == (case.faults.failovers + case.faults.splits > 0), (
        "an old copy is refused, and nothing else is"
    )


@pytest.mark.few(3)
@pytest.mark.parametrize("name", SMALL)
def test_nothing_that_can_happen_breaks_a_promise(name: str) -> None:
    keeps_its_promises(*SMALL[name])


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.check if name == "two crashes" else pytest.mark.slow) for name in FULL],
)
def test_nothing_that_fails_with_something_else_breaks_a_promise(name: str) -> None:
    """Four million states, in two minutes of one core; `pytest -rP` shows what was counted."""
    keeps_its_promises(*FULL[name])


@pytest.mark.slow(seconds=80)
@pytest.mark.parametrize("name", LARGEST)
def test_nothing_in_the_largest_worlds_breaks_a_promise(name: str) -> None:
    """Six million states more, in two and a half minutes of one core, and 700 MB."""
    keeps_its_promises(*LARGEST[name])


@pytest.mark.few(5)
@pytest.mark.parametrize("name", TWINS)
def test_every_twin_is_found(name: str) -> None:
    case, said = TWINS[name]
    found = explore(case)
    assert said in found.fault
    assert found.path


@pytest.mark.check
@pytest.mark.parametrize("name", TWINS)
def test_a_twin_is_broken_in_nothing_else(name: str) -> None:
    """What it is asked, and what fails, is no fault of the ledger as it is."""
    case, _ = TWINS[name]
    assert explore(Case(case.requests, case.faults, budget=case.budget)).fault == ""


def test_what_is_explored_is_explored_alike_again() -> None:
    case = Case(TWO, Faults(crashes=1))
    assert explore(case) == explore(case)
