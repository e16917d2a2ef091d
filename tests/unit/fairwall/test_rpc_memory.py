"""Memory that is kept: used again once nobody has it, and never before."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fairwall.rpc import memory as module
from fairwall.rpc.arrays import ArrivingArray, header_of
from fairwall.rpc.memory import KEPT_BYTES_MAX, LARGE_BYTES, room


@pytest.fixture(autouse=True)
def _nothing_spare() -> Iterator[None]:
    module._spare.clear()
    yield
    module._spare.clear()


def place(array: NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])


@pytest.mark.parametrize("size", [0, 1, LARGE_BYTES - 1])
def test_small_arrays_are_the_allocator_s(size: int) -> None:
    array = room(size)
    assert array.shape == (size,)
    assert array.flags.owndata
    del array
    assert not module._spare


@pytest.mark.parametrize("smaller", [0, 1, LARGE_BYTES])
def test_memory_is_used_again_once_it_is_free(smaller: int) -> None:
    first = room(2 * LARGE_BYTES)
    where = place(first)
    del first
    again = room(2 * LARGE_BYTES - smaller)
    assert (place(again), again.shape) == (where, (2 * LARGE_BYTES - smaller,))
    assert again.flags.writeable


KEPT: dict[str, Callable[[NDArray[np.uint8]], Any]] = {
    "itself": lambda array: array,
    "a view": lambda array: array.view(np.float64),
    "a view of a view": lambda array: array.view(np.float64).reshape(2, -1)[1, ::2],
    "what it points to": lambda array: array[5:].data,
    "a row": lambda array: array.reshape(4, -1)[3],
    "an iterator": lambda array: iter(array),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("kept", KEPT)
def test_no_memory_is_used_again_while_anything_of_it_is_held(kept: str) -> None:
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
