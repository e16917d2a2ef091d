"""Shadow models a second of CPU time: ours, scikit-learn's MLPClassifier and a plain PyTorch loop, on one thread.

    OPENBLAS_NUM_THREADS=1 python benchmarks/shadows_per_second.py [--rounds 5] [--batch-size 200]

The same made rows (2,000 for each model, out of 20,000; 100 features), layers (64, 32, 16), epochs, batches and Adam
for all three, one after the other in every round. scikit-learn is given float32, which is to its advantage. Two
controls: the share of right decisions on other rows must come out alike, and a model trained alone must be the one
trained beside the others, bit for bit.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray
from short import parsed

from fairwall.learning import Recipe, train

TABLE, FEATURES, ROWS, EPOCHS, LAYERS, RATE = 20_000, 100, 2_000, 20, (64, 32, 16), 1e-3

Scores = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Trainer = Callable[[NDArray[np.float64], NDArray[np.uint8], list[NDArray[np.intp]], int], Scores]


def ensemble(
    features: NDArray[np.float64], labels: NDArray[np.uint8], rows: list[NDArray[np.intp]], batch: int
) -> Scores:
    recipe = Recipe(LAYERS, EPOCHS * -(-ROWS // batch), batch, RATE)
    return train(features, labels, rows, range(len(rows)), recipe).scores


def scikit(
    features: NDArray[np.float64], labels: NDArray[np.uint8], rows: list[NDArray[np.intp]], batch: int
) -> Scores:
    from sklearn.neural_network import MLPClassifier

    single = features.astype(np.float32)
    models = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that so many epochs do not converge is the point
        for seed, chosen in enumerate(rows):
            model = MLPClassifier(
                LAYERS,
                alpha=0,
                batch_size=batch,
                learning_rate_init=RATE,
                max_iter=EPOCHS,
                n_iter_no_change=EPOCHS + 1,
                random_state=seed,
            )
            models.append(model.fit(single[chosen], labels[chosen]))
    return lambda asked: np.stack([model.predict_proba(asked.astype(np.float32))[:, 1] for model in models])


def loop(features: NDArray[np.float64], labels: NDArray[np.uint8], rows: list[NDArray[np.intp]], batch: int) -> Scores:
    import torch
    from torch import nn

    torch.set_num_threads(1)
    table = torch.from_numpy(features.astype(np.float32))
    outcome = torch.from_numpy(labels.astype(np.float32))
    models = []
    for seed, chosen in enumerate(rows):
        torch.manual_seed(seed)
        sizes = (FEATURES, *LAYERS)
        hidden = [part for a, b in zip(sizes, LAYERS, strict=False) for part in (nn.Linear(a, b), nn.ReLU())]
        model = nn.Sequential(*hidden, nn.Linear(LAYERS[-1], 1))
        adam = torch.optim.Adam(model.parameters(), lr=RATE)
        loss = nn.BCEWithLogitsLoss()
        x, y = table[torch.from_numpy(chosen)], outcome[torch.from_numpy(chosen)]
        for _ in range(EPOCHS):
            order = torch.randperm(ROWS)
            for start in range(0, ROWS, batch):
                part = order[start : start + batch]
                adam.zero_grad()
                loss(model(x[part])[:, 0], y[part]).backward()
                adam.step()
        models.append(model)

    def scores(asked: NDArray[np.float64]) -> NDArray[np.float64]:
        with torch.no_grad():
            each = [model(torch.from_numpy(asked.astype(np.float32)))[:, 0].sigmoid() for model in models]
        return np.asarray(torch.stack(each).numpy(), dtype=np.float64)

    return scores


TRAINERS: dict[str, tuple[Trainer, int]] = {
    "fairwall.learning": (ensemble, 64),
    "MLPClassifier": (scikit, 8),
    "a PyTorch loop": (loop, 8),
}
"""Each with how many models it trains a round."""


def main() -> None:
    """Print the medians over the rounds, and the ratios' medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=200)
    asked = parsed(parser, rounds=1, batch_size=2000)
    rng = np.random.default_rng(0)
    features = rng.normal(size=(TABLE, FEATURES))
    labels = (features[:, :10].sum(1) + rng.normal(size=TABLE) * 2 > 0).astype(np.uint8)
    rows = [rng.choice(TABLE // 2, ROWS, replace=False) for _ in range(64)]
    for trainer, _ in TRAINERS.values():  # imports, and the first touch of everything
        trainer(features, labels, rows[:1], asked.batch_size)
    rates: dict[str, list[float]] = {name: [] for name in TRAINERS}
    for number in range(asked.rounds):
        print(f"round {number + 1} of {asked.rounds}", file=sys.stderr)
        for name, (trainer, models) in TRAINERS.items():
            started = time.process_time()
            scores = trainer(features, labels, rows[:models], asked.batch_size)
            rates[name].append(models / (time.process_time() - started))
            if number == 0:
                right = np.mean((scores(features[TABLE // 2 :]) >= 0.5) == (labels[TABLE // 2 :] == 1))
                print(f"{name:18} right about {100 * right:.1f}% of other rows")
    for name, values in rates.items():
        ratios = [ours / theirs for ours, theirs in zip(rates["fairwall.learning"], values, strict=True)]
        print(
            f"{name:18} median {statistics.median(values):6.1f} models a CPU second; ours is "
            f"{statistics.median(ratios):.2f} times as fast ({min(ratios):.2f} to {max(ratios):.2f})"
        )
    together = ensemble(features, labels, rows, asked.batch_size)(features[:100])
    alone = ensemble(features, labels, rows[:1], asked.batch_size)(features[:100])
    print("a model alone is the one in the ensemble:", bool(np.array_equal(together[0], alone[0])))


if __name__ == "__main__":
    main()
