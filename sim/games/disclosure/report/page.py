"""What the page of a run of the disclosure game tells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sim.games.disclosure.report.cards import NAMES, NOTE, cards
from sim.games.disclosure.report.cells import advantage_of, advantage_text, bound_text, head, linked_of, name_of
from sim.games.disclosure.report.figures import draw
from sim.games.disclosure.scenario import DisclosureScenario
from sim.games.game import Line
from sim.report.cells import trials_id
from sim.report.drawing import Look, looks
from sim.report.notation import count, number, setting, several, span
from sim.report.page import Page, Section, Term
from sim.report.tables import Column, PageTable
from sim.scenarios.sweep import Sweep

_ASSUMPTIONS: tuple[Term, ...] = (
    (
        "The three modes",
        "Dalenius (1977): identity, a record is linked to a person; attribute, something about a person follows from a "
        "release that holds the person; inferential, something about a person becomes likelier, whether the person is "
        "in the data or not.",
    ),
    (
        "What epsilon is about",
        "One person takes part or not, or answers otherwise. A count of yes answers moves by 1 at most, and compliance "
        "adds two-sided geometric noise. Who else takes part, and everybody's quasi-identifiers, are public. Records "
        "without names have no epsilon.",
    ),
    (
        "The bound",
        "For laws of a release that are ε-close, P(guess 1 | secret 1) − P(guess 1 | secret 0) is at most "
        "(e^ε − 1)/(e^ε + 1) = tanh(ε/2), whatever the guess and the prior; for a fair coin, as here, that is "
        "2 P(right) − 1. It applies where the secret changes Alice's own record and nothing else. Where the secret "
        "goes with other people's answers, as in inferential disclosure, it does not.",
    ),
    (
        "The adversary",
        "The developer, which asked for the table: it knows the law of the answers and of the noise, and who takes "
        "part; where it knows the others, also everybody else's answer. Its guess is Bayes's: no other does better.",
    ),
    (
        "Intervals",
        "Trials are independent studies. The advantage's interval is Newcombe's for a difference of two shares, on "
        "Clopper and Pearson's limits, at 95%, each cell's by itself. Cells share their trials' draws of the secret.",
    ),
)


def page(sweep: Sweep[DisclosureScenario], lines: Sequence[Line], summary: Sequence[Line]) -> Page:
    """Make the page of a run.

    Parameters
    ----------
    sweep : Sweep
    lines : sequence of mapping
        The lines of ``trials.jsonl``.
    summary : sequence of mapping
        What they come to, for each cell.
    """
    look = looks(cell["mode"] for cell in summary)
    return Page(
        cards=cards(sweep.scenario.axes, summary, {mode: own.colour for mode, own in look.items()}),
        about_cards=NOTE,
        played=_played(lines),
        findings=tuple(_findings(sweep, summary)) or ("No trial finished.",),
        settings=_settings(sweep),
        sections=tuple(_sections(sweep, summary, look)) if summary else (),
        assumptions=_ASSUMPTIONS,
    )


def _played(lines: Sequence[Line]) -> str:
    people = f" of {span({line['people'] for line in lines})} people" if lines else ""
    return (
        f"Compliance held a study{people}, and released a table of it. The referee drew a secret about one person, "
        "Alice, and dealt the study with her or without her. The developer, which asked for the table, computed how "
        "likely the secret is given what was released, and guessed."
    )


def _findings(sweep: Sweep[DisclosureScenario], summary: Sequence[Line]) -> Iterator[str]:
    for mode, title in NAMES.items():
        cells = [cell for cell in summary if cell["mode"] == mode and cell["advantage"] is not None]
        if not cells:
            continue
        most = max(cells, key=lambda cell: cell["advantage"])
        yield (
            f"{title}: the largest advantage was {advantage_of(most).text(2)} ({name_of(sweep.scenario.axes, most)}), "
            f"where tanh(ε/2) is {most['bound']:.2f}{_judged(most)}"
        )
    named = [cell for cell in summary if cell["named"]]
    if named:
        best = max(named, key=lambda cell: cell["linked"] / cell["named"])
        yield (
            f"Records: of {count(best['named'])} releases the developer named Alice's record in "
            f"{100 * best['linked'] / best['named']:.0f}% ({name_of(sweep.scenario.axes, best)}); her "
            f"quasi-identifiers were hers alone in {100 * best['unique']:.0f}%."
        )


def _judged(cell: Line) -> str:
    if cell["bound_applies"]:
        beyond = cell["advantage_low"] > cell["bound"]
        return ": above what epsilon allows, so something is broken." if beyond else "."
    if cell["advantage_low"] > cell["bound"]:
        return ", which is no bound here: what a study teaches about people like Alice no epsilon hides."
    return ", which is no bound here."


def _settings(sweep: Sweep[DisclosureScenario]) -> list[Term]:
    asked = [cell.scenario.disclosure for cell in sweep.cells]

    return [
        ("Modes", several([one.mode for one in asked])),
        ("People besides Alice", several([one.people for one in asked])),
        ("Cells", several([one.cells for one in asked])),
        ("Epsilon", several([one.epsilon for one in asked])),
        ("The developer knows", several([one.knows for one in asked])),
        ("Trials a cell", several([cell.scenario.scenario.trials for cell in sweep.cells])),
    ]


def _sections(sweep: Sweep[DisclosureScenario], summary: Sequence[Line], look: Mapping[str, Look]) -> Iterator[Section]:
    columns = [
        *_axes(sweep, summary),
        Column("trials", [number(cell["trials"]) for cell in summary]),
        Column(
            "prior",
            [f"{cell['prior']:.2f}" for cell in summary],
            about="How likely the secret’s “yes” was before anything was released: the referee tossed a coin.",
        ),
        Column(
            "posterior of the truth",
            [f"{cell['posterior_of_truth']:.3f}" for cell in summary],
            about="What probability the true answer was given after the release, on average.",
        ),
        Column(
            "advantage",
            [advantage_text(cell) for cell in summary],
            about="P(guess 1 | secret 1) − P(guess 1 | secret 0), measured: 0 is a coin, 1 is certain.",
            stays=True,
        ),
        Column(
            "by the law",
            [f"{cell['advantage_law']:.3f}" for cell in summary],
            about="The largest advantage that any guess has, computed from the release’s public law.",
        ),
        Column(
            "tanh(ε/2)",
            [bound_text(cell) for cell in summary],
            about="The largest advantage that epsilon allows where the secret is Alice’s record alone.",
        ),
    ]
    starred = not all(cell["bound_applies"] for cell in summary)
    notes = ("*: no bound here, since the secret goes with others' answers.",) if starred else ()
    figures = (draw(sweep, summary, look),) if any(cell["advantage"] is not None for cell in summary) else ()
    yield Section("secret", "The secret", table=_table(sweep, summary, columns, notes), figures=figures)
    named = [cell for cell in summary if cell["named"]]
    if named:
        columns = [
            *_axes(sweep, named),
            Column("releases", [number(cell["named"]) for cell in named]),
            Column("prior", [number(cell["linked_prior"], 2) for cell in named], about="One of all records."),
            Column(
                "right",
                [linked_of(cell).text(2) for cell in named],
                about="In which share of the releases the record that the developer named was Alice’s.",
            ),
            Column(
                "by the law",
                [f"{cell['linked_law']:.3f}" for cell in named],
                about="One of the records with her quasi-identifiers: what is known of her besides.",
            ),
            Column(
                "unique",
                [f"{cell['unique']:.3f}" for cell in named],
                about="In which share of the releases nobody else has her quasi-identifiers.",
            ),
        ]
        notes = (
            "Which of the released records is Alice's. Sweeney (2000) found 87% of the United States' population "
            "unique by ZIP code, date of birth and sex.",
        )
        yield Section("records", "Which record is hers", table=_table(sweep, named, columns, notes))


def _table(
    sweep: Sweep[DisclosureScenario], cells: Sequence[Line], columns: Sequence[Column], notes: Sequence[str]
) -> PageTable:
    axes = sweep.scenario.axes
    return PageTable(columns, notes, [trials_id({key: cell[key] for key in axes}) for cell in cells], len(axes))


def _axes(sweep: Sweep[DisclosureScenario], cells: Sequence[Line]) -> list[Column]:
    return [Column(head(key), [setting(cell[key]) for cell in cells], numeric=False) for key in sweep.scenario.axes]
