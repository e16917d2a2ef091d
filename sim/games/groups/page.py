"""The page of a run of the groups game: its figures and its texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sim.games.game import Line
from sim.games.groups.columns import attack_of, leakage_of, right_of, set_of, tables
from sim.games.groups.scenario import GroupsScenario
from sim.report.cells import Swept, best_of_each
from sim.report.drawing import Figure, MarkStyle, looks
from sim.report.estimates import INTERVALS
from sim.report.interval_plot import DotPanel, Row, dot_plot
from sim.report.notation import count, setting, span
from sim.report.page import Bar, Card, Page, Term, sections, settings
from sim.scenarios.sweep import Sweep

_TITLE = "Who is named right, by group"
_CAPTION = (
    "Of each group's people, the percentage that the guess names right, with 95% intervals over the trials; a panel an "
    "epsilon. The last row is the leakage, in which groups count equally."
)
_PANELS = 4
"""Largest number of panels side by side."""


def draw(swept: Swept, summary: Sequence[Line], look: Mapping[str, MarkStyle]) -> Iterator[Figure]:
    """Yield a figure per set of groups, with a panel per epsilon and a mark per attack; `look` is by attack."""
    sets: dict[tuple[str, ...], list[Line]] = {}
    for cell in summary:
        sets.setdefault(tuple(cell["right"]), []).append(cell)
    for number, (groups, cells) in enumerate(sets.items(), 1):
        attacks = {(attack_of(swept, cell), cell["epsilon"]): cell for cell in cells}
        epsilons = list(dict.fromkeys(epsilon for _, epsilon in attacks))
        about = set_of(swept, cells[0])
        title = f"{_TITLE}: {about}" if about else _TITLE
        for first in range(0, len(epsilons), _PANELS):
            panels = [
                DotPanel(
                    f"ε {setting(epsilon)}",
                    {attack: list(_rows(groups, attacks.get((attack, epsilon)))) for attack, _ in attacks},
                    level=cells[0]["chance"],
                )
                for epsilon in epsilons[first : first + _PANELS]
            ]
            name = f"by-group-{number}-{1 + first // _PANELS}"
            yield dot_plot(name, title, _CAPTION, panels, level="without answers", same_scale=True, look=look)


def _rows(groups: Sequence[str], cell: Line | None) -> Iterator[Row]:
    """Yield a cell's rows; without numbers where this attack was not played at this epsilon."""
    yield from ((group, right_of(cell, group) if cell else None) for group in groups)
    yield "all, equally", leakage_of(cell) if cell else None


_CARDS = (
    "The best attack of those played; balanced accuracy is the mean, over the groups that somebody is in, of the share "
    "that is named right."
)
_ASSUMPTIONS: tuple[Term, ...] = (
    (
        "What epsilon is about",
        "One person's group becomes any other one. Compliance tells how many people of each stratum, which is whoever "
        "the same models accept, are in each group, with noise that sums up to 0 over the groups.",
    ),
    (
        "The bound",
        "Of one person, and k groups that count equally, no guess is right more often than 1 / (1 + (k − 1) e^(−2ε)): "
        "how large each group is is public, so that whoever is of another one changes places with somebody.",
    ),
    (
        "The adversary",
        "The developer, which knows how large each group is among people like these. It asks about models that it made "
        "to find out who is in which group, and not to decide anything; it reads all answers by least squares, each "
        "group's prior share counted in. An attack that knows more of people may do better.",
    ),
    ("Intervals", INTERVALS),
)


def page(sweep: Sweep[GroupsScenario], lines: Sequence[Line], summary: Sequence[Line]) -> Page:
    """Return the page of a run, from its sweep, the lines of `trials.jsonl` and their summary."""
    swept = Swept(sweep.scenario.axes)
    look = looks(attack_of(swept, cell) for cell in summary)
    most = best_of_each(
        summary, lambda cell: (set_of(swept, cell), cell["epsilon"]), lambda cell: cell["chance"] - cell["leakage"]
    )
    return Page(
        cards=[_card(swept, cell, look[attack_of(swept, cell)].colour) for cell in most],
        about_cards=_CARDS,
        played=_played(lines),
        findings=tuple(_findings(swept, summary)) or ("No trial finished.",),
        settings=settings(
            sweep,
            {
                "People": lambda one: one.groups.people,
                "Groups of": lambda one: one.groups.columns or one.groups.source,
                "Epsilon": lambda one: one.groups.epsilon,
                "Strategy": lambda one: one.groups.strategy,
                "Batches": lambda one: one.groups.batches,
                "Models a batch": lambda one: one.groups.models,
                "Trials a cell": lambda one: one.scenario.trials,
            },
        ),
        sections=sections(tables(sweep, lines, summary), {"groups": [*draw(swept, summary, look)]}) if summary else (),
        assumptions=_ASSUMPTIONS,
    )


def _card(swept: Swept, cell: Line, colour: str) -> Card:
    found, attack = leakage_of(cell), attack_of(swept, cell)
    text = (
        f"The attacker{f' ({attack})' if attack else ''} is right about {count(cell['recovered'])} of "
        f"{cell['people']:,} people; counting all groups equally, {found.text(1, '%', ends=0)}, without answers "
        f"{cell['chance']:.1f}%, and ε allows {cell['bound']:.1f}%."
    )
    alt = f"Counting all groups equally: from {cell['chance']:.0f}% without answers to {found.mean:.0f}%"
    bar = Bar.on((0.0, 100.0), cell["chance"], found.mean, ("0%", "100%: everybody"), alt)
    title = ", ".join(filter(None, (set_of(swept, cell), f"ε = {setting(cell['epsilon'])}")))
    return Card(title[:1].upper() + title[1:], text, bar, colour)


def _played(lines: Sequence[Line]) -> str:
    groups, people = (span({line[key] for line in lines}) if lines else "" for key in ("groups", "people"))
    who = f"{people} people of {groups} groups" if lines else "people of several groups"
    return (
        f"Compliance held {who}. The developer asked how many of those whom its models accept are in each group, and "
        "guessed who is in which."
    )


def _findings(swept: Swept, summary: Sequence[Line]) -> Iterator[str]:
    if not summary:
        return
    worst = max(summary, key=lambda cell: cell["leakage"] - cell["chance"])
    found = leakage_of(worst)
    above = found.low is not None and found.low > worst["bound"]
    yield (
        f"The largest leakage above chance was {found.text(1, '%')} ({swept.name(worst) or 'the run'}), where "
        f"guessing without answers gives {worst['chance']:.1f}%, and epsilon allows {worst['bound']:.1f}%"
        f"{': above what epsilon allows, so something is broken' if above else ''}."
    )
