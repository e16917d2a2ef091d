"""Texts of the page of a release run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from compliance.mechanisms import MECHANISMS
from fairwall.laws.local import CLEAN
from sim.games.game import Line
from sim.games.release import studied
from sim.games.release.columns import protocol_title, swept_in, tables
from sim.games.release.figures import along_shares, draw, look_of
from sim.games.release.questions import ReleaseFindings, answers
from sim.games.release.scenario import CONTROLS, QUERIES_SHARE, ReleaseScenario
from sim.games.release.seeds import of_run, table_name
from sim.report.cells import Swept, best_of_each
from sim.report.drawing import Figure
from sim.report.notation import number
from sim.report.page import Bar, Card, Page, PageSection, Term, sections, settings
from sim.scenarios.sweep import Sweep

_STUDIED = ("release.protocol", "release.split", "release.epsilon")
_GUESSES = {
    "leakage_release": "from the release alone",
    "leakage": "from the release, features and labels",
    "leakage_mixture": "from the release, features, labels and queries",
}
_CARDS = (
    "The best guess of those played with each protocol and epsilon, of people that the model was trained on: means "
    "over trials. A guess that knows nothing calls everybody by the commoner group."
)
_ASSUMPTIONS: tuple[Term, ...] = (
    (
        "Who is trusted",
        "Local differential privacy is meant for people who perturb their own answers, so that they need trust nobody. "
        "Here compliance holds everybody's attributes and perturbs them for the people: the same release, but "
        "compliance and what it runs on are trusted with the attributes. What is promised holds against the developer, "
        "and whoever learns from it.",
    ),
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
    """Return the page of a run, from its sweep, the lines of `trials.jsonl` and their summary."""
    if QUERIES_SHARE in sweep.scenario.axes:
        # The paper has no queries: its questions and figures are for other runs.
        figures = along_shares(summary)
        own = [PageSection("figures", "Figures", figures=figures)] if figures else []
    else:
        own = list(_studied(sweep, lines))
    asked = any(section.conclusions for section in own)
    return Page(
        cards=list(_cards(swept_in(sweep), summary)),
        about_cards=_CARDS,
        played=_played(sweep, lines),
        findings=list(_findings(summary)),
        settings=settings(
            sweep,
            {
                "Data": lambda one: PurePath(one.data.source).name,
                "Protocol": lambda one: protocol_title(one.release.protocol),
                "Split of epsilon": lambda one: one.release.split,
                "Epsilon": lambda one: one.release.epsilon,
                "Audits answered by": lambda one: MECHANISMS[one.compliance.mechanism].title,
                "Splits": lambda one: one.scenario.trials,
            },
        ),
        sections=(*own, *sections(tables(sweep, lines, summary), {})) if summary else (),
        assumptions=(*_ASSUMPTIONS, *([studied.RULES] if asked else [])),
    )


def _cards(swept: Swept, summary: Sequence[Line]) -> Iterator[Card]:
    def title(cell: Line) -> str:
        """Return the card's title, with the swept epsilon, or else the cell's; a split may leave some of it."""
        epsilon = number(cell.get("release.epsilon", cell["epsilon"]), 6)
        return f"{protocol_title(cell['protocol'])}, ε = {epsilon}"

    guesses = [
        (cell, max(told, key=lambda key: cell[key]))
        for cell in summary
        if cell["protocol"] not in CONTROLS and (told := [key for key in _GUESSES if cell.get(key) is not None])
    ]
    for cell, best in best_of_each(
        guesses, lambda one: title(one[0]), lambda one: one[0]["leakage_baseline"] - one[0][one[1]]
    ):
        reached, before = cell[best], cell["leakage_baseline"]
        others = swept.name(cell, ("release.protocol", "release.epsilon"))
        text = (
            f"The developer guesses the group of {reached:.1f}% of people right {_GUESSES[best]}; knowing nothing it "
            f"would be {before:.1f}%. Its models are right about {100 * cell['acc']:.1f}% of test rows"
            f"{f' ({others})' if others else ''}."
        )
        bar = Bar.on((0.0, 100.0), before, reached, ("0%", "100%: everybody"), f"From {before:.0f}% to {reached:.0f}%")
        yield Card(title(cell), text, bar, look_of(cell["protocol"]).colour)


def _played(sweep: Sweep[ReleaseScenario], lines: Sequence[Line]) -> str:
    table = PurePath(sweep.scenario.data.source).name
    trained = f" of {lines[0]['people']:,} people" if lines else ""
    return (
        f"Compliance released sensitive attributes{trained} of {table} under local differential privacy. The developer "
        "trained gradient-boosted trees on them, and compliance audited the trees on people whose attributes it knows."
    )


def _findings(summary: Sequence[Line]) -> Iterator[str]:
    if not summary:
        yield "No trial finished."
        return
    right = [100 * cell["acc"] for cell in summary]
    gaps = [100 * abs(cell["sp"]) for cell in summary]
    yield (
        f"Accuracy went from {min(right):.1f}% to {max(right):.1f}%, the statistical parity gap, as an absolute value, "
        f"from {min(gaps):.1f} to {max(gaps):.1f} points."
    )
    # In the clean control the attributes are known, not guessed.
    known = [cell for cell in summary if cell["leakage"] is not None and cell["protocol"] != CLEAN]
    if known:
        most = max(known, key=lambda cell: cell["leakage"] - cell["leakage_baseline"])
        yield (
            f"From a sanitised release the developer guessed at most {most['leakage']:.1f}% of the protected "
            "attributes of those it trained on, where calling everybody by the commoner group is right for "
            f"{most['leakage_baseline']:.1f}%."
        )


def _studied(sweep: Sweep[ReleaseScenario], lines: Sequence[Line]) -> Iterator[PageSection]:
    """Yield the paper's questions and figures, for each part of the run if other keys than its own are swept."""
    others = [key for key in sweep.scenario.axes if key not in _STUDIED]
    parts: dict[str, list[Line]] = {}
    for line in lines:
        parts.setdefault(json.dumps([line[key] for key in others]), []).append(line)
    told: list[tuple[str, ReleaseFindings]] = []
    drawn: dict[str, list[Figure]] = {}
    for part in parts.values():
        within, figures = swept_in(sweep).name(part[0], (*_STUDIED, "data.source")), of_run(sweep, part, table_name)
        for answered in answers(figures):
            told.append((within, answered))
            drawn.setdefault(answered.data, []).extend(draw(figures, answered.data, within=within))
    for data, own in drawn.items():
        yield from studied.sections(data, told, own)
