"""PyTorch, which only what trains loads: it is an extra, and importing it takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


class TrainingUnavailable(RuntimeError):
    """Neural networks cannot be trained here; the text, one line, says what to install."""


def pytorch() -> ModuleType:
    """Import PyTorch.

    Raises
    ------
    TrainingUnavailable
        If it is not installed.
    """
    try:
        import torch
    except ModuleNotFoundError as missing:
        raise TrainingUnavailable(
            "training neural networks needs PyTorch: pip install 'fairwall[training]'"
        ) from missing
    return torch


@contextmanager
def one_thread() -> Iterator[ModuleType]:
    """Compute with PyTorch on one thread: products as small as these are far slower on two."""
    torch = pytorch()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield torch
    finally:
        torch.set_num_threads(before)
