"""What the page of a run of the release game tells."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from compliance.mechanisms import MECHANISMS
from fairwall.laws.local import CLEAN
from sim.games.game import Line
from sim.games.release.questions import Answers, answers
from sim.games.release.report.cards import NOTE, cards
from sim.games.release.report.figures_of import shown, text_of
from sim.games.release.report.studied import sections
from sim.games.release.report.verdicts import RULES, protocol_title
from sim.games.release.scenario import QUERIES_SHARE, ReleaseScenario
from sim.games.release.seeds import Figures, of_run, table_name
from sim.report.cells import trials_id
from sim.report.notation import number, setting, several, symbol
from sim.report.page import Page, Section, Term
from sim.report.tables import Column, PageTable
from sim.scenarios.sweep import Sweep

if TYPE_CHECKING:
    from sim.report.drawing import Figure

_STUDIED = ("release.protocol", "release.split", "release.epsilon")

_TRUST = (
    "Who is trusted",
    "Local differential privacy is meant for people who perturb their own answers, so that they need trust nobody. "
    "Here compliance holds everybody's attributes and perturbs them for the people: the same release, but compliance "
    "and what it runs on are trusted with the attributes. What is promised holds against the developer, and whoever "
    "learns from it.",
)
_ASSUMPTIONS: tuple[Term, ...] = (
    _TRUST,
    (
        "What epsilon is about",
        "One person's sensitive attributes, all columns together, against any other values of them: each column costs "
        "its share of epsilon, and shares add up. The people's features and labels are the developer's already.",
    ),
    (
        "The test rows",
        "Models are audited on attributes as they are, by compliance, which evaluates the developer's trees itself. "
        "Nobody else sees these attributes. Utilities and exact gaps are not private.",
    ),
    (
        "The guesses",
        "Bayes's posterior by the protocol's public law, from the release alone and from all that the developer has: "
        "features, labels and the release. What other columns' releases tell is used where it makes the release of the "
        "protected column likelier by enough.",
    ),
    (
        "Queries about those trained on",
        "Where they are asked, one ledger and one epsilon pay for them and for the release, however it is shared: what "
        "both together tell of a person's attributes stays within epsilon. Queries are about the groups alone. The "
        "developer's last guess takes what it believes from the release for a prior, and answers for noisy sums.",
    ),
)


def page(sweep: Sweep[ReleaseScenario], lines: Sequence[Line], summary: Sequence[Line]) -> Page:
    """Make the page of a run.

    Parameters
    ----------
    sweep : Sweep
    lines : sequence of mapping
        The lines of ``trials.jsonl``.
    summary : sequence of mapping
        What they come to, for each cell.
    """
    # The paper shares nothing out: its questions and figures are for other runs.
    studied = _along_shares(summary) if QUERIES_SHARE in sweep.scenario.axes else _studied(sweep, lines)
    from sim.games.release.report.figures import style_of

    return Page(
        cards=cards(sweep.scenario.axes, summary, lambda protocol: str(style_of(protocol, hollow=False)["color"])),
        about_cards=NOTE,
        played=_played(sweep, lines),
        findings=_findings(summary),
        settings=_settings(sweep),
        sections=(*studied, _table(sweep, summary)) if summary else (),
        assumptions=(*_ASSUMPTIONS, *([RULES] if any(section.conclusions for section in studied) else [])),
    )


def _played(sweep: Sweep[ReleaseScenario], lines: Sequence[Line]) -> str:
    table = PurePath(sweep.scenario.data.source).name
    trained = f" of {lines[0]['people']:,} people" if lines else ""
    return (
        f"Compliance released sensitive attributes{trained} of {table} under local differential privacy. The developer "
        "trained gradient-boosted trees on them, and compliance audited the trees on people whose attributes it knows."
    )


def _findings(summary: Sequence[Line]) -> list[str]:
    if not summary:
        return ["No trial finished."]
    # As they are, attributes are no guess.
    known = [cell for cell in summary if cell["leakage"] is not None and cell["protocol"] != CLEAN]
    best = max(summary, key=lambda cell: cell["acc"])
    gaps = [100 * abs(cell["sp"]) for cell in summary]
    said = [
        f"Accuracy went from {100 * min(cell['acc'] for cell in summary):.1f}% to {100 * best['acc']:.1f}%, the "
        f"statistical parity gap, as an absolute value, from {min(gaps):.1f} to {max(gaps):.1f} points.",
    ]
    if known:
        most = max(known, key=lambda cell: cell["leakage"] - cell["leakage_baseline"])
        said.append(
            f"From a sanitised release the developer guessed at most {most['leakage']:.1f}% of the protected "
            "attributes of those it trained on, "
            f"where calling everybody by the commoner group is right for {most['leakage_baseline']:.1f}%."
        )
    return said


def _settings(sweep: Sweep[ReleaseScenario]) -> list[Term]:
    scenarios = [cell.scenario for cell in sweep.cells]

    return [
        ("Data", several([PurePath(one.data.source).name for one in scenarios])),
        ("Protocol", several([protocol_title(one.release.protocol) for one in scenarios])),
        ("Split of epsilon", several([one.release.split for one in scenarios])),
        ("Epsilon", several([one.release.epsilon for one in scenarios])),
        ("Audits answered by", several([MECHANISMS[one.compliance.mechanism].title for one in scenarios])),
        ("Splits", several([one.scenario.trials for one in scenarios])),
    ]


def _table(sweep: Sweep[ReleaseScenario], summary: Sequence[Line]) -> Section:
    axes = sweep.scenario.axes
    columns = [Column(symbol(key), [setting(cell[key]) for cell in summary], numeric=False) for key in axes]
    columns.append(Column("trials", [number(cell["trials"]) for cell in summary]))
    columns += [
        Column(figure.head, [text_of(figure, cell) for cell in summary], about=figure.about)
        for figure in shown(summary)
    ]
    notes = (
        "Means over trials. clean: attributes as they are (NonDP). dropped: no sensitive column. constant: the "
        "commoner label for everybody.",
    )
    links = [trials_id({key: cell[key] for key in axes}) for cell in summary]
    return Section("cells", "Models and guesses", table=PageTable(columns, notes, links, max(1, len(axes))))


def _along_shares(summary: Sequence[Line]) -> tuple[Section, ...]:
    # Imported here and below: matplotlib costs as much as all the rest.
    from sim.games.release.report.shares import along_shares

    figures = along_shares(summary)
    return (Section("figures", "Figures", figures=figures),) if figures else ()


def _studied(sweep: Sweep[ReleaseScenario], lines: Sequence[Line]) -> tuple[Section, ...]:
    """Put the paper's questions, and draw its figures."""
    from sim.games.release.report.figures import draw

    told: list[tuple[str, Answers]] = []
    drawn: dict[str, list[Figure]] = {}
    for within, figures in _parts(sweep, lines):
        for answered in answers(figures):
            told.append((within, answered))
            drawn.setdefault(answered.data, []).extend(draw(figures, answered.data, within=within))
    return tuple(section for data, figures in drawn.items() for section in sections(data, told, figures))


def _parts(sweep: Sweep[ReleaseScenario], lines: Sequence[Line]) -> Iterator[tuple[str, Figures]]:
    """Part a run by whatever is swept besides protocol, split and epsilon: what it is, and figures."""
    others = [key for key in sweep.scenario.axes if key not in _STUDIED]
    parts: dict[str, list[Line]] = {}
    for line in lines:
        parts.setdefault(json.dumps([line[key] for key in others]), []).append(line)
    for part in parts.values():
        within = ", ".join(f"{symbol(key)} {setting(part[0][key])}" for key in others if key != "data.source")
        yield within, of_run(sweep, part, table_name)
