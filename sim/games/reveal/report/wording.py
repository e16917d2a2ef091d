"""The sentences of the reveal game's page: what was played, and what happened. Each is made from the trials."""

from __future__ import annotations

from collections.abc import Sequence

from compliance.mechanisms import MECHANISMS
from fairwall.laws.metric import METRICS
from sim.games.reveal.report.accuracy_by_group import LossTestRow
from sim.games.reveal.report.cells import ReportCell, rank
from sim.games.reveal.report.until_known import as_needed
from sim.report.cells import Trial
from sim.report.estimates import FEWEST, Estimate, share
from sim.report.notation import count, number, plural, setting, span, symbol
from sim.scenarios.sweep import Sweep

_NOISE = {True: "with noise", False: "without noise"}


def played(sweep: Sweep, trials: Sequence[Trial]) -> str:
    """Say what was played, and who held what."""
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


def happened(cells: Sequence[ReportCell], tests: Sequence[LossTestRow], attribute: str) -> tuple[str, ...]:
    """Say what happened, a finding a paragraph.

    Parameters
    ----------
    cells : sequence of ReportCell
    tests : sequence of LossTestRow
    attribute : str
        What the protected attribute is called.
    """
    findings = []
    for kind in (False, True):
        alike = [cell for cell in cells if cell.noisy is kind]
        if alike:
            # Of several that leaked alike, the one with the fewest answers.
            top = min(alike, key=rank)
            best = "best rate" if top.targeted == 1 else "highest leakage"
            notes = [*_told(top), *([f"the {best} of {len(alike)} cells {_NOISE[kind]}"] if len(alike) > 1 else [])]
            most = f" ({', '.join(notes)})" if notes else ""
            verdict = f" {_verdict(top)}" if kind and top.targeted > 1 else ""
            findings.append(f"With {_answers(top)}{most}, {_outcome(top, attribute)}.{verdict}")
    if tests:
        row = tests[0]
        findings.append(
            f"The outsider found the released model right for {row.advantaged.text(1, '%')} of the advantaged "
            f"and for {row.disadvantaged.text(1, '%')} of the disadvantaged: a gap of {row.gap.text(1, ' points')}."
        )
    return tuple(findings)


def _told(cell: ReportCell) -> list[str]:
    said = {"developer.queries", "compliance.epsilon", "compliance.mechanism"}
    told = {key: value for key, value in cell.swept.items() if key not in said and value != "own"}
    return [f"{symbol(key)} = {setting(value)}" for key, value in told.items()]


def _answers(cell: ReportCell) -> str:
    # Where the strategy decides how many to ask, the size query is one of them.
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
    people = f"{count(cell.summary['recovered'])} of {cell.summary['n']:,} people"
    balanced = f"right about {people}, with a balanced accuracy of {Estimate(cell.leakage.mean)}% ({interval}{coin})"
    before = f"before any question its balanced accuracy was {cell.baseline.text(1, '%')}"
    often = _often(exact, len(cell.trials))
    if exact == len(cell.trials):
        return f"the developer {knew} in {often}; {before}, where {coin}"
    if exact:
        return f"the developer {knew} in {often}; over all trials it was {balanced}, and {before}"
    return f"the developer never {knew}; it was {balanced}, and {before}"


def _often(hits: int, trials: int) -> str:
    """Write in how many trials something happened, and between what shares of trials it may."""
    found = share(hits, trials)
    interval = "" if found.low is None else f" (95% interval {found.ends(0)}% of trials)"
    return f"{hits:,} of {plural(trials, 'trial')}{interval}"


def _verdict(cell: ReportCell) -> str:
    """Compare leakage with the guess before asking, trial by trial, and claim no more than the interval does."""
    gain = cell.gain
    if gain.low is None or gain.high is None:
        return f"Fewer than {FEWEST} trials say nothing about what the answers added."
    if gain.sign > 0:
        above = gain.text(1, " points")
        return f"That is {above} above what it knew before asking: the noise did not hide everything."
    if gain.sign < 0:
        below = Estimate(-gain.mean, -gain.high, -gain.low).text(1, " points")
        return (
            f"That is {below} below what it could guess before asking: "
            "read this way, the answers were of no use. Somebody may find a better way to read them."
        )
    return (
        f"The difference to its guess before asking, {gain.text(1, ' points')}, cannot be told from none over these "
        "trials; that is no proof that nothing leaked."
    )


def majority_note(cells: Sequence[ReportCell]) -> str:
    """Say what naming the larger group for everybody gets right."""
    rights = span({cell.majority for cell in cells})
    return f"Naming the larger group for everybody gets {rights} people right, with a leakage of 50%."
