"""The process that scores rows with untrusted models: it knows the rows, and no protected attribute.

It is started before compliance reads anything, and gives up all files but its libraries, and every connection. Each
batch of models runs in its own child process, which also gives up system calls before it reads the first byte of a
model, and whose time and memory are bounded.

**What the reply reveals of the rows.** Models first run on as many made-up rows: a fault that shows there is reported.
On the real rows each model may take twice as much processor time; a row on which it fails has score 0. The reply goes
out after three times the duration of the made-up rows, whatever happens on the real ones. So whether a batch is
refused, why, and when, depends on the models and on the number of rows alone: no model can reveal a row's content by
failing or by taking its time.

**Row by row.** A model that saw all rows at once could give everybody one person's income, and the noise on a sum would
not hide it; nor would it if the model failed on all rows because of one. So rows are scored in a random order, a few at
a time, and twice, in two orders: a row's score may not depend on the rows beside it. A model whose scores do so on
made-up rows is refused; real rows with two different scores, or in a chunk that fails, are scored alone.
"""

from __future__ import annotations

import math
import os
import re
import select
import signal
import struct
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeAlias

from fairwall.rpc import confine, kernels

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairwall.arrays import Floats

HEAD = struct.Struct("<QQQdd?")
"""Header of an incoming batch: people, features, models, seconds, bytes of memory, whether scores are cut at one half.

The sizes of models, the rows, and the models follow."""

SIZE = struct.Struct("<Q")

BATCH, GIVE_UP = b"B", b"G"
"""First byte of each incoming message; `GIVE_UP` ends the batch that is being scored."""

SOUND, MALFORMED, OPERATOR, SHAPE, SLOW = range(5)
"""Status byte of a reply, after its size; after SOUND each model's scores follow, float64, as far as they came."""

_SOUND = struct.Struct("<cd")
"""A child's SOUND message: the status byte, and the seconds that the made-up rows took."""

_ROWS = 1 << 16
"""Most rows scored at a time; otherwise the square root of the number of rows."""

_SAME = 2.0**-18
"""Largest difference between two scores of a row: sums added in another order are not exact."""

_UNDECIDED = 2
"""Most made-up rows, plus one in 50,000, whose two scores may lie on different sides of one half."""

_ON_REAL_ROWS, _MORE, _IN_ALL = 2.0, 0.2, 3.0
"""A model's processor time on real rows as a multiple of that on made-up rows; seconds added; time of the reply as a
multiple."""

_OPEN_FILES: Final = 256

_AT_ONCE: Final = 1 << 20

_START_SECONDS: Final = 5
"""Processor seconds allowed for loading libraries."""

_OPERATORS: Final = """
Abs Add And ArgMax ArgMin BatchNormalization Cast CastLike Ceil Clip Concat Constant Div Elu Equal Erf
Exp Expand Flatten Floor Gather Gelu Gemm Greater GreaterOrEqual HardSigmoid HardSwish Identity IsInf IsNaN
LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax MatMul Max Mean Min Mish Mul Neg Not Or PRelu Pow
Reciprocal ReduceMax ReduceMean ReduceMin ReduceSum Relu Reshape Round Selu Sigmoid Sign Slice Softmax Softplus
Softsign Split Sqrt Squeeze Sub Sum Tanh ThresholdedRelu Tile Transpose Unsqueeze Where Xor
"""
_OPERATORS_OF_ML: Final = """
ArrayFeatureExtractor Binarizer Imputer LabelEncoder LinearClassifier LinearRegressor Normalizer Scaler
SVMClassifier SVMRegressor TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor
"""
"""Operators that a model may use: no loops or branches, no randomness, no result whose size depends on values."""

_TAKEN: Final = frozenset(
    {("", name) for name in _OPERATORS.split()} | {("ai.onnx.ml", name) for name in _OPERATORS_OF_ML.split()}
)

_SIZED_BY_INPUTS: Final = frozenset({"Expand", "Reshape", "Slice", "Split", "Squeeze", "Tile", "Unsqueeze"})
"""Operators whose result size depends on inputs after the first: these must be constants."""


class _UnfitModel(Exception):
    """Raised with the status byte that refuses a model."""


def main() -> None:
    """Report this process's confinement, then score batches from stdin until it is closed."""
    kernels.fix()  # here: importers of this module's constants keep their environment
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    out = os.fdopen(os.dup(1), "wb")
    layers = confine.locked_in("compliance")
    calls = _of_child(lambda write: write(str(confine.without_calls()).encode()), None)
    _send(out, f"{confine.describe(layers)}; models by {calls.decode()}".encode())
    while kind := _read(1):
        if kind == GIVE_UP:  # the batch has already ended
            continue
        head = _read(HEAD.size)
        people, columns, count, *_ = HEAD.unpack(head)
        sizes = SIZE.iter_unpack(_read(SIZE.size * count))
        features = _read(8 * people * columns)
        models = [_read(size) for (size,) in sizes]
        _send(out, _of_child(partial(_score, head, features, models), 0))


