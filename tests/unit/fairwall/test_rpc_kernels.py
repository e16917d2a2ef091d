"""Which kernels compute in a process: fixed before anything is loaded, told by what is loaded."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairwall.rpc import kernels

CHOSEN = {
    "OPENBLAS_CORETYPE": "Nehalem",
    "OPENBLAS_VERBOSE": "2",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4",
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_CBWR": "AUTO",
    "OMP_NUM_THREADS": "7",
}
"""What a caller may have in the environment: NumPy is not even loaded where two of its variables contradict."""

FIXED = pytest.mark.skipif(kernels.processor() != kernels.LEVEL, reason=f"fixed kernels need {kernels.LEVEL}")


@pytest.fixture
def fresh() -> Iterator[None]:
    """Look at the processor anew, and leave the environment as it was."""
    before = dict(os.environ)
    kernels.processor.cache_clear()
    yield
    kernels.processor.cache_clear()
    os.environ.clear()
    os.environ.update(before)


def told(code: str, **environment: str) -> Any:
    """Run a program that prints JSON."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"import json\nfrom fairwall.rpc import kernels\n{code}"],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.mark.check
@pytest.mark.parametrize("mode", ["OFF", "COMPATIBLE"])
def test_the_mode_of_pytorch_s_library_is_told_by_its_name(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.delenv("MKL_CBWR", raising=False)
    chosen = {} if mode == "OFF" else {"MKL_CBWR": mode}
    numerics = told("import torch\nprint(json.dumps(kernels.in_use()))", **chosen)
    if "unknown" in numerics["kernels of torch"]:
        pytest.skip("this PyTorch has no MKL")
    assert numerics["kernels of torch"].endswith(f"MKL {mode}")


@FIXED
def test_a_caller_chooses_no_kernels() -> None:
    numerics = told("kernels.fix()\nimport numpy\nprint(json.dumps(kernels.in_use()))", **CHOSEN)
    assert numerics.keys() > {"processor", "libc", "kernels of numpy"}
    assert any(name.startswith("openblas") for name in numerics)
    assert kernels.left_to_choose(numerics) == {}


@FIXED
def test_what_was_asked_for_too_late_is_not_what_ran() -> None:
    """A broken twin: the environment says what it should, and the libraries had read it before."""
    late = {"OPENBLAS_CORETYPE": "Nehalem", "NPY_DISABLE_CPU_FEATURES": "X86_V3"}
    before = {"NPY_ENABLE_CPU_FEATURES": ""}
    code = f"import os\nfor name in {list(before)}: os.environ.pop(name)\nimport numpy\nkernels.fix()\n"
    numerics = told(f"{code}print(json.dumps(kernels.in_use()))", **late)
    assert {name.partition(" ")[0] for name in kernels.left_to_choose(numerics)} == {"openblas", "kernels"}


def test_each_part_may_be_what_was_left_to_choose() -> None:
    fixed = {"processor": kernels.LEVEL, "libc": "glibc 2.36", "openblas of scipy": "0.3.30 Haswell"}
    assert kernels.left_to_choose(fixed) == {}
    for name, value in (
        ("processor", "aarch64"),
        ("libc", "unknown"),
        ("kernels of the future", "x86-64-v3"),
        ("kernels of numpy", "X86_V3 X86_V4"),
        ("kernels of numpy", ""),
        ("openblas", "unknown"),
        ("openblas of scipy", "0.3.30 SkylakeX"),
        ("kernels of torch", "AVX512, MKL COMPATIBLE"),
        ("kernels of torch", "AVX2, MKL AUTO"),
        ("kernels of torch", "AVX2, MKL unknown"),
    ):
        assert kernels.left_to_choose(fixed | {name: value}) == {name: value}


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("lacks", [None, "fma"])
def test_an_older_c_library_is_not_asked_for_the_processor(lacks: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = " ".join(name for name in ("fpu", "avx512f", *kernels._FEATURES) if name != lacks)
    monkeypatch.setattr(kernels.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(kernels.ctypes, "CDLL", lambda _: object())
    monkeypatch.setattr(
        Path, "read_text", lambda *_, **__: io.StringIO(f"model name: an abacus\nflags: {flags}\n").read()
    )
    assert kernels.processor() == (f"x86-64 without {lacks}" if lacks else kernels.LEVEL)


@pytest.mark.usefixtures("fresh")
def test_where_there_are_no_fixed_kernels_the_caller_chooses_none_either(monkeypatch: pytest.MonkeyPatch) -> None:
    os.environ.update(CHOSEN)
    monkeypatch.setattr(kernels.platform, "machine", lambda: "aarch64")
    kernels.fix()
    assert not set(os.environ) & (CHOSEN.keys() - {"OMP_NUM_THREADS"})
    assert os.environ["OMP_NUM_THREADS"] == os.environ["OPENBLAS_NUM_THREADS"] == "1"
    assert "processor" in kernels.left_to_choose(kernels.in_use())
