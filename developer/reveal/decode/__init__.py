"""Decoders: from the queried rows and their gaps to an estimate of ``v``."""

import numpy as np

from developer.reveal.decode import best, box, ep, l1, lstsq, mcmc, omp, score
from developer.reveal.decode.decoder import Decoder, DecoderInputs
from fairwall.arrays import Floats
from fairwall.plugins import Plugin, PluginError, Registry


def _checked(plugin: Plugin, decode: Decoder) -> Decoder:
    """Return a plug-in's decoder, wrapped to check its estimate of v."""
    plugin.require(callable(decode), "is no function")

    def checked(evidence: DecoderInputs) -> Floats:
        found = np.asarray(plugin.call(decode, evidence))
        people = evidence.rows.shape[1]
        plugin.require(found.shape == (people,), f"its estimate has shape {found.shape}, not ({people},)")
        plugin.require(found.dtype.kind in "fiu" and np.isfinite(found).all(), "its estimate is not finite")
        return found.astype(np.float64)

    return checked


def _elsewhere(name: str) -> Decoder:
    """Return a placeholder for a plug-in's decoder in a process that does not run it."""

    def refused(_: DecoderInputs) -> Floats:
        raise PluginError(f"decoder {name}: a plug-in's decoder runs in the developer's process alone")

    return refused


DECODERS: Registry[Decoder] = Registry(
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
"""The decoders that use the noise distribution, and for which that distribution weighs the sizes."""

__all__ = ["DECODERS", "STATISTICAL", "Decoder", "DecoderInputs"]
