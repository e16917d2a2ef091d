"""Training of many small networks at once: the same matrix product over all models in one call.

Each model minimises ``mean cross-entropy + penalty`` by Adam (Kingma and Ba, ICLR 2015) on its own rows, in its own
batches, from its own initial weights. The gradient is written out: for a row with logit z the slope of the loss in z is
``(sigmoid(z) - y) / width`` plus the penalty's, and backpropagation through ``a_l = relu(a_{l-1} W_l + b_l)`` is

    delta_{l-1} = (delta_l W_l^T) * [a_{l-1} > 0],    dW_l = a_{l-1}^T delta_l,    db_l = sum over rows of delta_l.

One row's own gradient at a layer is the outer product of a_{l-1} and delta_l, so its squared norm is
``(|a_{l-1}|^2 + 1) |delta_l|^2`` (Goodfellow, 2015), and scaling a row's gradient is scaling its delta: private
training clips every row without forming its gradient.

A model is a function of its rows, seed and start alone, bit for bit, whatever models it is trained beside: a batched
product computes each model's part on its own, all else is elementwise or a sum within a model. Two exceptions of
PyTorch's are avoided: it treats a batch of one differently, so a lone model is trained beside a copy of itself; and its
sigmoid, unlike its tanh, differs in the last bit between the bulk of an array and its end.

With one version of PyTorch and fixed kernels (`fairwall.rpc.kernels`) the bits are the same on all processors with
these kernels. Therefore products are NumPy's: PyTorch's, which are MKL's, are the same everywhere only in a mode that
takes twice as long. So are square roots: MKL's are not rounded as IEEE 754 says. On other processors the last bits
differ, and training amplifies the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from fairwall.arrays import Bytes, Floats
from fairwall.learning.backend import one_thread
from fairwall.learning.batches import Batches, Poisson, PoissonStrata, Rows, Stream, shuffled
from fairwall.learning.ensemble import Ensemble, fresh, together
from fairwall.learning.penalty import EqualizedOdds, WeightedRows, slope
from fairwall.learning.private import CLIP_RATE, QUANTILE, Private

if TYPE_CHECKING:
    from torch import Tensor

# Models at work at once: enough to share the cost of a call, few enough for their activations to stay in the cache.
CHUNK = 16
# Steps whose batches are drawn in one go.
_BLOCK = 32
# Adam's, as published.
_DECAYS, _STABLE = (0.9, 0.999), 1e-8


@dataclass(frozen=True)
class Recipe:
    """The layers, steps, batch size and learning rate of a network's training.

    ``epochs * ceil(rows / batch_size)`` steps of Adam go through the rows ``epochs`` times.
    """

    layers: tuple[int, ...] = (64, 32, 16)
    steps: int = 500
    batch_size: int = 256
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        if self.steps < 1 or self.batch_size < 1 or self.learning_rate <= 0 or any(size < 1 for size in self.layers):
            raise ValueError("a recipe needs steps, a batch size and a learning rate above 0, and layers with units")


def train(
    features: Floats,
    labels: Bytes,
    rows: Sequence[Rows | Batches],
    seeds: Sequence[int],
    recipe: Recipe = Recipe(),
    *,
    penalty: EqualizedOdds | WeightedRows | None = None,
    private: Sequence[Private] | None = None,
    start: Ensemble | None = None,
    on_step: Callable[[int, int], None] | None = None,
) -> Ensemble:
    """Return one trained model for each entry of ``rows``, in order.

    TrainingUnavailable if PyTorch is not installed; ValueError if lengths differ or a private model's batches are not
    Poisson.

    Parameters
    ----------
    features, labels : (N, d) and (N,), of the table that all models' rows are in.
    rows : the rows of each model; or a plan of its batches, which then fixes their size.
    private : clips and noises each model's gradients. Batches are then Poisson, and a penalty is one of weighted rows,
        clipped together with the loss: a batch's gap is no sum over rows, so no row's part in its slope is bounded.
    start : the models' first weights, instead of fresh ones; their layers then count, not the recipe's.
    on_step : called often with the model-steps done and those in all.
    """
    if not len(rows) == len(seeds) > 0 or (start is not None and start.models != len(rows)):
        raise ValueError("every model needs its rows, its seed and, where there is a start, its start")
    plans = [entry if isinstance(entry, Batches) else shuffled(entry, recipe.batch_size) for entry in rows]
    if private is not None and (
        isinstance(penalty, EqualizedOdds)
        or len(private) != len(rows)
        or not all(isinstance(plan, Poisson | PoissonStrata) for plan in plans)
    ):
        raise ValueError("private training needs Poisson batches, a noise for every model, and no penalty but on rows")
    total, done = len(rows) * recipe.steps, 0
    # Models in one product have batches of one width; `order` remembers each model's place.
    widths = np.array([plan.width for plan in plans])
    made: list[Ensemble] = []
    order: list[int] = []
    with one_thread() as torch:
        table = torch.from_numpy(np.ascontiguousarray(features, dtype=np.float32))
        outcome = torch.from_numpy(np.ascontiguousarray(labels, dtype=np.float32))
        for width in np.unique(widths):
            alike = np.flatnonzero(widths == width)
            for first in range(0, len(alike), CHUNK):
                chunk = [int(model) for model in alike[first : first + CHUNK]]
                work = chunk * 2 if len(chunk) == 1 else chunk
                rngs = [np.random.default_rng(seeds[model]) for model in work]
                training = _Training(
                    torch,
                    fresh(features.shape[1], recipe.layers, rngs) if start is None else start.take(work),
                    [Stream(plans[model], rng) for model, rng in zip(work, rngs, strict=True)],
                    recipe,
                    rngs,
                    None if private is None else [private[model] for model in work],
                    [_expected(plans[model]) for model in work],
                )
                for steps in training.through(recipe.steps, chunk, table, outcome, penalty):
                    done += steps * len(chunk)
                    if on_step is not None:
                        on_step(done, total)
                made.append(training.result().take(range(len(chunk))))
                order += chunk
    return together(made).take(np.argsort(order, kind="stable"))


def _expected(plan: Batches) -> float:
    """Return the mean number of rows in a batch."""
    return plan.expected if isinstance(plan, Poisson | PoissonStrata) else plan.width


class _Training:
    """Some models in training."""

    def __init__(
        self,
        torch: ModuleType,
        start: Ensemble,
        streams: list[Stream],
        recipe: Recipe,
        rngs: list[np.random.Generator],
        private: list[Private] | None,
        expected: list[float],
    ) -> None:
        self._torch = torch
        self._streams = streams
        self._rngs = rngs
        self._private = private
        self._expected = torch.tensor(expected, dtype=torch.float32)[:, None]
        blocks = [
            block for pair in zip(start.weights, (b[:, None] for b in start.biases), strict=True) for block in pair
        ]
        # All parameters in one vector, and one optimiser step over it; each block begins at a cache line.
        sizes = [-(-block.size // 16) * 16 for block in blocks]
        self._flat = torch.zeros(sum(sizes))
        self._slopes = torch.zeros(sum(sizes))
        self._blocks, self._block_slopes = [], []
        offset = 0
        for block, size in zip(blocks, sizes, strict=True):
            view = self._flat[offset : offset + block.size].view(block.shape)
            view.copy_(torch.from_numpy(np.ascontiguousarray(block)))
            self._blocks.append(view)
            self._block_slopes.append(self._slopes[offset : offset + block.size].view(block.shape))
            offset += size
        self._rate = recipe.learning_rate
        self._steps = 0
        self._mean, self._square = torch.zeros_like(self._flat), torch.zeros_like(self._flat)
        self._clip = None if private is None else torch.tensor([p.clip for p in private])[:, None]
        self._weights: Tensor | None = None

    def weigh(self, weights: Tensor) -> None:
        """Set the weights of the table's rows in the penalty, shape (models, rows)."""
        self._weights = weights

    def through(
        self,
        steps: int,
        models: list[int],
        table: Tensor,
        outcome: Tensor,
        penalty: EqualizedOdds | WeightedRows | None,
    ) -> Iterator[int]:
        """Take all steps, and yield the number of each few taken; ``models`` are the models' numbers, once each."""
        odds = penalty if isinstance(penalty, EqualizedOdds) else None
        groups = None if odds is None else self._torch.from_numpy(odds.groups.astype(np.float32))
        taken = 0
        while taken < steps:
            few = min(_BLOCK, steps - taken)
            if isinstance(penalty, WeightedRows):
                if taken % penalty.every == 0:
                    weights = penalty.weigh(self.result().take(range(len(models))), models).astype(np.float32)
                    # A lone model is there twice.
                    self.weigh(self._torch.from_numpy(np.resize(weights, (len(self._rngs), len(outcome)))))
                few = min(few, penalty.every - taken % penalty.every)
            self.run(few, table, outcome, odds, groups)
            taken += few
            yield few

    def run(
        self, steps: int, table: Tensor, outcome: Tensor, penalty: EqualizedOdds | None, groups: Tensor | None
    ) -> None:
        """Take ``steps`` steps."""
        torch = self._torch
        drawn = [stream.take(steps) for stream in self._streams]
        batches = torch.from_numpy(np.stack([rows for rows, _ in drawn], axis=1))
        present = torch.from_numpy(np.stack([mask for _, mask in drawn], axis=1))
        for step in range(steps):
            chosen = batches[step]
            activations = [table.index_select(0, chosen.view(-1)).view(*chosen.shape, -1)]
            last = len(self._blocks) // 2 - 1
            for layer in range(last + 1):
                out = _product(torch, activations[-1], self._blocks[2 * layer]).add_(self._blocks[2 * layer + 1])
                activations.append(out.relu_() if layer < last else out)
            # Not sigmoid(), whose last bits depend on a number's place in the array.
            scores = 0.5 + 0.5 * (0.5 * activations.pop()[:, :, 0]).tanh_()
            labels = outcome[chosen]
            delta = (scores - labels) * present[step]
            if self._weights is not None:
                delta += self._weights.gather(1, chosen) * scores * (1 - scores) * present[step]
            if self._private is None:
                delta /= self._expected
                if penalty is not None and groups is not None:
                    delta += slope(penalty, scores, labels, groups[:, chosen], present[step])
            deltas = self._deltas(delta.unsqueeze(2), activations)
            if self._private is not None:
                self._clip_rows(deltas, activations, present[step])
            for layer, (before, after) in enumerate(zip(activations, deltas, strict=True)):
                np.matmul(before.numpy().transpose(0, 2, 1), after.numpy(), out=self._block_slopes[2 * layer].numpy())
                torch.sum(after, 1, keepdim=True, out=self._block_slopes[2 * layer + 1])
            if self._private is not None:
                self._add_noise()
            self._step()

    def _step(self) -> None:
        """Take Adam's step, written out: PyTorch's own imports a compiler, which takes as long as all the rest."""
        torch = self._torch
        self._steps += 1
        self._mean.lerp_(self._slopes, 1 - _DECAYS[0])
        self._square.mul_(_DECAYS[1]).addcmul_(self._slopes, self._slopes, value=1 - _DECAYS[1])
        shrunk = [1 - decay**self._steps for decay in _DECAYS]
        spread = _root(torch, self._square).div_(shrunk[1] ** 0.5).add_(_STABLE)
        self._flat.addcdiv_(self._mean, spread, value=-self._rate / shrunk[0])

    def _deltas(self, delta: Tensor, activations: list[Tensor]) -> list[Tensor]:
        """Return every layer's delta, the first layer's first, by backpropagation from the last layer's."""
        torch = self._torch
        deltas = [delta]
        for layer in range(len(activations) - 1, 0, -1):
            back = self._blocks[2 * layer].transpose(1, 2)
            # With one unit the product is an outer one.
            product = delta * back if delta.shape[2] == 1 else _product(torch, delta, back)
            delta = torch.ops.aten.threshold_backward(product, activations[layer], 0)
            deltas.append(delta)
        return deltas[::-1]

    def _clip_rows(self, deltas: list[Tensor], activations: list[Tensor], present: Tensor) -> None:
        """Scale every row's deltas so that its gradient has norm ``clip`` at most."""
        assert self._private is not None
        assert self._clip is not None
        torch = self._torch
        squares = torch.zeros_like(present)
        for before, delta in zip(activations, deltas, strict=True):
            squares += delta.square().sum(2) * (before.square().sum(2) + 1)
        norms = _root(torch, squares)
        factors = (self._clip / norms.clamp(min=1e-12)).clamp(max=1)
        for delta in deltas:
            delta *= factors[:, :, None]
        self._clipped_at = self._clip.clone()
        for model, private in enumerate(self._private):
            if private.adaptive:
                expected = float(self._expected[model, 0])
                small = float((((norms[model] <= self._clip[model]).to(present.dtype) - 0.5) * present[model]).sum())
                small += private.count_noise(expected) * self._rngs[model].standard_normal()
                self._clip[model] *= float(np.exp(-CLIP_RATE * (small / expected + 0.5 - QUANTILE)))

    def _add_noise(self) -> None:
        """Add noise to every model's sum of gradients, from its generator, and divide by the expected batch size."""
        assert self._private is not None
        torch = self._torch
        spread = [
            float(self._clipped_at[model, 0]) * private.gradient_noise(float(self._expected[model, 0]))
            for model, private in enumerate(self._private)
        ]
        for block in self._block_slopes:
            noise = [
                rng.standard_normal(block.shape[1:], np.float32) * np.float32(deviation)
                for rng, deviation in zip(self._rngs, spread, strict=True)
            ]
            block += torch.from_numpy(np.stack(noise))
            block /= self._expected[:, :, None]

    def result(self) -> Ensemble:
        """Return a copy of the weights."""
        copies = [block.detach().numpy().copy() for block in self._blocks]
        return Ensemble(tuple(copies[0::2]), tuple(bias[:, 0] for bias in copies[1::2]))


def _product(torch: ModuleType, first: Tensor, second: Tensor) -> Tensor:
    """Return the products of each model's matrices, by NumPy's linear algebra."""
    return torch.from_numpy(np.matmul(first.numpy(), second.numpy()))  # type: ignore[no-any-return]


def _root(torch: ModuleType, squares: Tensor) -> Tensor:
    """Return square roots rounded as IEEE 754 says."""
    return torch.from_numpy(np.sqrt(squares.numpy()))  # type: ignore[no-any-return]
