"""The report's sentences: what was played, what happened, and what it does not show. Each is made from the trials."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from fairwall.laws import metric as metrics
from sim.report.cells import Estimate, ReportCell, Trial
from sim.report.loss_test import LossTestRow
from sim.report.notation import MECHANISMS, METRICS, number, plural, ratio, setting, span, symbol
from sim.report.printed import PrintedError, contest, lower_everywhere
from sim.scenario import Plan

_NOISE = {True: "with noise", False: "without noise"}


def played(plan: Plan, trials: Sequence[Trial]) -> str:
    """Say what was played, and who held what."""
    scenarios = [cell.scenario for cell in plan.cells]
    if not trials:
        planned = sum(scenario.scenario.trials for scenario in scenarios)
        return f"Three separate processes were to play {plural(planned, 'trial')}; none finished."
    data = scenarios[0].data
    metrics = " or ".join(dict.fromkeys(METRICS[scenario.compliance.metric] for scenario in scenarios))
    people, n0, n1 = (span({trial[key] for trial in trials}) for key in ("n", "n0", "n1"))
    groups = f"{n0} {data.disadvantaged or 'disadvantaged'}, {n1} {data.advantaged or 'advantaged'}"
    held = f"the protected attribute, {data.protected}," if data.protected else "the protected attribute"
    hidden = f"their {data.protected}" if data.protected else "the protected attribute"
    outsider = (
        "An adversary outside saw the developer's released model alone, and public data."
        if any(scenario.adversary.attack for scenario in scenarios)
        else "The third process, an adversary outside, had no part in this scenario."
    )
    return (
        f"Three separate processes played {plural(len(trials), 'trial')}. "
        f"A compliance team held {held} of {people} people ({groups}). "
        f"A model developer was dealt the same people's features and labels, and never {hidden}; "
        f"it asked for the {metrics} of models of its own making, and guessed from the answers who is in which group. "
        f"{outsider}"
    )


def happened(
    cells: Sequence[ReportCell], errors: Sequence[PrintedError], tests: Sequence[LossTestRow], attribute: str
) -> tuple[str, ...]:
    """Say what happened, a finding a paragraph.

    Parameters
    ----------
    cells : sequence of ReportCell
    errors : sequence of PrintedError
    tests : sequence of LossTestRow
    attribute : str
        What the protected attribute is called.
    """
    findings = []
    for kind in (False, True):
        alike = [cell for cell in cells if cell.noisy is kind]
        if alike:
            # Of several that leaked alike, the one with the fewest queries.
            top = min(alike, key=lambda cell: (-cell.leakage.mean, cell.queries))
            most = f" (the highest leakage of {len(alike)} cells {_NOISE[kind]})" if len(alike) > 1 else ""
            verdict = f" {_verdict(top)}" if kind and top.targeted > 1 else ""
            findings.append(f"With {_answers(top)}{most}, {_outcome(top, attribute)}.{verdict}")
    if tests:
        row = tests[0]
        findings.append(
            f"The outsider found the released model right for {row.advantaged}% of the advantaged "
            f"and for {row.disadvantaged}% of the disadvantaged: a gap of {row.gap} points."
        )
    if errors:
        findings.append(
            "The average errors that the paper prints are far smaller than the noise that its own printed formulas "
            f"call for: {_by_mechanism(errors)} (see below)."
        )
    return tuple(findings)


def _answers(cell: ReportCell) -> str:
    said = {"developer.queries", "compliance.epsilon", "compliance.mechanism"}
    rest = [f"{symbol(key)} = {setting(value)}" for key, value in cell.swept.items() if key not in said]
    also = f" ({', '.join(rest)})" if rest else ""
    if not cell.noisy:
        return f"{plural(cell.queries, 'exact answer')}{also}"
    noise = f"{MECHANISMS[cell.mechanism]} noise at ε = {number(cell.epsilon, 6)}"
    return f"{plural(cell.queries, 'answer')} under {noise}{also}"


def _outcome(cell: ReportCell, attribute: str) -> str:
    trials = plural(len(cell.trials), "trial")
    if cell.targeted == 1:
        hits = sum(trial["targeted_recovered"] for trial in cell.trials)
        return f"the developer, which aimed at one person, was right about that person in {hits} of {trials}"
    exact = cell.summary["exact"]
    partition = metrics.METRICS[cell.summary["metric"]].absolute
    knew = f"knew everybody's {attribute}{', up to which group is which,' if partition else ''}"
    balanced = f"{cell.leakage}% of people (balanced over the groups; 50% is a coin)"
    before = f"before any question it was right for {cell.baseline}%"
    if exact == len(cell.trials):
        return f"the developer {knew} in {exact} of {trials}; {before} (balanced over the groups; 50% is a coin)"
    if exact:
        return f"the developer {knew} in {exact} of {trials}; over all trials it was right for {balanced}, and {before}"
    return f"the developer never {knew}; it was right for {balanced}, and {before}"


def _verdict(cell: ReportCell) -> str:
    """Compare leakage with the guess before asking, trial by trial, and claim no more than the interval does."""
    gain = cell.gain
    if gain.half is None:
        return "One trial gives no interval."
    if gain.sign > 0:
        return f"That is {gain} points above what it knew before asking: the noise did not hide everything."
    if gain.sign < 0:
        return (
            f"That is {Estimate(-gain.mean, gain.half)} points below what it could guess before asking: "
            "read this way, the answers were of no use. Somebody may find a better way to read them."
        )
    return (
        f"The difference to its guess before asking, {gain} points, cannot be told from none over so few trials; "
        "that is no proof that nothing leaked."
    )


def _by_mechanism(errors: Sequence[PrintedError]) -> str:
    parts = []
    for mechanism in dict.fromkeys(error.mechanism for error in errors):
        low, high = _ratios(error for error in errors if error.mechanism == mechanism)
        parts.append(f"{_times(low, high)} for {MECHANISMS[mechanism]}")
    return ", ".join(parts)


def _ratios(errors: Iterable[PrintedError]) -> tuple[float, float]:
    ratios = [error.ratio for error in errors]
    return min(ratios), max(ratios)


def _times(low: float, high: float) -> str:
    return f"{ratio(low)} times" if low == high else f"{ratio(low)} to {ratio(high)} times"


def printed_conclusions(errors: Sequence[PrintedError]) -> tuple[str, ...]:
    """Say how far the printed figures are from the printed formulas."""
    conclusions = []
    for mechanism, where, typical in (("conceal", "Algorithm 3", "median"), ("laplace", "Theorem 5", "mean")):
        ours = [error for error in errors if error.mechanism == mechanism]
        if not ours:
            continue
        low, high = _ratios(ours)
        factor = ""
        if high > 3 * low:
            factor = f" No one missing factor explains them: the ratio itself varies {high / low:.0f}-fold."
        conclusions.append(
            f"{MECHANISMS[mechanism]}: the printed average errors are {_times(low, high)} smaller than the {typical} "
            f"size of the noise in the printed formula ({where}), over {plural(len(ours), 'cell')}.{factor}"
        )
    bout = contest(errors)
    if bout.cells:
        counted = f"{bout.by_median} of {bout.cells} cells"
        if bout.by_mean != bout.by_median:
            counted += f" by medians ({bout.by_mean} against Laplace's mean)"
        against = ". The printed figures have it smaller in every one" if lower_everywhere(errors) else ""
        conclusions.append(
            f"As the formulas are printed, Attribute-Conceal's noise is larger than Laplace's in {counted}{against}."
        )
    return tuple(conclusions)


def majority_note(cells: Sequence[ReportCell]) -> str:
    """Say what naming the larger group for everybody gets right."""
    rights = span({cell.majority for cell in cells})
    return f"Naming the larger group for everybody gets {rights} people right, with a leakage of 50%."


def assumptions(plan: Plan, trials: Sequence[Trial]) -> Iterator[tuple[str, str]]:
    """Name what was assumed, and what was and was not protected: a term, and what to know about it."""
    scenarios = [cell.scenario for cell in plan.cells]
    yield (
        "The developer's side knowledge",
        "Features and labels of every person in the test set, its own model's predictions for them, and the public "
        "policy: the metric, the mechanism, ε, and how many questions the budget covers. Not the protected attribute, "
        "nor any number computed from it except the answers.",
    )
    yield (
        "Leakage",
        "Balanced accuracy (Definition 5.1 of Hamman, Chen and Dutta, FAccT 2023): the mean of the shares of either "
        "group that are guessed right, in percent. Naming the larger group for everybody scores 50, however many "
        "people that gets right.",
    )
    yield (
        "No query",
        "What the developer reaches before asking: the half of the people with the lower scores of its base model is "
        "guessed disadvantaged. Only leakage above it shows that answers gave something away. It is one simple guess; "
        "better ones may exist.",
    )
    yield (
        "Intervals",
        "95% t intervals of the mean over trials; they can reach beyond 0 and 100. “± 0.0” says that all trials came "
        "to the same, not that the next one must. Where the highest of many cells is picked out, its interval is not "
        "corrected for the picking.",
    )
    attacks = dict.fromkeys(
        f"strategy “{scenario.developer.strategy}”"
        + (f" with decoder “{scenario.decoder}”" if scenario.decoder else "")
        for scenario in scenarios
    )
    yield (
        "This attack, no other",
        f"Measured against {', '.join(attacks)}. Low leakage under one attack is no guarantee against another; a "
        "guarantee is what ε gives, and a large ε gives little.",
    )
    noisy = any(math.isfinite(scenario.epsilon) for scenario in scenarios)
    if noisy:
        shared = any(trial["size_queries"] for trial in trials)
        yield (
            "ε",
            "Privacy loss of all answers of a trial together, between data sets that differ in one person's protected "
            "attribute. What is charged is what was promised. Noise is on the corrected sensitivity, not on the "
            "printed one" + ("; one size query shares the budget, so it is for m + 1 answers." if shared else "."),
        )
    if noisy and any(scenario.compliance.noise == "seeded" for scenario in scenarios):
        yield (
            "Noise from a seed",
            "The games replay: their noise comes from a small seed, and anybody who tries all seeds can take it off. "
            "A service for real people must draw it from the operating system.",
        )
    if any(trial["targeted"] < trial["n"] for trial in trials):
        yield (
            "People not aimed at",
            "The strategy or the metric speaks about some of the people alone; the others keep the guess made without "
            "any query, and count in the leakage.",
        )
    if any(metrics.METRICS[scenario.compliance.metric].absolute for scenario in scenarios):
        yield (
            "Up to polarity",
            "An absolute gap is the same when the groups change places, so leakage is that of the better naming of the "
            "two parts. “Smaller group named” is what is left when the developer takes the smaller part for the "
            "disadvantaged group; “one person known”, when it learns one person's group from elsewhere.",
        )
