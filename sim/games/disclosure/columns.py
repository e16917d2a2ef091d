"""Columns of the tables of a disclosure run."""

from __future__ import annotations

from collections.abc import Sequence

from sim.games.game import Line
from sim.report.cells import Swept
from sim.report.columns import Measure, Sheet, share_of
from sim.report.estimates import FEWEST, IntervalEstimate
from sim.report.notation import number
from sim.scenarios.sweep import Sweep

PRIOR: Measure[Line] = Measure(
    "prior", digits=2, about="how likely the secret’s “yes” was before anything was released: the referee tossed a coin"
)
POSTERIOR: Measure[Line] = Measure(
    "posterior_of_truth",
    "posterior of the truth",
    digits=3,
    short="post-\nerior",
    about="what probability the true answer was given after the release, on average",
    scale=(0.5, 1.0),
)


def advantage_of(cell: Line) -> IntervalEstimate | None:
    """Return the estimated advantage, in [-1, 1]; None where the secret was the same in all trials."""
    if cell["advantage"] is None:
        return None
    ends = (cell["advantage_low"], cell["advantage_high"]) if cell["trials"] >= FEWEST else (None, None)
    return IntervalEstimate(cell["advantage"], *ends)


linked_of = share_of("linked", "named")

SECRET: tuple[Measure[Line], ...] = (
    Measure("trials"),
    PRIOR,
    POSTERIOR,
    Measure(
        "advantage",
        of=advantage_of,
        digits=2,
        short="advantage",
        main=True,
        about="P(guess 1 | secret 1) − P(guess 1 | secret 0), measured: 0 is a coin, 1 is certain",
    ),
    Measure(
        "advantage_law",
        "by the law",
        digits=3,
        short="law",
        about="the largest advantage that any guess has, computed from the release’s public law",
    ),
    Measure(
        "bound",
        "tanh(ε/2)",
        of=lambda cell: f"{cell['bound']:.2f}{'' if cell['bound_applies'] else '*'}",
        short="bound",
        about="the largest advantage that epsilon allows where the secret is Alice’s record alone, tanh(ε/2)",
    ),
)
RECORDS: tuple[Measure[Line], ...] = (
    Measure("named", "releases"),
    Measure(
        "linked_prior",
        "prior",
        of=lambda cell: number(cell["linked_prior"], 2),
        short="prior",
        about="one of all records",
    ),
    Measure(
        "linked",
        "right",
        of=linked_of,
        digits=2,
        short="right",
        main=True,
        about="in which share of the releases the record that the developer named was Alice’s",
    ),
    Measure(
        "linked_law",
        "by the law",
        digits=3,
        short="law",
        about="one of the records with her quasi-identifiers: what is known of her besides",
    ),
    Measure(
        "unique", digits=3, short="unique", about="in which share of the releases nobody else has her quasi-identifiers"
    ),
)
_STAR = "*: no bound here, since the secret goes with others' answers."


def swept_in(sweep: Sweep) -> Swept:
    """Return the keys that distinguish the cells."""
    return Swept(sweep.scenario.axes, told=("disclosure.alice", "disclosure.knows"))


def tables(sweep: Sweep, _lines: Sequence[Line], summary: Sequence[Line]) -> list[Sheet[Line]]:
    """Return the table of the secret and, where records were released, that of Alice's record; one row per cell."""
    swept = swept_in(sweep)
    starred = "" if all(cell["bound_applies"] for cell in summary) else _STAR
    told = [
        Sheet(
            "secret",
            "The secret",
            swept,
            summary,
            SECRET,
            notes=[starred] if starred else (),
            caption=f"The secret's prior is 0.50. {starred}".rstrip(),
        )
    ]
    if named := [cell for cell in summary if cell["named"]]:
        notes = (
            "Which of the released records is Alice's. Sweeney (2000) found 87% of the United States' population "
            "unique by ZIP code, date of birth and sex.",
        )
        told.append(Sheet("records", "Which record is hers", swept, named, RECORDS, notes))
    return told