def _read(size: int) -> bytes:
    """Read `size` bytes from stdin, without reading ahead; fewer at its end."""
    found = bytearray()
    while len(found) < size and (some := os.read(0, size - len(found))):
        found += some
    return bytes(found)


def _send(out: BinaryIO, reply: bytes) -> None:
    out.write(SIZE.pack(len(reply)) + reply)
    out.flush()


def _of_child(work: Callable[[Callable[[bytes], object]], object], watched: int | None) -> bytes:
    """Run `work` in a child process, and return its output; SLOW or MALFORMED if that is empty.

    A byte from the file descriptor `watched` kills the child; its end of file ends this process too.
    """
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            confine.end_with_parent()
            # The parent's descriptors are closed: through them a child could reply in its parent's place.
            os.dup2(writes, 3)
            os.closerange(4, _OPEN_FILES)
            for standard in (0, 1):
                os.dup2(os.open(os.devnull, os.O_RDWR), standard)
            work(_write)
        finally:
            os._exit(0)
    os.close(writes)
    said, came, took, open_ends = bytearray(), 0.0, 0.0, [reads, *([] if watched is None else [watched])]
    while reads in open_ends:
        for ready in select.select(open_ends, [], [])[0]:
            some = os.read(ready, 1 if ready == watched else _AT_ONCE)
            if ready == watched:
                os.kill(child, signal.SIGKILL)
                if not some:  # the parent has ended
                    os._exit(0)
                open_ends.remove(watched)
            elif not some:
                open_ends.remove(reads)
            elif not said and some[:1] == bytes([SOUND]) and len(some) >= _SOUND.size:
                came, (_, took) = time.monotonic(), _SOUND.unpack(some[: _SOUND.size])
                said += some[:1] + some[_SOUND.size :]
            else:
                said += some
    os.close(reads)
    _, status = os.waitpid(child, 0)
    if came and (watched is None or watched in open_ends):
        _wait_until(came, _IN_ALL * took + _MORE)
    slow = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
    return bytes(said) or bytes([SLOW if slow else MALFORMED])


def _wait_until(began: float, seconds: float) -> None:
    """Wait until `seconds` after `began`; if that has passed because of other work, double the seconds, repeatedly."""
    while (left := began + seconds - time.monotonic()) < 0:
        seconds *= 2
    time.sleep(left)


def _write(output: bytes) -> None:
    left = memoryview(output)
    while left:
        left = left[os.write(3, left) :]


def _score(head: bytes, features: bytes, models: list[bytes], write: Callable[[bytes], object]) -> None:
    """Run models on made-up rows and report the first unfit one; then score the real rows."""
    import resource

    people, columns, _, seconds, memory, binary = HEAD.unpack(head)

    def limit(more: float) -> None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        most = int(used.ru_utime + used.ru_stime + more) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))

    limit(_START_SECONDS)
    import numpy as np
    import onnx  # noqa: F401 - before files can be opened no more
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    confine.without_calls()
    resource.setrlimit(resource.RLIMIT_AS, (int(memory) + 4 * len(features),) * 2)
    rows = np.frombuffer(features).reshape(people, columns)
    made_up, began = np.random.default_rng(0).standard_normal((people, columns)), time.monotonic()
    runs, took = [], list[float]()
    try:
        for model in models:
            limit(seconds)
            before = time.process_time()
            runs.append(_opened(model, columns, onnxruntime))
            runs[-1](made_up, is_made_up=True, binary=binary)
            took.append(time.process_time() - before)
    except _UnfitModel as unfit:
        write(bytes([unfit.args[0]]))
        return
    except MemoryError:
        write(bytes([SLOW]))
        return
    write(_SOUND.pack(bytes([SOUND]), time.monotonic() - began))
    for run, its in zip(runs, took, strict=True):
        signal.setitimer(signal.ITIMER_PROF, _ON_REAL_ROWS * its + _MORE)  # which ends the process
        limit(2 * seconds)
        try:
            write(run(rows, is_made_up=False, binary=binary).tobytes())
        except (_UnfitModel, MemoryError):
            write(bytes(8 * people))


_Run: TypeAlias = "Callable[..., Floats]"
"""Returns the scores of rows, given whether rows are made up and whether scores are cut at one half."""


