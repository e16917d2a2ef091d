"""Asking: the strategies of Attribute-Reveal (Hamman, Chen, Dutta, FAccT 2023)."""

from developer.reveal.strategies import (
    absolute,
    best,
    compressed,
    gaussian,
    linear,
    meet,
    pair,
    predictive_parity,
    random_binary,
    sensing,
    single,
    splitting,
    superincreasing,
    targeted,
    verdicts,
)
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
        Strategy("pair", pair.play, counts=lambda _: range(2, 3)),
        Strategy("linear", linear.play, counts=linear.counts, decoders=("lstsq",)),
        Strategy("sensing", sensing.play, compressed.counts, decoders=_ANY, size_queries=1, perturbation=0.1),
        Strategy("random-binary", random_binary.play, counts=compressed.counts, decoders=_ANY, size_queries=1),
        Strategy("gaussian", gaussian.play, counts=compressed.counts, decoders=_ANY, size_queries=1),
        Strategy("absolute", absolute.play, counts=absolute.counts, metrics=ABSOLUTE | ODDS),
        Strategy(
            "best",
            best.play,
            compressed.counts,
            _GAPS | PRECISION,
            decoders=("best", *(name for name in _ANY if name != "best")),
            size_queries=1,
            adaptive=True,
        ),
        Strategy("targeted", targeted.play, compressed.counts),
        Strategy("packed", superincreasing.play, compressed.counts, _GAPS, size_queries=1, adaptive=True, exact=True),
        Strategy("splitting", splitting.play, compressed.counts, _GAPS, size_queries=1, adaptive=True, exact=True),
        Strategy("ppv", predictive_parity.play, compressed.counts, PRECISION, adaptive=True, exact=True, free=True),
        Strategy(
            "verdicts",
            verdicts.play,
            compressed.counts,
            frozenset(name for name in SIGNED | ABSOLUTE if METRICS[name].parts[0].value == "prediction"),
            adaptive=True,
            exact=True,
            mechanism="pass-fail",
            free=True,
        ),
        Strategy("meet", meet.play, lambda _: range(1, 2), PLAIN, size_queries=1, exact=True),
    )
}

__all__ = ["STRATEGIES", "Auditor", "Hand", "Reveal", "Strategy", "Terms"]
