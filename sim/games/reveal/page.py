"""Texts of the page of a reveal run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from compliance.mechanisms import MECHANISMS
from fairwall.laws.metrics.metric import METRICS
from sim.games.game import Line
from sim.games.reveal.assumptions import assumptions
from sim.games.reveal.cells import (
    ReportCell,
    as_needed,
    best_attacks,
    loss_test_rows,
    rank,
    report_cells,
    target_rate,
    worthless,
)
from sim.games.reveal.columns import swept_in, tables
from sim.games.reveal.figures import draw_figures
from sim.games.reveal.scenario import RevealScenario
from sim.report import page as kit
from sim.report.drawing import looks
from sim.report.estimates import FEWEST, IntervalEstimate, share
from sim.report.notation import count, number, plural, several, span
from sim.report.page import Bar, Card, Page, PageSection, Term
from sim.scenarios.sweep import Sweep

_COIN = 50.0
_EQUALLY = "counting both groups equally"
_SAID = ("developer.queries", "compliance.epsilon", "compliance.mechanism")
"""Keys that a finding's sentence states anyway."""

_LOSS_TEST = (
    "The adversary outside had public rows of either group and the answers of the developer’s released model, and "
    "counted how often the model is right about each group.",
    "A gap is what distribution inference starts from: a model tends to be right more often about the group that its "
    "training data held more of. Alone it proves nothing about the training data, since one group may simply be easier "
    "to predict; it tells that the model serves the groups unequally, which anybody with such rows can see without "
    "asking compliance.",
)


def page(sweep: Sweep, lines: Sequence[Line], summary: Sequence[Line]) -> Page:
    """Return the page of a run, from its sweep, the lines of `trials.jsonl` and their summary."""
    cells = report_cells(sweep, lines, summary)
    colours = {name: look.colour for name, look in looks(cell.mechanism for cell in cells).items()}
    one = all(cell.targeted == 1 for cell in cells)
    equally = "; counting both groups equally, balanced accuracy is the mean of their shares, so that a coin gets 50%"
    return Page(
        cards=[_card(cell, colours[cell.mechanism]) for cell in best_attacks(cells)],
        about_cards=f"The best attack of those played{'' if one else equally}.",
        played=_played(sweep, lines),
        findings=tuple(_happened(cells, sweep.scenario.data.protected or "group")),
        settings=_settings(sweep, cells),
        sections=tuple(_sections(sweep, lines, summary, cells)),
        assumptions=tuple(assumptions(sweep, lines)),
    )


def _sections(
    sweep: Sweep, lines: Sequence[Line], summary: Sequence[Line], cells: Sequence[ReportCell]
) -> Iterator[PageSection]:
    if figures := draw_figures(cells):
        yield PageSection("figures", "Figures", figures=figures)
    for section in kit.sections(tables(sweep, lines, summary), {}):
        is_test = section.name == "loss-test"
        yield replace(section, before=_LOSS_TEST[:1], after=_LOSS_TEST[1:]) if is_test else section


def _settings(sweep: Sweep, cells: Sequence[ReportCell]) -> list[Term]:
    scenarios = [cell.scenario for cell in sweep.cells]
    written = any(one.compliance.precision != "float64" for one in scenarios)
    sampled = any(one.developer.public_sample for one in scenarios)
    few = max(one.compliance.differencing for one in scenarios)
    hidden = "compliance alone has it, and asks the developer's models"
    asked = {id(cell.scenario): cell.queries for cell in cells}

    def queries(one: RevealScenario) -> object:
        return "as many as it takes" if one.queries == "needed" else asked.get(id(one), None if cells else one.queries)

    def precision(one: RevealScenario) -> str | None:
        told = one.compliance.precision
        return (told if isinstance(told, str) else plural(told, "decimal")) if written else None

    moved = several(float(number(max(trial["max_prediction_change"] for trial in cell.trials))) for cell in cells)
    return kit.settings(
        sweep,
        {
            "Data": lambda one: one.data.source + (f", {one.data.protected}" if one.data.protected else ""),
            "Metric": lambda one: METRICS[one.compliance.metric].title,
            "Mechanism": lambda one: MECHANISMS[one.compliance.mechanism].title,
            "Budget of a trial, ε": lambda one: one.epsilon,
            "Metric queries, m": queries,
            "Answers written as": precision,
            "Test set": lambda one: hidden if one.data.hidden else None,
            "Models flagged": lambda _: f"if they differ from an earlier one in 1 to {few} people" if few else None,
            "Public people whose group is known": lambda one: f"{one.developer.public_sample:,}" if sampled else None,
            "Strategy": lambda one: one.developer.strategy,
            "Decoder": lambda one: one.decoder or "none: the strategy reads the answers itself",
            "Predictions moved by at most": lambda _: moved or "–",
            "Trials of a cell": lambda one: one.scenario.trials,
        },
    )


