"""The process that scores rows with models which somebody else has made: it knows the rows, and no protected attribute.

It is started before compliance reads anything, and gives up all files but its libraries, and every connection. Each
batch of models is run in a child of its own, which gives up system calls too before it looks at the first byte of a
model, and whose time and memory are bounded.

**What is told of the rows.** Models are first tried on made-up rows, as many as there are: what is wrong with one shows
there, and is told. On the real rows it may take twice as long; who fails all the same has scored 0. So whether a batch
is refused, and why, depends on the models and on the number of rows alone: no model can tell by failing what is in a
row.
"""

from __future__ import annotations

import os
import re
import signal
import struct
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from fairwall.rpc import confine, kernels

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HEAD = struct.Struct("<QQQdd")
"""What comes in of a batch: people, features, models, seconds, bytes of memory; then sizes of models, rows, models."""

SIZE = struct.Struct("<Q")

SOUND, MALFORMED, OPERATOR, SHAPE, SLOW = range(5)
"""What goes out, behind its size: one byte, and after SOUND the scores of each model, float64, as far as they came."""

_ROWS = 1 << 16
"""So many rows at a time."""

_OPEN_FILES: Final = 256

_START_SECONDS: Final = 5
"""How long libraries may take."""

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
"""What a model is made of: no loops or branches, nothing drawn, no result whose size depends on values."""

_TAKEN: Final = frozenset(
    {("", name) for name in _OPERATORS.split()} | {("ai.onnx.ml", name) for name in _OPERATORS_OF_ML.split()}
)

_SIZED_BY_INPUTS: Final = frozenset({"Expand", "Reshape", "Slice", "Split", "Squeeze", "Tile", "Unsqueeze"})
"""Those whose inputs but the first say how large the result is: they have to be constants."""


class _UnfitModel(Exception):
    """A model that is refused; its argument is one of the numbers that go out."""


def main() -> None:
    """Score batches that come in on stdin until it is closed; first, say what confines this."""
    kernels.fix()  # here: whoever imports this for its numbers keeps its own environment
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source, out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    layers = confine.locked_in("compliance")
    calls = _of_child(lambda write: write(str(confine.without_calls()).encode()))
    _send(out, f"{confine.describe(layers)}; models by {calls.decode()}".encode())
    while head := source.read(HEAD.size):
        people, columns, count, *_ = HEAD.unpack(head)
        sizes = SIZE.iter_unpack(source.read(SIZE.size * count))
        features = source.read(8 * people * columns)
        models = [source.read(size) for (size,) in sizes]
        _send(out, _of_child(partial(_score, head, features, models)))


def _send(out: BinaryIO, said: bytes) -> None:
    out.write(SIZE.pack(len(said)) + said)
    out.flush()


def _of_child(work: Callable[[Callable[[bytes], object]], object]) -> bytes:
    """Do something in a child that may die of it, and return what it wrote; if that is nothing, SLOW or MALFORMED."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            # What it holds of its parent's is closed: it could answer in its place.
            os.dup2(writes, 3)
            os.closerange(4, _OPEN_FILES)
            for standard in (0, 1):
                os.dup2(os.open(os.devnull, os.O_RDWR), standard)
            work(_write)
        finally:
            os._exit(0)
    os.close(writes)
    with open(reads, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    slow = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
    return said or bytes([SLOW if slow else MALFORMED])


def _write(said: bytes) -> None:
    left = memoryview(said)
    while left:
        left = left[os.write(3, left) :]


def _score(head: bytes, features: bytes, models: list[bytes], write: Callable[[bytes], object]) -> None:
    """Try models on made-up rows, say what is wrong with the first that does not do; then score the real ones."""
    import resource

    people, columns, _, seconds, memory = HEAD.unpack(head)

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
    made_up = np.random.default_rng(0).standard_normal((people, columns))
    runs = []
    try:
        for model in models:
            limit(seconds)
            runs.append(_opened(model, columns, onnxruntime))
            runs[-1](made_up)
    except _UnfitModel as unfit:
        write(bytes([unfit.args[0]]))
        return
    except MemoryError:
        write(bytes([SLOW]))
        return
    write(bytes([SOUND]))
    for run in runs:
        limit(2 * seconds)
        try:
            write(run(rows).tobytes())
        except (_UnfitModel, MemoryError):
            write(bytes(8 * people))


def _opened(model: bytes, columns: int, runtime: Any) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """Look at a model, and return what scores rows with it; _UnfitModel for one that does not do."""
    import numpy as np

    _look(model)
    try:
        options = runtime.SessionOptions()
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

    def run(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        found = np.empty(len(rows))
        for start in range(0, len(rows), _ROWS):
            block = rows[start : start + _ROWS].astype(kind)
            try:
                (scores,) = session.run([told], {given: block})
            except Exception as error:
                raise _UnfitModel(_why(error)) from None
            found[start : start + _ROWS] = _one_a_row(scores, len(block))
        # What is no probability is the nearest, and what is no number is 0: to refuse it would tell of rows.
        return np.clip(np.nan_to_num(found, nan=0.0, posinf=1.0, neginf=0.0), 0.0, 1.0)

    return run


def _why(error: Exception) -> int:
    """Tell a model that wants too much memory from one that is wrong."""
    return SLOW if re.search("alloc|exceeds the supported maximum", str(error), re.IGNORECASE) else MALFORMED


def _one_a_row(scores: Any, rows: int) -> NDArray[np.float64]:
    """Take one number a row, of two the second: the probability of 1."""
    import numpy as np

    if not isinstance(scores, np.ndarray) or scores.dtype.kind not in "fiub" or scores.shape[:1] != (rows,):
        raise _UnfitModel(SHAPE)
    if scores.ndim == 1:
        return scores.astype(np.float64)
    if scores.ndim != 2 or scores.shape[1] not in (1, 2):
        raise _UnfitModel(SHAPE)
    return np.asarray(scores[:, -1], np.float64)


def _look(content: bytes) -> None:
    """Refuse a model that is none, or is made of what is not taken."""
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


def _tensors(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    for node in graph.node:
        for each in node.attribute:
            yield from ([each.t] if each.HasField("t") else [])
            yield from each.tensors


if __name__ == "__main__":
    main()
