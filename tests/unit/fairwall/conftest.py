"""What tests of ``fairwall`` share."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder

import pytest


class _NoTorch(MetaPathFinder):
    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name=fullname)


@pytest.fixture
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if PyTorch were not installed. A None among the modules is no such thing: SciPy looks there for a class."""
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(sys, "meta_path", [_NoTorch(), *sys.meta_path])
