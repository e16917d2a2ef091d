"""Deciding: from the rows asked about and the gaps answered to an estimate of ``v``."""

import numpy as np
from numpy.typing import NDArray

from developer.reveal.decode import best, box, ep, l1, lstsq, mcmc, omp, score
from developer.reveal.decode.decoder import Decoder, Evidence
from fairwall.plugins import Plugin, PluginError, Table


def _checked(plugin: Plugin, decode: Decoder) -> Decoder:
    """See that a plug-in's decoder gives an estimate of v."""
    plugin.require(callable(decode), "is no function")

    def checked(evidence: Evidence) -> NDArray[np.float64]:
        found = np.asarray(plugin.call(decode, evidence))
        people = evidence.rows.shape[1]
        plugin.require(found.shape == (people,), f"its estimate has shape {found.shape}, not ({people},)")
        plugin.require(found.dtype.kind in "fiu" and np.isfinite(found).all(), "its estimate is not finite")
        return found.astype(np.float64)

    return checked


def _elsewhere(name: str) -> Decoder:
    """Stand for a plug-in's decoder where it is not run."""

    def refused(_: Evidence) -> NDArray[np.float64]:
        raise PluginError(f"decoder {name}: a plug-in's decoder runs in the developer's process alone")

    return refused


DECODERS: Table[Decoder] = Table(
    "decoders",
    {
        "l1": l1.decode,
        "lstsq": lstsq.decode,
        "box": box.decode,
        "omp": omp.decode,
        "score": score.decode,
        "ep": ep.decode,
        "mcmc": mcmc.decode,
        "best": best.decode,
    },
    _checked,
    _elsewhere,
)

STATISTICAL = frozenset(DECODERS[name] for name in ("score", "ep", "mcmc", "best"))
"""The decoders that look at the law of the noise, and for which sizes are weighed by it."""

__all__ = ["DECODERS", "STATISTICAL", "Decoder", "Evidence"]
