"""The strategies of Attribute-Reveal (Hamman, Chen, Dutta, FAccT 2023)."""

from dataclasses import replace
from functools import partial

import numpy as np

from developer.reveal.decode import DECODERS
from developer.reveal.strategies import (
    absolute,
    best,
    compressed,
    linear,
    meet,
    predictive_parity,
    searched,
    single,
    splitting,
    superincreasing,
    targeted,
    verdicts,
)
from developer.reveal.strategies.compressed import reveal_from_rows
from developer.reveal.strategies.strategy import (
    ABSOLUTE,
    ODDS,
    PLAIN,
    PRECISION,
    RATIO,
    SIGNED,
    Auditor,
    Metrics,
    PublicTerms,
    Reveal,
    Strategy,
    StrategyInputs,
)
from fairwall.plugins import Plugin, Registry

# The decoders that work below rank n, the paper's first.
_ANY = ("l1", "lstsq", "box", "omp", "score", "ep", "mcmc", "best")

_GAPS = SIGNED | ABSOLUTE | ODDS | RATIO


def _checked(plugin: Plugin, strategy: Strategy) -> Strategy:
    """Return a plug-in's strategy, wrapped so that the metric it is given and its result are checked."""
    plugin.require(isinstance(strategy, Strategy), "is no Strategy")

    def play(inputs: StrategyInputs) -> Reveal:
        metric, n = inputs.terms.metric, inputs.people
        plugin.require(metric in strategy.metrics, f"reads {', '.join(sorted(strategy.metrics))}, not {metric}")
        found = plugin.call(strategy.play, inputs)
        plugin.require(isinstance(found, Reveal), "found no Reveal")
        guess, targeted = np.asarray(found.guess), np.asarray(found.targeted)
        plugin.require(guess.shape == (n,) and np.isin(guess, (0, 1)).all(), f"its guess is not 0 or 1 for each of {n}")
        plugin.require(targeted.shape == (n,) and targeted.dtype == bool, f"targeted is not a bool for each of {n}")
        for what, values in (("reconstruction", found.reconstruction), ("from_answers", found.from_answers)):
            fits = values is None or (np.shape(values) == (n,) and np.isfinite(values).all())
            plugin.require(fits, f"its {what} is not a finite number for each of {n}")
        return replace(found, guess=guess.astype(np.uint8), targeted=targeted)

    return replace(strategy, name=plugin.name, play=play)


def _elsewhere(name: str) -> Strategy:
    """Return a placeholder for a plug-in's strategy in a process that does not run it; its real limits are unknown."""

    def play(_: StrategyInputs) -> Reveal:
        raise NotImplementedError

    return Strategy(name, play, metrics=Metrics(lambda _: True), decoders=("",), adaptive=True)


STRATEGIES: Registry[Strategy] = Registry(
    "strategies",
    {
        strategy.name: strategy
        for strategy in (
            Strategy("single", single.play, counts=lambda _: range(1, 2)),
            Strategy("pair", single.play_pair, counts=lambda _: range(2, 3)),
            Strategy("linear", linear.play, counts=linear.counts, decoders=("lstsq",)),
            Strategy(
                "sensing",
                partial(reveal_from_rows, rows=compressed.near_base),
                decoders=_ANY,
                size_queries=1,
                perturbation=0.1,
            ),
            Strategy("random-binary", partial(reveal_from_rows, rows=compressed.binary), decoders=_ANY, size_queries=1),
            Strategy("gaussian", partial(reveal_from_rows, rows=compressed.gaussian), decoders=_ANY, size_queries=1),
            Strategy("absolute", absolute.play, counts=absolute.counts, metrics=ABSOLUTE | ODDS),
            Strategy(
                "best",
                best.play,
                metrics=_GAPS | PRECISION,
                decoders=("best", *(name for name in _ANY if name != "best")),
                size_queries=1,
                adaptive=True,
            ),
            Strategy(
                "searched",
                searched.play,
                metrics=_GAPS | PRECISION,
                decoders=("best", *(name for name in _ANY if name != "best")),
                size_queries=1,
                adaptive=True,
            ),
            Strategy("targeted", targeted.play),
            Strategy("packed", superincreasing.play, metrics=_GAPS, size_queries=1, adaptive=True, exact=True),
            Strategy("splitting", splitting.play, metrics=_GAPS, size_queries=1, adaptive=True, exact=True),
            Strategy("ppv", predictive_parity.play, metrics=PRECISION, adaptive=True, exact=True, free=True),
            Strategy(
                "verdicts",
                verdicts.play,
                metrics=Metrics(lambda metric: metric.of_means and metric.parts[0].value == "prediction"),
                adaptive=True,
                exact=True,
                mechanism="pass-fail",
                free=True,
            ),
            Strategy("meet", meet.play, counts=lambda _: range(1, 2), metrics=PLAIN, size_queries=1, exact=True),
        )
    },
    _checked,
    _elsewhere,
)


def takes(strategy: str, decoder: str) -> bool:
    """Return whether a strategy can be combined with a decoder: one of its list, or any where either is a plug-in's."""
    own = STRATEGIES[strategy].decoders
    of_others = STRATEGIES.has_of_others(strategy) or DECODERS.has_of_others(decoder)
    return decoder in own or (bool(own) and of_others and decoder in DECODERS)


__all__ = ["STRATEGIES", "Auditor", "PublicTerms", "Reveal", "Strategy", "StrategyInputs", "takes"]
