"""Every strategy and every decoder, alone in a process that holds no attribute: questions go out, answers come in."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from developer.reveal.decode import DECODERS
from developer.reveal.strategies import STRATEGIES

N, N0 = 40, 8

CHILD = """
import json, sys
import numpy as np
from developer.reveal.decode import DECODERS
from developer.reveal.strategies import STRATEGIES, StrategyInputs, PublicTerms

def tell(message):
    print(json.dumps(message), flush=True)
    return json.loads(sys.stdin.readline())

class Auditor:
    def give_up(self, queries):
        pass
    def size(self, row):
        return tell({"size": row.tolist()})[0]
    def gaps(self, rows):
        return np.array(tell({"gaps": rows.tolist()}))

for line in sys.stdin:
    dealt = json.loads(line)
    scores, labels = np.array(dealt["scores"]), np.array(dealt["labels"], np.uint8)
    strategy = STRATEGIES[dealt["strategy"]]
    reveal = strategy.play(StrategyInputs(
        people=scores.size, base=lambda: scores, prior=lambda: np.ones(scores.size, np.uint8), auditor=Auditor(),
        rng=np.random.default_rng(1), queries=dealt["queries"], perturbation=strategy.perturbation,
        decode=DECODERS[dealt["decoder"]] if dealt["decoder"] else None,
        terms=PublicTerms(metric=dealt["metric"], mechanism=dealt["mechanism"]), labels=labels,
    ))
    loaded = sorted({name.partition(".")[0] for name in sys.modules} & {"compliance", "adversary", "sim"})
    said = {"guess": reveal.guess.tolist(), "targeted": reveal.targeted.tolist(), "loaded": loaded}
    print(json.dumps(said), flush=True)
"""


@pytest.fixture(scope="module")
def child() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-I", "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process


def gap(row: list[float], a: NDArray[np.uint8], labels: NDArray[np.uint8], metric: str, mechanism: str) -> float:
    h = np.array(row)
    if metric == "ppv":
        parts = [(h[a == group] * labels[a == group]).sum() / max(h[a == group].sum(), 1) for group in (1, 0)]
        empty = any(h[a == group].sum() == 0 for group in (1, 0))
        return 0.0 if empty else float(parts[0] - parts[1])
    value = float(h[a == 1].mean() - h[a == 0].mean())
    if mechanism == "pass-fail":
        return float(abs(value) > 0.1)
    return abs(value) if metric.startswith("abs_") else value


def play(process: subprocess.Popen[str], strategy: str, decoder: str, a: NDArray[np.uint8]) -> dict[str, Any]:
    """Play in the child process, with the answers that these attributes give."""
    rng = np.random.default_rng(5)
    scores, labels = rng.random(N), (np.arange(N) % 2).astype(np.uint8)
    one = STRATEGIES[strategy]
    metric = "sp" if "sp" in one.metrics else "abs_sp" if "abs_sp" in one.metrics else "ppv"
    mechanism = one.mechanism or "exact"
    queries = N if N in one.counts(N) else one.counts(N)[0]
    queries = 400 if one.adaptive and strategy != "best" else queries
    dealt = {"scores": scores.tolist(), "labels": labels.tolist(), "strategy": strategy, "decoder": decoder}
    assert process.stdin is not None
    assert process.stdout is not None
    deal = json.dumps(dealt | {"queries": queries, "metric": metric, "mechanism": mechanism})
    print(deal, file=process.stdin, flush=True)
    while line := process.stdout.readline():
        said = json.loads(line)
        if "guess" in said:
            return dict(said)
        rows = said.get("gaps") or [said["size"]]
        answers = [gap(row, a, labels, metric, mechanism) for row in rows]
        print(json.dumps(answers), file=process.stdin, flush=True)
    raise AssertionError("the child said nothing")


PLAYS = [
    (name, decoder)
    for name, strategy in STRATEGIES.items()
    for decoder in (strategy.decoders if name == "sensing" else ("",))
]


@pytest.mark.few(3)
@pytest.mark.parametrize(("strategy", "decoder"), PLAYS)
def test_from_answers_alone(strategy: str, decoder: str, child: subprocess.Popen[str]) -> None:
    a = np.ones(N, np.uint8)
    a[np.random.default_rng(2).permutation(N)[:N0]] = 0
    said = play(child, strategy, decoder, a)
    assert said["loaded"] == []
    right = np.array(said["guess"]) == a
    if decoder != "score":  # which treats what is not known yet as noise
        assert right[np.array(said["targeted"])].all()


def test_every_decoder_was_there() -> None:
    assert {decoder for _, decoder in PLAYS} >= set(DECODERS)
