"""What the page of a run of the game of groups tells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sim.games.game import Line
from sim.games.groups.report.cards import NOTE, cards
from sim.games.groups.report.cells import attack_of, head, leakage_of, name_of, value_of
from sim.games.groups.report.figures import draw
from sim.games.groups.scenario import GroupsScenario
from sim.report.cells import trials_id
from sim.report.drawing import Look, looks
from sim.report.estimates import INTERVALS
from sim.report.notation import number, several, span
from sim.report.page import Page, Section, Term
from sim.report.tables import Column, PageTable
from sim.scenarios.sweep import Sweep

_ASSUMPTIONS: tuple[Term, ...] = (
    (
        "What epsilon is about",
        "One person's group becomes any other one. Compliance tells how many people of each stratum, which is whoever "
        "the same models accept, are in each group, with noise that sums up to 0 over the groups.",
    ),
    (
        "The bound",
        "Of one person, and k groups that count equally, no guess is right more often than 1 / (1 + (k − 1) e^−ε), "
        "whatever else the guesser knows of others.",
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
    """Make the page of a run, from its sweep, the lines of ``trials.jsonl`` and what they come to."""
    axes = sweep.scenario.axes
    look = looks(attack_of(axes, cell) for cell in summary)
    return Page(
        cards=cards(axes, summary, {attack: own.colour for attack, own in look.items()}),
        about_cards=NOTE,
        played=_played(lines),
        findings=tuple(_findings(sweep, summary)) or ("No trial finished.",),
        settings=_settings(sweep),
        sections=(_section(sweep, summary, look),) if summary else (),
        assumptions=_ASSUMPTIONS,
    )


def _played(lines: Sequence[Line]) -> str:
    groups, people = (span({line[key] for line in lines}) if lines else "" for key in ("groups", "people"))
    who = f"{people} people of {groups} groups" if lines else "people of several groups"
    return (
        f"Compliance held {who}. The developer asked how many of those whom its models accept are in each group, and "
        "guessed who is in which."
    )


def _findings(sweep: Sweep[GroupsScenario], summary: Sequence[Line]) -> Iterator[str]:
    if not summary:
        return
    worst = max(summary, key=lambda cell: cell["leakage"] - cell["chance"])
    found = leakage_of(worst)
    above = found.low is not None and found.low > worst["bound"]
    yield (
        f"The largest leakage above chance was {found.text(1, '%')} ({name_of(sweep.scenario.axes, worst)}), where "
        f"guessing without answers gives {worst['chance']:.1f}%, and epsilon allows {worst['bound']:.1f}%"
        f"{': above what epsilon allows, so something is broken' if above else ''}."
    )


def _settings(sweep: Sweep[GroupsScenario]) -> list[Term]:
    asked = [cell.scenario.groups for cell in sweep.cells]
    return [
        ("People", several([one.people for one in asked])),
        ("Groups of", several([" × ".join(one.columns) or one.source for one in asked])),
        ("Epsilon", several([one.epsilon for one in asked])),
        ("Strategy", several([one.strategy for one in asked])),
        ("Batches", several([one.batches for one in asked])),
        ("Models a batch", several([one.models for one in asked])),
        ("Trials a cell", several([cell.scenario.scenario.trials for cell in sweep.cells])),
    ]


def _section(sweep: Sweep[GroupsScenario], summary: Sequence[Line], look: Mapping[str, Look]) -> Section:
    columns = [
        *(Column(head(key), [value_of(cell[key]) for cell in summary], numeric=False) for key in sweep.scenario.axes),
        Column("trials", [number(cell["trials"]) for cell in summary]),
        Column("groups", [number(cell["groups"]) for cell in summary], about="That somebody is in, on average."),
        Column(
            "leakage, %",
            [str(leakage_of(cell)) for cell in summary],
            about="The mean over the groups of the share of their people who are guessed right: balanced accuracy.",
            stays=True,
        ),
        Column(
            "chance, %",
            [f"{cell['chance']:.1f}" for cell in summary],
            about="The same of a guess without answers: one in as many as there are groups.",
        ),
        Column(
            "bound, %",
            [f"{cell['bound']:.1f}" for cell in summary],
            about="What epsilon allows about one person: how often any guess is right.",
        ),
        Column(
            "people right",
            [number(cell["recovered"]) for cell in summary],
            about="How many people are guessed right, whichever their group.",
        ),
    ]
    links = [trials_id({key: cell[key] for key in sweep.scenario.axes}) for cell in summary]
    table = PageTable(columns, links=links, keys=len(sweep.scenario.axes))
    return Section("groups", "Who is in which group", table=table, figures=tuple(draw(sweep, summary, look)))
