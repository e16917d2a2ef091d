"""A differencing detector: which models differ from an earlier one in few people only.

Two models that differ in one person's prediction have gaps whose difference is that person's group (Hamman, Chen,
Dutta, FAccT 2023, Example 2). A reviewer who reads the predictions, which are the developer's own and no secret, can
see that. It is a baseline, not a defence: rows that all differ everywhere are never flagged, whatever they reveal,
while honest models that were retrained a little may be.
"""

import numpy as np
from numpy.typing import NDArray

_BLOCK = 2**24
"""Predictions compared at a time."""


class Detector:
    """Watches the batches of one account, and remembers all models that it saw.

    Parameters
    ----------
    most : how many people are few; 0 watches nothing.

    Attributes
    ----------
    flagged : dict of str to int
        How many models of each batch were flagged, by request id.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._seen: NDArray[np.float64] | None = None
        self.flagged: dict[str, int] = {}

    def watch(self, request_id: str, models: NDArray[np.float64]) -> None:
        """Look at the next batch, shape (m, n)."""
        if self._most < 1:
            return
        earlier = models[:0] if self._seen is None else self._seen
        self.flagged[request_id] = int(flagged(models, earlier, self._most).sum())
        self._seen = np.concatenate([earlier, models])


def flagged(models: NDArray[np.float64], earlier: NDArray[np.float64], most: int) -> NDArray[np.bool_]:
    """Flag the models that differ from an earlier one in at least one person and at most so many.

    Parameters
    ----------
    models : ndarray of float64
        Shape (m, n), the predictions of a batch's models, in their order.
    earlier : ndarray of float64
        Shape (k, n), those of all models before the batch.
    most : how many people are few; 0 flags nothing.

    Returns
    -------
    NDArray[np.bool_]
        Shape (m,). Each model is compared with the earlier ones and with those before it in the batch.
    """
    flags = np.zeros(len(models), np.bool_)
    if most < 1:
        return flags
    known = np.concatenate([earlier, models])
    rows = max(1, _BLOCK // max(1, models.shape[1]))
    for i, model in enumerate(models):
        before = len(earlier) + i
        for start in range(0, before, rows):
            differing = np.count_nonzero(known[start : min(start + rows, before)] != model, axis=1)
            if ((differing >= 1) & (differing <= most)).any():
                flags[i] = True
                break
    return flags
