"""A differencing detector: it flags models that differ from an earlier one in few people only.

Two models that differ in one person's prediction have gaps whose difference is that person's group (Hamman, Chen,
Dutta, FAccT 2023, Example 2). A reviewer sees that from the predictions, which are the developer's and not secret. It
is a baseline, not a defence: models that differ everywhere are never flagged, whatever they reveal, while honest models
that were slightly retrained may be.
"""

import numpy as np

from fairwall.arrays import Bools, Floats

_BLOCK = 2**24
"""Most predictions compared at a time."""


class Detector:
    """A watcher of one account's batches, which remembers every model.

    Parameters
    ----------
    most : largest number of differing people that is flagged; 0 watches nothing.

    Attributes
    ----------
    flagged : number of flagged models by request id.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._seen: Floats | None = None
        self.flagged: dict[str, int] = {}

    def watch(self, request_id: str, models: Floats) -> None:
        """Record and check the next batch, shape (m, n)."""
        if self._most < 1:
            return
        earlier = models[:0] if self._seen is None else self._seen
        self.flagged[request_id] = int(flagged(models, earlier, self._most).sum())
        self._seen = np.concatenate([earlier, models])


def flagged(models: Floats, earlier: Floats, most: int) -> Bools:
    """Return which models differ from an earlier model in 1 to `most` people, shape (m,).

    `models`: predictions of a batch, shape (m, n); each model is also compared with those before it. `earlier`:
    predictions of all models before the batch, shape (k, n). `most`: 0 flags nothing.
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
