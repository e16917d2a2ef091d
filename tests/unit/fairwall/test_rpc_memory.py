"""Memory that is kept: used again once nobody has it, and never before."""

from __future__ import annotations

import ctypes
import errno
import gc
import mmap
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fairwall.rpc import memory as module
from fairwall.rpc.arrays import ArrivingArray, chunks_of, header_of
from fairwall.rpc.memory import KEPT_BYTES_MAX, LARGE_BYTES, let_go, part, room


@pytest.fixture(autouse=True)
def _nothing_spare() -> Iterator[None]:
    module._spare.clear()
    yield
    module._spare.clear()


def place(array: NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])


@pytest.mark.parametrize("size", [0, LARGE_BYTES - 1])
def test_small_arrays_are_the_allocator_s(size: int) -> None:
    array = room(size)
    assert array.shape == (size,)
    assert array.flags.owndata
    del array
    assert not module._spare


@pytest.mark.parametrize("smaller", [0, LARGE_BYTES])
def test_memory_is_used_again_once_it_is_free(smaller: int) -> None:
    first = room(2 * LARGE_BYTES)
    where = place(first)
    del first
    again = room(2 * LARGE_BYTES - smaller)
    assert (place(again), again.shape) == (where, (2 * LARGE_BYTES - smaller,))
    assert again.flags.writeable


KEPT: dict[str, Callable[[NDArray[np.uint8]], Any]] = {
    "a view of a view": lambda array: array.view(np.float64).reshape(2, -1)[1, ::2],
    "what it points to": lambda array: array[5:].data,
    "an iterator": lambda array: iter(array),
}


def test_no_memory_is_used_again_while_anything_of_it_is_held() -> None:
    for kept in KEPT:
        first = room(LARGE_BYTES)
        where = place(first)
        held = KEPT[kept](first)
        del first
        gc.collect()
        second = room(LARGE_BYTES)
        assert place(second) != where
        del held
        third = room(LARGE_BYTES)
        assert place(third) == where


@pytest.mark.parametrize(("kept", "asked"), [(LARGE_BYTES, LARGE_BYTES + 1), (2 * LARGE_BYTES + 1, LARGE_BYTES)])
def test_memory_of_quite_another_size_is_given_back(kept: int, asked: int) -> None:
    array = room(kept)
    del array
    array = room(asked)
    assert array.base.nbytes == asked  # type: ignore[union-attr]


def test_no_more_is_held_than_stated() -> None:
    array = room(KEPT_BYTES_MAX + 1)
    del array
    assert not module._spare
    arrays = [room(LARGE_BYTES) for _ in range(3)]
    del arrays
    assert len(module._spare) == 1


def test_an_array_that_arrives_in_used_memory_holds_its_own_bytes() -> None:
    rng = np.random.default_rng(0)
    places = []
    for _ in range(3):
        sent = rng.random(LARGE_BYTES // 8)
        arriving = ArrivingArray(header_of(sent))
        arriving.append(sent.data.cast("B"))
        received = arriving.finish()
        assert (received == sent).all()
        assert not received.flags.writeable
        places.append(place(received))
        del received, arriving
    assert len(set(places)) == 1


FAULTS = """
import resource, sys
import numpy as np
from fairwall.rpc import memory

if {kept}:
    memory.keep_small()
for number in range(60):
    if number == 10:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    held = [np.ones(40_000) for _ in range(8)]
    del held
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="not glibc's allocator")
def test_the_system_is_not_asked_again_for_what_a_batch_of_a_usual_size_takes() -> None:
    def faults(kept: bool) -> int:
        code = FAULTS.format(kept=kept)
        return int(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout)

    assert faults(kept=True) < 100 < faults(kept=False)


@pytest.fixture
def spilling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder into which all but the smallest arrays are put."""
    monkeypatch.setattr(module, "_folders", [])
    monkeypatch.setattr(module, "SPILLED_BYTES", LARGE_BYTES)
    module.spill_to(tmp_path)
    return tmp_path


def held(name: str = "RssFile") -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def test_the_largest_arrays_are_in_files_without_a_name_and_let_go_of(spilling: Path) -> None:
    array = room(2 * LARGE_BYTES).view(np.float32).reshape(8, -1)
    array[:] = np.arange(8)[:, np.newaxis]
    assert not list(spilling.iterdir())
    before = held()
    let_go(array[2:4].view(np.uint32))
    assert held() <= before - LARGE_BYTES
    assert array[:, 5].tolist() == list(range(8))
    let_go(array)
    before = held()
    assert part(array, slice(1, 7), np.array([3, 1])).tolist() == [[row] * 2 for row in range(1, 7)]
    assert held() < before + LARGE_BYTES // 4


def test_what_is_not_among_the_largest_stays_in_memory(spilling: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(room(2 * LARGE_BYTES).base, mmap.mmap)
    monkeypatch.undo()
    monkeypatch.setattr(module, "_folders", [spilling])
    assert not isinstance(room(2 * LARGE_BYTES).base, mmap.mmap)


@pytest.mark.parametrize("how", ["full", "half"])
def test_where_a_disk_has_no_room_an_array_is_in_memory(
    how: str, spilling: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    if how == "full":
        monkeypatch.setattr(os, "posix_fallocate", full)
    else:
        left = SimpleNamespace(f_bavail=4 * LARGE_BYTES - 1, f_frsize=1)
        monkeypatch.setattr(os, "fstatvfs", lambda _: left)
    array = room(2 * LARGE_BYTES)
    array[:] = 1
    let_go(array)
    assert array.sum() == 2 * LARGE_BYTES
    assert not list(spilling.iterdir())


@pytest.mark.parametrize("kind", ["?", pytest.param("<f4", marks=pytest.mark.check)])
def test_what_comes_in_is_whole_though_it_was_let_go_of(
    kind: str, spilling: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairwall.rpc.arrays.LET_GO_BYTES", 1 << 20)
    rng = np.random.default_rng(1)
    sent = (
        (rng.random((5, LARGE_BYTES // 4 + 3)) < 0.5)
        if kind == "?"
        else rng.random((5, LARGE_BYTES // 16)).astype(kind)
    )
    arriving = ArrivingArray(header_of(sent))
    for chunk in chunks_of(sent):
        arriving.append(chunk)
    came = arriving.finish()
    assert module._file_of(came) is not None
    assert np.array_equal(came, sent)
    assert not list(spilling.iterdir())
