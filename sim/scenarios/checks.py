"""What no single key of a scenario shows: whether it can be played."""

from __future__ import annotations

import math
from collections.abc import Iterator

from adversary.attacks import ATTACKS
from compliance.bounding import bounded
from compliance.mechanisms import MECHANISMS
from developer.reveal import STRATEGIES, Strategy
from developer.service import ROWS_MAX
from fairwall.laws.metric import METRICS
from fairwall.learning.defences import DEFENCES
from fairwall.rpc.confine import LAYERS
from sim.scenarios.scenario import NOT_ASKED, QUERIES_MAX, Scenario


def problems(scenario: Scenario) -> Iterator[str]:
    """Find what no single key shows."""
    for name in scenario.scenario.require:
        if name not in LAYERS:
            yield f"scenario.require: must be among {', '.join(LAYERS)}, not {name!r}"
    yield from _reveal_problems(scenario) if scenario.scenario.game == "reveal" else _inference_problems(scenario)


def _inference_problems(scenario: Scenario) -> Iterator[str]:
    """Find what the inference game cannot be played with."""
    if scenario.data.source == "synthetic":
        yield "data.source: synthetic people have no features to learn from"
    developer = scenario.developer
    if developer.defence not in DEFENCES:
        yield f"developer.defence: must be one of {', '.join(DEFENCES)}, not {developer.defence!r}"
    if developer.defence == "fft-multi" and not scenario.data.also_protected:
        yield "data.also_protected: is missing; fft-multi looks at several attributes"
    if scenario.data.protected in scenario.data.also_protected:
        yield f"data.also_protected: {scenario.data.protected} is the attribute that the game is about"
    if developer.lambdas:
        yield from _choice_problems(scenario)
    elif scenario.compliance != NOT_ASKED:
        yield "compliance: is not dealt in; only developer.lambdas ask it anything"
    adversary = scenario.adversary
    if not adversary.attack:
        yield f"adversary.attack: is missing; one or more of {', '.join(ATTACKS)}"
    for name in adversary.attack:
        if name not in ATTACKS:
            yield f"adversary.attack: must be among {', '.join(ATTACKS)}, not {name!r}"
        elif ATTACKS[name].needs == "scores" and adversary.answers == "labels":
            yield f"adversary.attack: {name} needs scores, but adversary.answers are labels"
        elif ATTACKS[name].shadows and adversary.shadows < 2:
            yield f"adversary.shadows: {name} needs at least 2, half with either bit"
    if len(set(adversary.attack)) != len(adversary.attack):
        yield "adversary.attack: names an attack twice"


def _choice_problems(scenario: Scenario) -> Iterator[str]:
    """Find what lambda cannot be chosen by."""
    tuned = [name for name in DEFENCES if "fft" in name]
    if scenario.developer.defence not in tuned:
        yield f"developer.lambdas: only for a defence that takes one ({', '.join(tuned)})"
    if "compliance" not in scenario.model_fields_set:
        yield "compliance: is missing; developer.lambdas are chosen by its answers"
    if scenario.compliance.metric != "eodds_max":
        yield f"compliance.metric: lambda is chosen by eodds_max, the game's EO, not by {scenario.compliance.metric}"
    yield from _mechanism_problems(scenario)


def _reveal_problems(scenario: Scenario) -> Iterator[str]:
    """Find what the reveal game cannot be played with."""
    data, compliance, developer = scenario.data, scenario.compliance, scenario.developer
    if "compliance" not in scenario.model_fields_set:
        yield "compliance: is missing"
    if scenario.adversary.attack not in ((), ("loss-test",)):
        yield f'adversary.attack: must be ["loss-test"] or left out, not {list(scenario.adversary.attack)!r}'
    if data.source == "synthetic":
        for key in ("n", "n0", "scores"):
            if getattr(data, key) is None:
                yield f"data.{key}: is missing; synthetic data need n, n0 and scores"
        if data.test_size not in (None, data.n):
            yield f"data.test_size: all {data.n} synthetic people are the test set; leave it out"
    else:
        for key in ("n", "scores"):
            if getattr(data, key) is not None:
                yield f"data.{key}: only synthetic data have it"
        if data.test_size is None:
            yield "data.test_size: is missing"
    if data.n0 is not None and scenario.people <= data.n0:
        yield f"data.n0: must leave somebody in the other group: at most {scenario.people - 1}, not {data.n0}"
    if data.hidden:
        yield from _hidden_problems(scenario)
    yield from _mechanism_problems(scenario)
    strategy = STRATEGIES.get(developer.strategy)
    if strategy is None:
        yield f"developer.strategy: must be one of {', '.join(STRATEGIES)}, not {developer.strategy!r}"
        return
    if compliance.metric not in strategy.metrics:
        readable = ", ".join(metric for metric in METRICS if metric in strategy.metrics)
        yield f"developer.strategy: {strategy.name} reads {readable}, not {compliance.metric}"
    if strategy.mechanism is not None and compliance.mechanism != strategy.mechanism:
        yield (
            f"developer.strategy: {strategy.name} reads answers of mechanism {strategy.mechanism}, "
            f"not of {compliance.mechanism}"
        )
    if compliance.metric == "eodds_max" and scenario.perturbation < 1:
        yield (
            "developer.perturbation: near the base model one stratum's gap hides smaller ones of the other from "
            "eodds_max; 1, or leave it out"
        )
    special = compliance.metric == "ppv" or compliance.mechanism == "pass-fail"
    if compliance.metric == "ppv" and not math.isinf(scenario.epsilon):
        yield f'compliance.metric: strategy {strategy.name} reads ppv from exact answers only, so epsilon must be "inf"'
    if (strategy.free or (strategy.name == "best" and special)) and scenario.perturbation < 1:
        yield f"developer.perturbation: strategy {strategy.name} asks about free rows: 1, or leave it out"
    if strategy.exact and not math.isinf(scenario.epsilon):
        yield f'developer.strategy: {strategy.name} reads exact answers only, so epsilon must be "inf"'
    if developer.public_sample % 2:
        yield f"developer.public_sample: must be even, half of each group, not {developer.public_sample}"
    if developer.public_sample and data.source == "synthetic":
        yield "developer.public_sample: synthetic people have no features to predict a group from; leave it out"
    if developer.decoder not in (None, "own", *strategy.decoders):
        allowed = f"works with {' or '.join(strategy.decoders)}" if strategy.decoders else "reads the answers itself"
        yield f"developer.decoder: strategy {strategy.name} {allowed}, not with {developer.decoder!r}"
    yield from _query_problems(scenario, strategy)


