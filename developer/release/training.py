"""LightGBM training, an optional extra that only the release game's developer loads; the result is a forest."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np

from fairwall.arrays import Bytes, Floats
from fairwall.errors import UserError
from fairwall.learning.forest import Boosting, Forest, from_array

_INSTALL = "training tree ensembles needs LightGBM: pip install 'fairwall[release]'"


class BoostingUnavailable(UserError):
    """Tree ensembles cannot be trained here; the text, one line, says what to install."""


def require_lightgbm() -> None:
    """Raise `BoostingUnavailable` unless LightGBM is installed, without the second that importing it takes."""
    try:
        found = find_spec("lightgbm") is not None
    except (ImportError, ValueError):  # something stands in its place
        found = False
    if not found:
        raise BoostingUnavailable(_INSTALL)


def train(features: Bytes, labels: Bytes, boosting: Boosting, seed: int, threads: int = 1) -> Forest:
    """Fit LightGBM's binary classifier, as the code of Arcolezi, Makhlouf and Palamidessi (DBSec 2023) does.

    Features, (rows, features), are `fairwall.learning.design.design`'s. Where all labels are the same the constant is
    the model. With these parameters `seed` has no effect; more than one thread changes a model's last bits.
    """
    if labels.min() == labels.max():
        return constant(labels)
    try:
        from lightgbm import LGBMClassifier
    except ModuleNotFoundError as missing:
        raise BoostingUnavailable(_INSTALL) from missing
    model = LGBMClassifier(
        objective="binary",
        max_depth=boosting.depth,
        learning_rate=boosting.rate,
        n_estimators=boosting.trees,
        random_state=seed,
        n_jobs=threads,
        # Otherwise LightGBM measures which of two layouts is faster.
        force_row_wise=True,
        verbose=-1,
    )
    model.fit(features, labels)
    return forest_of(model.booster_.model_to_string(), features.shape[1])


def constant(labels: Bytes) -> Forest:
    """Return a model that predicts the more frequent label, 0 on a tie: the control that reads no feature."""
    more = 1.0 if 2 * int(labels.sum()) > len(labels) else -1.0
    return from_array(np.array([[-1.0, more, -1.0, -1.0]]), features=0)


def forest_of(model: str, features: int) -> Forest:
    """Return the forest of a LightGBM model, one tree after the other.

    `model` is the text of ``Booster.model_to_string``: all digits of every number, in a tenth of ``dump_model``'s time.
    """
    trees, place = [], 0
    for text in model.partition("\nend of trees")[0].split("\nTree=")[1:]:
        tree = _nodes(dict(line.split("=", 1) for line in text.splitlines()[1:] if line), place)
        trees.append(tree)
        place += len(tree)
    return from_array(np.concatenate(trees), features, most=place)


def _nodes(fields: dict[str, str], place: int) -> Floats:
    """Return a tree's nodes, numbered from `place` on, inner nodes first."""
    leaves = _numbers(fields["leaf_value"])
    inner = len(leaves) - 1
    nodes = np.full((inner + len(leaves), 4), -1.0)
    nodes[inner:, 1] = leaves
    if inner:
        decision = _numbers(fields["decision_type"]).astype(np.int64)
        # A forest cannot hold these, and the classifier above never builds them: bit 0 is a set of categories, and 1 in
        # bits 2 and 3 takes zeros for missing.
        assert not (decision & 1).any()
        assert not (decision >> 2 & 3 == 1).any()
        nodes[:inner, 0] = _numbers(fields["split_feature"])
        nodes[:inner, 1] = _numbers(fields["threshold"])
        for column, side in ((2, "left_child"), (3, "right_child")):
            child = _numbers(fields[side])
            # Leaf number 0 is called -1, and so on.
            nodes[:inner, column] = place + np.where(child < 0, inner - 1 - child, child)
    return nodes


def _numbers(text: str) -> Floats:
    return np.array(text.split(), dtype=np.float64)
