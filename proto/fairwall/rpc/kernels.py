"""Fixed kernels for a process's numbers, so that every processor with x86-64-v3 gives the same bits.

NumPy, the linear algebra behind it and PyTorch choose kernels by the processor, and the last bits follow from the
kernels. `fix` restricts the choice, by the environment, before they are loaded: to kernels for x86-64-v3 (AVX2 and FMA,
of 2013 and after), in one thread. The C library's functions are fixed by the level alone, since it has none for newer
ones. `in_use` asks the loaded libraries for the kernels that ran. No numerical library is imported here.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

LEVEL = "x86-64-v3"

_LIBRARIES = ("ATEN_", "DNNL_", "MKL_", "NPY_", "ONEDNN_", "OPENBLAS_")
"""Prefixes of variables by which a caller could choose kernels: a process with fixed kernels drops these."""

# One thread a process: all parties share the machine, and a sum's last bits must not depend on its cores.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

_PACKAGES = ("lightgbm", "numpy", "scikit_learn", "scipy", "torch")
"""Packages that compute numbers, by the names of their records."""

_LINEAR_ALGEBRA, _CORE = "openblas", "Haswell"
_TORCH = "AVX2, MKL COMPATIBLE"
_MKL_MODES = {1: "OFF", 2: "AUTO", 3: "COMPATIBLE"}

# Features of the level beyond x86-64-v2: CPUID's leaf in glibc's own numbering, register and bit.
_FEATURES = {
    "avx": (0, 2, 28),
    "avx2": (1, 1, 5),
    "bmi1": (1, 1, 3),
    "bmi2": (1, 1, 8),
    "f16c": (0, 2, 29),
    "fma": (0, 2, 12),
    "movbe": (0, 2, 22),
}


def fix() -> None:
    """Make libraries loaded later use fixed kernels, if the processor has these, whatever the environment says."""
    for name in [name for name in os.environ if name.startswith(_LIBRARIES)]:
        del os.environ[name]
    os.environ.update(ONE_THREAD)
    if processor() == LEVEL:
        os.environ.update(
            OPENBLAS_CORETYPE=_CORE,
            NPY_ENABLE_CPU_FEATURES=_targets(),
            ATEN_CPU_CAPABILITY="avx2",
            MKL_CBWR="COMPATIBLE",
        )


@cache
def processor() -> str:
    """Return the processor's level if fixed kernels run on it; else the machine, and the missing features."""
    machine = platform.machine()
    if machine not in ("x86_64", "AMD64"):
        return machine or "unknown"
    missing = sorted(_FEATURES.keys() - _features())
    return f"x86-64 without {', '.join(missing)}" if missing else LEVEL


def in_use() -> dict[str, str]:
    """Return the kernels of the loaded libraries, by name: "processor", "libc", "openblas of" a package, and so on."""
    libc = None
    with contextlib.suppress(AttributeError, OSError, ValueError):
        libc = os.confstr("CS_GNU_LIBC_VERSION")
    found = {"processor": processor(), "libc": libc or "unknown"}
    core = sys.modules.get("numpy._core._multiarray_umath")
    if core is not None:
        targets = (name for name in core.__cpu_dispatch__ if core.__cpu_features__.get(name))
        found["kernels of numpy"] = " ".join(targets) or "baseline"
        found |= _linear_algebra() or {_LINEAR_ALGEBRA: "unknown"}
    torch = sys.modules.get("torch._C")
    if torch is not None:
        found["kernels of torch"] = f"{torch._get_cpu_capability()}, MKL {_mkl_mode(torch)}"
    return found


def left_to_choose(numerics: Mapping[str, str]) -> dict[str, str]:
    """Return the part of a process's numerics that fixed kernels did not compute, or that is unknown."""
    fixed = {"processor": LEVEL, "kernels of numpy": _targets(), "kernels of torch": _TORCH}

    def is_fixed(name: str, value: str) -> bool:
        if name == "libc":
            return value != "unknown"
        return value.endswith(f" {_CORE}") if name.startswith(_LINEAR_ALGEBRA) else value == fixed.get(name)

    return {name: value for name, value in numerics.items() if not is_fixed(name, value)}


@cache
def installed() -> dict[str, str]:
    """Return the versions of numerical packages, from their records' names: a library for that takes long to load."""
    found: dict[str, str] = {}
    for folder in sys.path:
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):
                package, _, version = name.removesuffix(".dist-info").partition("-")
                if name.endswith(".dist-info") and package in _PACKAGES:
                    found.setdefault(package, version)
    return found


def _targets() -> str:
    """Return the level in the installed NumPy's names for its targets."""
    version = installed().get("numpy", "")
    old = version.startswith(("2.0.", "2.1.", "2.2.", "2.3."))
    return "SSSE3 SSE41 POPCNT SSE42 AVX F16C FMA3 AVX2" if old else "X86_V3"


def _features() -> set[str]:
    """Return the level's features that the processor and the system have."""
    try:
        leaf_of = ctypes.CDLL(None).__x86_get_cpuid_feature_leaf
    except (AttributeError, OSError):  # before glibc 2.33
        try:
            lines = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines()
        except OSError:
            return set()
        return set(next((line for line in lines if line.startswith("flags")), "").split())
    # The processor's features, and then those that the system lets programs use: four registers each.
    leaf_of.restype = ctypes.POINTER(ctypes.c_uint32 * 8)
    return {
        name for name, (leaf, register, bit) in _FEATURES.items() if leaf_of(leaf).contents[4 + register] >> bit & 1
    }


def _linear_algebra() -> dict[str, str]:
    """Return the version, and the core whose kernels run, of every loaded library of linear algebra."""
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return {}
    names = {"/" + line.partition("/")[2] for line in maps if "/lib" in line and ("blas" in line or "mkl" in line)}
    files = sorted(map(Path, names))
    ours = (file for file in files if file.name.startswith("lib") and ("blas" in file.name or "mkl" in file.name))
    return {f"{_LINEAR_ALGEBRA} of {file.parent.name.removesuffix('.libs')}": _asked(str(file)) for file in ours}


@cache
def _asked(file: str) -> str:
    library = ctypes.CDLL(file)
    for prefix in ("scipy_openblas", "openblas"):
        for suffix in ("64_", ""):
            with contextlib.suppress(AttributeError):
                config = getattr(library, f"{prefix}_get_config{suffix}")
                core = getattr(library, f"{prefix}_get_corename{suffix}")
                config.restype = core.restype = ctypes.c_char_p
                return f"{config().decode().split()[1]} {core().decode()}"
    return "unknown"


def _mkl_mode(torch: Any) -> str:
    """Return the reproducible mode of PyTorch's linear algebra."""
    try:
        mode = ctypes.CDLL(torch.__file__).mkl_serv_cbwr_get(1)
    except (AttributeError, OSError):
        return "unknown"
    return _MKL_MODES.get(mode, str(mode))