def _card(cell: ReportCell, colour: str) -> Card:
    asked = plural(int(cell.summary["answers_most"]), "answer")
    title = cell.noise if cell.noisy else "Exact answers"
    if cell.targeted == 1:
        hits = sum(trial["targeted_recovered"] for trial in cell.trials)
        rate = target_rate(cell.summary)
        sure = "" if rate.low is None else f" (95% interval {rate.ends(0)}%)"
        trials = plural(len(cell.trials), "trial")
        text = f"The attacker is right about the one person aimed at in {hits} of {trials}{sure}."
        alt = f"Right in {rate.mean:.0f}% of the trials"
        bar = Bar.on((0.0, 100.0), 0.0, rate.mean, ("0% of trials", "100%"), alt)
        return Card(title, f"{text} {_error(cell)}", bar, colour)
    leakage, before = cell.leakage.mean, cell.baseline.mean
    if cell.summary["exact"] == len(cell.trials):
        reached = f"everybody; before asking it was, {_EQUALLY}, {before:.0f}% right."
    else:
        reached = f"{_people(cell)}; {_EQUALLY}, {leakage:.0f}%, and {before:.0f}% before asking."
    useless = " Read this way, the answers were of no use: it knew more without them." if worthless(cell) else ""
    text = f"With at most {asked} the attacker is right about {reached}{useless} {_error(cell)}"
    alt = f"{_EQUALLY.capitalize()}: from {before:.0f}% before asking to {leakage:.0f}%, on a scale from 50% to 100%"
    # A wrong reading may be worse than a coin.
    bar = Bar.on((_COIN, 100.0), before, leakage, (f"{_COIN:.0f}%: a coin", "100%: everybody"), alt)
    return Card(title, text, bar, colour)


def _error(cell: ReportCell) -> str:
    if not cell.noisy:
        return "Answers are exact."
    error = cell.summary.get("query_error_median")
    return "" if error is None else f"A typical answer is off by {number(error, 2)}."


def _played(sweep: Sweep, trials: Sequence[Line]) -> str:
    scenarios = [cell.scenario for cell in sweep.cells]
    if not trials:
        planned = sum(scenario.scenario.trials for scenario in scenarios)
        return f"Three separate processes were to play {plural(planned, 'trial')}; none finished."
    data = scenarios[0].data
    metrics = " or ".join(dict.fromkeys(METRICS[scenario.compliance.metric].title for scenario in scenarios))
    people, n0, n1 = (span({trial[key] for trial in trials}) for key in ("n", "n0", "n1"))
    groups = f"{n0} {data.disadvantaged or 'disadvantaged'}, {n1} {data.advantaged or 'advantaged'}"
    held = f"the protected attribute, {data.protected}," if data.protected else "the protected attribute"
    hidden = f"their {data.protected}" if data.protected else "the protected attribute"
    dealt = (
        "neither these people's features nor their labels"
        if all(scenario.data.hidden for scenario in scenarios)
        else "the same people's features and labels"
    )
    outsider = (
        "An adversary outside saw the developer's released model alone, and public data."
        if any(scenario.adversary.attack for scenario in scenarios)
        else "The third process, an adversary outside, had no part in this scenario."
    )
    return (
        f"Three separate processes played {plural(len(trials), 'trial')}. "
        f"A compliance team held {held} of {people} people ({groups}). "
        f"A model developer was dealt {dealt}, and never {hidden}; "
        f"it asked for the {metrics} of models of its own making, and guessed from the answers who is in which group. "
        f"{outsider}"
    )