def _opened(model: bytes, columns: int, runtime: Any) -> _Run:
    """Check a model and return its scoring function; _UnfitModel for an unfit one."""
    import numpy as np

    model = _looked_at(model)
    try:
        options = runtime.SessionOptions()
        options.add_session_config_entry("session.load_model_format", "ONNX")
        options.add_session_config_entry("session.set_denormal_as_zero", "1")  # denormals take 100 times as long
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise _UnfitModel(_why(error)) from None
    inputs = session.get_inputs()
    kinds = {"tensor(float)": np.float32, "tensor(double)": np.float64}
    if len(inputs) != 1 or inputs[0].type not in kinds or len(inputs[0].shape) != 2:
        raise _UnfitModel(SHAPE)
    rows_wanted, columns_wanted = inputs[0].shape
    if isinstance(rows_wanted, int) or (isinstance(columns_wanted, int) and columns_wanted != columns):
        raise _UnfitModel(SHAPE)
    kind, given, told = kinds[inputs[0].type], inputs[0].name, session.get_outputs()[-1].name

    def once(rows: Floats, order: NDArray[np.intp], step: int) -> Floats:
        """Score rows `step` at a time: each row's score, and NaN for the rows of a chunk that fails."""
        found = np.empty(len(rows))
        for start in range(0, len(order), step):
            chosen = order[start : start + step]
            try:
                (scores,) = session.run([told], {given: rows[chosen].astype(kind)})
                some = np.nan_to_num(_one_a_row(scores, len(chosen)), nan=0.0, posinf=1.0, neginf=0.0)
            except _UnfitModel:
                raise
            except Exception as error:
                failures.append(_why(error))
                some = np.full(len(chosen), np.nan)
            found[chosen] = some
        # Scores are clipped to [0, 1], and NaN becomes 0: a refusal would reveal something of the rows.
        return np.clip(found, 0.0, 1.0)

    def run(rows: Floats, *, is_made_up: bool, binary: bool) -> Floats:
        failures.clear()
        draw, step = np.random.default_rng(), min(max(math.isqrt(len(rows)), 1), _ROWS)
        one, other = (once(rows, draw.permutation(len(rows)), step) for _ in range(2))
        if is_made_up and failures:
            raise _UnfitModel(failures[0])
        far = ~(np.abs(one - other) <= _SAME)
        apart = far | ((one >= 0.5) != (other >= 0.5)) if binary else far
        if is_made_up and (far.any() or np.count_nonzero(apart) > _UNDECIDED + len(rows) // 50_000):
            raise _UnfitModel(OPERATOR)
        # A row that stands out changes no other row's score: it is scored alone, and gets 0 if it fails alone.
        alone = np.flatnonzero(apart)
        one[alone] = np.nan_to_num(once(rows, alone, 1)[alone], nan=0.0)
        return one

    failures = list[int]()
    return run


def _why(error: Exception) -> int:
    """Return SLOW for an error about memory, MALFORMED otherwise."""
    return SLOW if re.search("alloc|exceeds the supported maximum", str(error), re.IGNORECASE) else MALFORMED


def _one_a_row(scores: Any, rows: int) -> Floats:
    """Return one number a row, the last of two: the probability of 1."""
    import numpy as np

    if not isinstance(scores, np.ndarray) or scores.dtype.kind not in "fiub" or scores.shape[:1] != (rows,):
        raise _UnfitModel(SHAPE)
    if scores.ndim == 1:
        return scores.astype(np.float64)
    if scores.ndim != 2 or scores.shape[1] not in (1, 2):
        raise _UnfitModel(SHAPE)
    return np.asarray(scores[:, -1], np.float64)


def _looked_at(content: bytes) -> bytes:
    """Refuse an invalid model or one with operators not allowed; return exactly the model that was checked.

    The same bytes could be another model to a reader of another format.
    """
    import onnx

    try:
        model = onnx.load_model_from_string(content)
    except Exception:
        raise _UnfitModel(MALFORMED) from None
    graph = model.graph
    if not graph.node or not graph.output:
        raise _UnfitModel(MALFORMED)
    if any(each.data_location == onnx.TensorProto.EXTERNAL or each.external_data for each in _tensors(graph)):
        raise _UnfitModel(MALFORMED)
    if model.functions or graph.sparse_initializer:
        raise _UnfitModel(OPERATOR)
    constant = {each.name for each in graph.initializer}
    constant |= {name for node in graph.node if node.op_type == "Constant" for name in node.output}
    for node in graph.node:
        name = "" if node.domain == "ai.onnx" else node.domain, node.op_type
        nested = any(each.HasField("g") or each.graphs for each in node.attribute)
        sized = node.op_type in _SIZED_BY_INPUTS and not constant.issuperset(filter(None, node.input[1:]))
        if name not in _TAKEN or nested or sized:
            raise _UnfitModel(OPERATOR)
    return bytes(model.SerializeToString())


def _tensors(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    for node in graph.node:
        for each in node.attribute:
            yield from ([each.t] if each.HasField("t") else [])
            yield from each.tensors


if __name__ == "__main__":
    main()
