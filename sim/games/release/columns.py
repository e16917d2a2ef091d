"""Columns of the table of a release run."""

from __future__ import annotations

from collections.abc import Sequence

from fairwall.laws.local import LOCAL_LAWS
from sim.games.game import Line
from sim.games.release.scenario import UNIFORM_AT_K_BASED
from sim.report.cells import Swept
from sim.report.columns import Measure, Sheet
from sim.report.notation import setting
from sim.scenarios.sweep import Sweep

_RATE = "statistical parity difference, the advantaged group’s rate of predicted 1 less the disadvantaged one’s"
_DI = "disparate impact, the disadvantaged group’s rate of predicted 1 over the advantaged one’s; 1 is equal"
_OAD = "overall accuracy difference, the advantaged group’s accuracy less the disadvantaged one’s"
_ALONE = "share of those trained on whose group is guessed right from the release alone"

_TOLD: Sequence[tuple[str, str, str, str, str, float, int]] = (
    ("acc", "accuracy", "%", "acc", "share of the test rows that the model is right about", 100, 1),
    ("f1", "F1", "%", "F1", "harmonic mean of recall and of the share of predicted 1 that is right", 100, 1),
    ("recall", "recall", "%", "", "share of the rows of label 1 that are predicted so", 100, 1),
    ("auc", "AUC", "%", "", "area under the ROC curve, how often a row of label 1 has the higher score of two", 100, 1),
    ("auc_hard", "AUC on decisions (the paper's)", "%", "", "the same of decisions in place of scores", 100, 1),
    ("sp", "SPD", "points", "SPD", _RATE, 100, 1),
    ("di", "DI", "", "DI", _DI, 1, 2),
    ("eo", "EOD", "points", "EOD", "equal opportunity difference, as SPD, of rows of label 1 alone", 100, 1),
    ("oad", "OAD", "points", "OAD", _OAD, 100, 1),
    ("epsilon_protected", "ε of the protected attribute", "", "", "what of epsilon its release was given", 1, 2),
    ("consistent", "profiles of one person", "%", "", "people whose released columns could be one person’s", 100, 1),
    ("leakage_baseline", "commoner group", "%", "", "right if everybody is called by the commoner group", 1, 1),
    ("leakage_release", "guessed from the release", "%", "guess\nalone", _ALONE, 1, 1),
    ("leakage", "guessed from everything", "%", "guess\nall", "the same from the release, features and labels", 1, 1),
    ("leakage_mixture", "guessed with queries about them", "%", "guess\nmix", "the same with answers besides", 1, 1),
)
"""Name, title, unit, terminal's head, meaning, factor when shown, number of decimals."""

FACTORS = {name: factor for name, *_, factor, _ in _TOLD}
MEASURES: dict[str, Measure[Line]] = {
    name: Measure(
        name,
        title,
        unit,
        of=lambda cell, name=name, factor=factor: None if cell.get(name) is None else factor * cell[name],  # type: ignore[misc]
        digits=digits,
        short=short,
        about=about,
        kept=name in ("acc", "leakage_release", "leakage"),
        scale=(50.0, 100.0) if name == "leakage" else None,
    )
    for name, title, unit, short, about, factor, digits in _TOLD
}
"""The measures of a cell, in the order of the page and the terminal."""


def protocol_title(protocol: str) -> str:
    """Return the title of a protocol, or a control's name."""
    return LOCAL_LAWS[protocol].title if protocol in LOCAL_LAWS else protocol


def change(name: str, value: float, *, finer: int = 0) -> str:
    """Return a change of a measure as text, with its sign, and `finer` more decimals than the measure has."""
    return signed(FACTORS[name] * value, (MEASURES[name].digits or 0) + finer)


def signed(value: float, digits: int) -> str:
    """Return a number as text with its sign, unless it rounds to zero."""
    text = f"{value:+.{digits}f}".replace("-", "−")
    return text if text.strip("+−0.") else text.lstrip("+−")


def swept_in(sweep: Sweep) -> Swept:
    """Return the keys that distinguish the cells."""

    def write(cell: Line, key: str) -> str:
        return "uniform*" if cell[key] == UNIFORM_AT_K_BASED else setting(cell[key])

    return Swept(sweep.scenario.axes, {"release.epsilon": "ε"}, write)


def tables(sweep: Sweep, _lines: Sequence[Line], summary: Sequence[Line]) -> list[Sheet[Line]]:
    """Return the table of models and guesses, one row per cell."""
    starred = any(cell.scenario.release.split == UNIFORM_AT_K_BASED for cell in sweep.cells)
    star = ["uniform*: at the epsilon that k-based gives the protected column."] if starred else []
    notes = [
        "Means over trials. clean: attributes as they are (NonDP). dropped: no sensitive column. constant: the "
        "commoner label for everybody.",
        *star,
    ]
    known = sorted(cell["leakage_baseline"] for cell in summary) or [0.0]
    commoner = " to ".join(dict.fromkeys(f"{share:.1f}" for share in (known[0], known[-1])))
    caption = [
        "Means over trials, of the model on clean test rows.",
        f"Calling everybody by the commoner group is right for {commoner}%.",
        *star,
    ]
    columns = (Measure[Line]("trials"), *MEASURES.values())
    return [Sheet("cells", "Models and guesses", swept_in(sweep), summary, columns, notes, " ".join(caption))]
