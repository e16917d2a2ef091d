"""Defences against distribution inference: how a model with the secret bit b is trained.

They are public algorithms (Kerckhoffs): the developer trains what it releases with them, and an adversary that adapts
trains its shadow models with the same ones, on rows of its own.
"""

from fairwall.learning.defences import (
    constant,
    dp_sgd,
    dp_sgd_fft,
    fft,
    fft_checked,
    fft_multi,
    fft_paper,
    fft_symmetric,
    fft_weighted,
    none,
    pooled,
)
from fairwall.learning.defences.split import Defence, Hand, Settings, Split, deal

DEFENCES: dict[str, Defence] = {
    "none": none.train,
    "plain-finetune": fft.plain,
    "fft": fft.train,
    "fft-checked": fft_checked.train,
    "fft-paper": fft_paper.train,
    "fft-symmetric": fft_symmetric.train,
    "fft-multi": fft_multi.train,
    "fft-weighted": fft_weighted.train,
    "pooled": pooled.train,
    "dp-sgd": dp_sgd.train,
    "dp-sgd+fft": dp_sgd_fft.train,
    "constant": constant.train,
}

__all__ = ["DEFENCES", "Defence", "Hand", "Settings", "Split", "deal"]