def _happened(cells: Sequence[ReportCell], attribute: str) -> Iterator[str]:
    for noisy, noise in ((False, "without noise"), (True, "with noise")):
        alike = [cell for cell in cells if cell.noisy is noisy]
        if alike:
            # Among equal leakages, the one with the fewest answers.
            top = min(alike, key=rank)
            best = "best rate" if top.targeted == 1 else "highest leakage"
            which = f"the {best} of {len(alike)} cells {noise}" if len(alike) > 1 else ""
            notes = ", ".join(filter(None, (swept_in(list(top.swept)).name(top.summary, _SAID), which)))
            verdict = f" {_verdict(top)}" if noisy and top.targeted > 1 else ""
            yield f"With {_answers(top)}{f' ({notes})' if notes else ''}, {_outcome(top, attribute)}.{verdict}"
    for row in loss_test_rows(cells)[:1]:
        yield (
            f"The outsider found the released model right for {row.advantaged.text(1, '%')} of the advantaged "
            f"and for {row.disadvantaged.text(1, '%')} of the disadvantaged: a gap of {row.gap.text(1, ' points')}."
        )


def _answers(cell: ReportCell) -> str:
    # Where the strategy decides the number, the size query is included.
    most = cell.summary["answers_most"] if as_needed(cell) else cell.queries
    at_most = "at most " if as_needed(cell) else ""
    if not cell.noisy:
        precision = cell.scenario.compliance.precision
        kind = "verdict" if cell.mechanism == "pass-fail" else "exact answer" if precision == "float64" else "answer"
        return f"{at_most}{plural(most, kind)}"
    mechanism = f"the mechanism “{MECHANISMS[cell.mechanism].title}” at ε = {number(cell.epsilon, 6)}"
    return f"{at_most}{plural(most, 'answer')} under {mechanism}"


def _outcome(cell: ReportCell, attribute: str) -> str:
    if cell.targeted == 1:
        hits = sum(trial["targeted_recovered"] for trial in cell.trials)
        often = _often(hits, len(cell.trials))
        return f"the developer, which aimed at one person, was right about that person in {often}"
    exact = cell.summary["exact"]
    partition = METRICS[cell.summary["metric"]].absolute
    knew = f"knew everybody's {attribute}{', up to which group is which,' if partition else ''}"
    coin = "50% is a coin"
    interval = "" if cell.leakage.low is None else f"95% interval {cell.leakage.ends(1)}; "
    balanced = f"right about {_people(cell)}; {_EQUALLY}, {IntervalEstimate(cell.leakage.mean)}% ({interval}{coin})"
    before = cell.baseline.text(1, "%")
    often = _often(exact, len(cell.trials))
    if exact == len(cell.trials):
        return f"the developer {knew} in {often}; before any question it was, {_EQUALLY}, {before} right ({coin})"
    if exact:
        return f"the developer {knew} in {often}; over all trials it was {balanced}, and {before} before any question"
    return f"the developer never {knew}; it was {balanced}, and {before} before any question"


def _people(cell: ReportCell) -> str:
    return f"{count(cell.summary['recovered'])} of {cell.summary['n']:,} people"


def _often(hits: int, trials: int) -> str:
    found = share(hits, trials)
    interval = "" if found.low is None else f" (95% interval {found.ends(0)}% of trials)"
    return f"{hits:,} of {plural(trials, 'trial')}{interval}"


def _verdict(cell: ReportCell) -> str:
    """Return a comparison of leakage with the guess before any query, which claims no more than the interval does."""
    gain = cell.gain
    if gain.low is None or gain.high is None:
        return f"Fewer than {FEWEST} trials say nothing about what the answers added."
    if gain.sign > 0:
        above = gain.text(1, " points")
        return f"That is {above} above what it knew before asking: the noise did not hide everything."
    if gain.sign < 0:
        below = IntervalEstimate(-gain.mean, -gain.high, -gain.low).text(1, " points")
        return (
            f"That is {below} below what it could guess before asking: "
            "read this way, the answers were of no use. Somebody may find a better way to read them."
        )
    return (
        f"The difference to its guess before asking, {gain.text(1, ' points')}, cannot be told from none over these "
        "trials; that is no proof that nothing leaked."
    )
