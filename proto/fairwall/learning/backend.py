"""Lazy access to PyTorch, which is an extra and takes seconds to import."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType

from fairwall.errors import UserError

_INSTALL = "training neural networks needs PyTorch: pip install 'fairwall[training]'"


class TrainingUnavailable(UserError):
    """Neural networks cannot be trained here; the text, one line, says what to install."""


def require_pytorch() -> None:
    """Raise TrainingUnavailable unless PyTorch is installed, without the seconds that importing it takes."""
    try:
        found = find_spec("torch") is not None
    except (ImportError, ValueError):  # another module of this name
        found = False
    if not found:
        raise TrainingUnavailable(_INSTALL)


def pytorch() -> ModuleType:
    """Import PyTorch, with products whose bits do not depend on its arrays' positions in memory.

    Outside its reproducible mode (MKL_CBWR) the library behind it chooses by alignment, so that a model trained alone
    may differ in its last bits from the same model trained among others. Seen on an AMD processor, where the mode cost
    nothing. A process with fixed kernels has set the mode before. TrainingUnavailable if PyTorch is not installed.
    """
    os.environ.setdefault("MKL_CBWR", "AUTO")  # read once, when the library is loaded
    try:
        import torch
    except ModuleNotFoundError as missing:
        raise TrainingUnavailable(_INSTALL) from missing
    return torch


@contextmanager
def one_thread() -> Iterator[ModuleType]:
    """Compute with PyTorch on one thread in the body: products as small as these are far slower on two."""
    torch = pytorch()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield torch
    finally:
        torch.set_num_threads(before)
