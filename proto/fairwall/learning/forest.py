"""A trained ensemble of decision trees as plain numbers, which its receiver checks and evaluates by itself.

A LightGBM model travels as text or pickled. Neither is safe to load from an untrusted sender: the text's reader follows
the node numbers that it finds. `from_array` accepts only forests, and only ones that are quick to evaluate.

A node's test is LightGBM's ``feature <= threshold``: left if it holds. For finite features nothing else in a LightGBM
model matters (`NumericalDecision` in its ``tree.h``): ``default_left`` is for missing values, and zeros are missing
only with ``zero_as_missing``. Not repeated here: LightGBM takes features within 1e-35 of 0 for 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bytes, Floats, Ints

MOST_NODES = 1 << 18
"""Three times the paper's largest model. A row passes fewer than half of the nodes, so evaluation ends soon."""

_LEAF = -1
_BLOCK_ROWS = 1 << 15
"""Rows per block: a block's rows of one feature, and the row numbers at a node, stay in the cache."""


@dataclass(frozen=True, eq=False)
class Forest:
    """Decision trees whose leaves add up, with all nodes in one sequence."""

    first: Ints
    feature: Ints
    number: Floats
    left: Ints
    right: Ints

    def scores(self, features: NDArray[np.floating | np.integer]) -> Floats:
        """Return LightGBM's raw scores, bit for bit: the log odds of label 1, (rows,); ValueError for NaN features."""
        if np.isnan(features).any():
            raise ValueError("features must not be NaN")
        total = np.zeros(len(features))
        for start in range(0, len(features), _BLOCK_ROWS):
            block = slice(start, start + _BLOCK_ROWS)
            self._add_up(np.ascontiguousarray(features[block].T), total[block])
        return total

    def labels(self, features: NDArray[np.floating | np.integer]) -> Bytes:
        """Return label 1 where its odds are above 1, as LightGBM's ``predict`` does: shape (rows,), each 0 or 1."""
        return (self.scores(features) > 0).astype(np.uint8)

    def _add_up(self, columns: NDArray[np.floating | np.integer], total: Floats) -> None:
        """Add the leaves' values to ``total``; a node passes its rows on to its children, which come after it."""
        everybody = np.arange(len(total))
        nodes = list(
            zip(self.feature.tolist(), self.number.tolist(), self.left.tolist(), self.right.tolist(), strict=True)
        )
        for root, end in pairwise(self.first.tolist()):
            reached = {root: everybody}
            for node in range(root, end):
                rows = reached.pop(node)
                feature, number, left, right = nodes[node]
                if feature == _LEAF:
                    total[rows] += number
                    continue
                low = columns[feature].take(rows) <= number
                reached[left], reached[right] = rows[low], rows[~low]


def to_array(forest: Forest) -> Floats:
    """Return a forest as one array, which can travel: feature, number, left, right of each node, shape (nodes, 4)."""
    return np.column_stack((forest.feature, forest.number, forest.left, forest.right)).astype(np.float64)


def from_array(nodes: NDArray[np.generic], features: int, most: int = MOST_NODES) -> Forest:
    """Return the forest, over ``features`` features, that `to_array` wrote, from an array that may hold anything.

    ValueError, in one line, if it is no forest of at most ``most`` nodes: every node but the roots must be the child of
    exactly one earlier node of its tree, so that evaluation ends.
    """
    if nodes.dtype != np.float64 or nodes.ndim != 2 or nodes.shape[1] != 4:
        raise ValueError(f"a forest is float64 of shape (nodes, 4), not {nodes.dtype} of shape {nodes.shape}")
    if not 0 < len(nodes) <= most:
        raise ValueError(f"a forest has 1 to {most:,} nodes, not {len(nodes):,}")
    if not np.isfinite(nodes).all():
        raise ValueError("a forest's numbers must be finite")
    number = np.ascontiguousarray(nodes[:, 1])
    with np.errstate(over="ignore"):
        if not np.isfinite(np.abs(number).sum()):
            raise ValueError("a forest's leaves must add up to a finite number")
    links = nodes[:, [0, 2, 3]].astype(np.float64)
    # Only these fit an integer.
    if not ((links == np.rint(links)) & (links >= _LEAF) & (links < max(features, len(nodes)))).all():
        raise ValueError("a forest's features and children must be whole numbers in range")
    feature, left, right = np.ascontiguousarray(links.T.astype(np.int64))
    leaf = feature == _LEAF
    if (feature >= features).any():
        raise ValueError(f"a forest tests feature {feature.max()}, of {features} from 0 on")
    if not ((left[leaf] == _LEAF) & (right[leaf] == _LEAF)).all():
        raise ValueError("a forest's leaf has a child")
    here = np.arange(len(nodes))
    if not ((left > here) & (right > here) & (left < len(nodes)) & (right < len(nodes)))[~leaf].all():
        raise ValueError("a forest's children must be nodes after their parent")
    children = np.concatenate((left[~leaf], right[~leaf]))
    parents = np.bincount(children, minlength=len(nodes))
    if (parents > 1).any():
        raise ValueError(f"a forest's node {parents.argmax()} is the child of more than one")
    roots = np.flatnonzero(parents == 0)
    tree = np.cumsum(parents == 0)
    if not ((tree[left] == tree) & (tree[right] == tree))[~leaf].all():
        raise ValueError("a forest's trees must come one after the other")
    return Forest(np.append(roots, len(nodes)), feature, number, left, right)


@dataclass(frozen=True)
class Boosting:
    """LightGBM's ``max_depth``, ``learning_rate`` and ``n_estimators``; other parameters have their defaults."""

    depth: int
    rate: float
    trees: int