def _hidden_problems(scenario: Scenario) -> Iterator[str]:
    """Find what cannot be played about a test set that the developer is not given."""
    if METRICS[scenario.compliance.metric].labelled:
        allowed = ", ".join(name for name, metric in METRICS.items() if not metric.labelled)
        yield f"data.hidden: only metrics without labels ({allowed}), not {scenario.compliance.metric}"
    if scenario.data.source != "synthetic" and not scenario.data.train_share:
        yield "data.hidden: the base model cannot be trained on the test set: data.train_share must be above 0"
    if scenario.people > ROWS_MAX:
        yield f"data.hidden: a model is asked about at most {ROWS_MAX} people, not {scenario.people}"


def _mechanism_problems(scenario: Scenario) -> Iterator[str]:
    """Find what the mechanism cannot answer."""
    compliance = scenario.compliance
    name = compliance.mechanism
    mechanism = MECHANISMS.get(name)
    if mechanism is None:
        yield f"compliance.mechanism: must be one of {', '.join(MECHANISMS)}, not {name!r}"
        return
    if mechanism.guarantee == "none" and not math.isinf(scenario.epsilon):
        yield f'compliance.epsilon: mechanism {name} adds no noise, so it must be "inf", not {compliance.epsilon:g}'
    if mechanism.guarantee != "none" and compliance.epsilon is None:
        yield f'compliance.epsilon: is missing; mechanism {name} needs a positive number or "inf"'
    try:
        refusal = bounded(mechanism, compliance.bounding).refuses(
            compliance.metric, scenario.epsilon, scenario.batch_delta
        )
    except ValueError as error:
        yield f"compliance.bounding: {error}"
        return
    if refusal is not None:
        yield f"compliance.mechanism: {name} does not answer {compliance.metric}: {refusal}"


def _query_problems(scenario: Scenario, strategy: Strategy) -> Iterator[str]:
    """Find a number of queries that the strategy cannot ask."""
    people = scenario.people
    counts = strategy.counts(people)
    by_people = len(counts) <= 2 and people in counts
    if by_people:
        wanted = 'asks "n" or "n-1" queries' if people - 1 in counts else 'asks "n" queries'
    elif len(counts) == 1:
        wanted = f"asks {counts[0]}"
    else:
        wanted = "asks any number of at least 1"
    asked = scenario.queries
    most = max(QUERIES_MAX, people)
    metric = METRICS[scenario.compliance.metric]
    strata = len(metric.strata)
    if asked == "needed" and strategy.adaptive:
        if not math.isinf(scenario.epsilon):
            yield "developer.queries: is missing; epsilon is shared out among so many"
    elif scenario.developer.queries is None and len(counts) > 2:
        yield "developer.queries: is missing"
    elif isinstance(asked, int) and asked > most:
        yield f"developer.queries: must be at most {most}, not {asked}"
    elif isinstance(asked, int) and asked < strata:
        yield f"developer.queries: must be at least {strata}, for the strata of {metric.name}, not {asked}"
    elif isinstance(asked, int):
        # Who asks one query a person counts the people of the stratum, which vary with the test set.
        varies = by_people and metric.label is not None
        if asked not in counts or varies:
            yield f"developer.queries: strategy {strategy.name} {wanted}, not {asked}"
    elif not by_people:
        yield f'developer.queries: strategy {strategy.name} {wanted}, not "{asked}"'
    elif asked == "n-1" and people - 1 not in counts:
        yield f'developer.queries: strategy {strategy.name} {wanted}, not "n-1"'
