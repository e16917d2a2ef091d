"""Deciding: from the rows asked about and the gaps answered to an estimate of ``v``."""

from developer.decode import box, l1, lstsq, omp
from developer.decode.decoder import Decoder, Evidence

DECODERS: dict[str, Decoder] = {"l1": l1.decode, "lstsq": lstsq.decode, "box": box.decode, "omp": omp.decode}

__all__ = ["DECODERS", "Decoder", "Evidence"]
