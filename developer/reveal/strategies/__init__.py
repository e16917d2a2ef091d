"""Asking: the strategies of Attribute-Reveal (Hamman, Chen, Dutta, FAccT 2023)."""

from functools import partial

from developer.reveal.strategies import (
    absolute,
    best,
    compressed,
    linear,
    meet,
    predictive_parity,
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
    Hand,
    Reveal,
    Strategy,
    Terms,
)
from fairwall.laws.metric import METRICS

# The decoders that need no rank n, the paper's first.
_ANY = ("l1", "lstsq", "box", "omp", "score", "ep", "mcmc", "best")

_GAPS = SIGNED | ABSOLUTE | ODDS | RATIO

STRATEGIES: dict[str, Strategy] = {
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
        Strategy("targeted", targeted.play),
        Strategy("packed", superincreasing.play, metrics=_GAPS, size_queries=1, adaptive=True, exact=True),
        Strategy("splitting", splitting.play, metrics=_GAPS, size_queries=1, adaptive=True, exact=True),
        Strategy("ppv", predictive_parity.play, metrics=PRECISION, adaptive=True, exact=True, free=True),
        Strategy(
            "verdicts",
            verdicts.play,
            metrics=frozenset(name for name in SIGNED | ABSOLUTE if METRICS[name].parts[0].value == "prediction"),
            adaptive=True,
            exact=True,
            mechanism="pass-fail",
            free=True,
        ),
        Strategy("meet", meet.play, counts=lambda _: range(1, 2), metrics=PLAIN, size_queries=1, exact=True),
    )
}

__all__ = ["STRATEGIES", "Auditor", "Hand", "Reveal", "Strategy", "Terms"]
