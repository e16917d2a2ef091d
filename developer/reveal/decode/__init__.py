"""Deciding: from the rows asked about and the gaps answered to an estimate of ``v``."""

from developer.reveal.decode import best, box, ep, l1, lstsq, mcmc, omp, score
from developer.reveal.decode.decoder import Decoder, Evidence

DECODERS: dict[str, Decoder] = {
    "l1": l1.decode,
    "lstsq": lstsq.decode,
    "box": box.decode,
    "omp": omp.decode,
    "score": score.decode,
    "ep": ep.decode,
    "mcmc": mcmc.decode,
    "best": best.decode,
}

STATISTICAL = frozenset(DECODERS[name] for name in ("score", "ep", "mcmc", "best"))
"""The decoders that look at the law of the noise, and for which sizes are weighed by it."""

__all__ = ["DECODERS", "STATISTICAL", "Decoder", "Evidence"]
