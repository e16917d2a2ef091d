"""Models that are handed over: scored on rows that nobody shows, in a process that has no protected attribute."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import time
import tomllib
import uuid
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pandas as pd
import psutil
import pytest
import tomli_w
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from compliance.answers import scorer as scorer_module
from compliance.answers import sealed
from compliance.answers.sealed import ScorerProcess
from fairwall.client import AuditClient, AuditRefused
from fairwall.compliance.v1 import audit_service_pb2 as audit_pb2
from fairwall.rpc.errors import Refusal, reason_of
from fairwall.wire.v1 import error_pb2
from tests.e2e.test_serve import DOCS, Served, deployment, serving
from tests.support import forked_programs

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    skl2onnx = pytest.importorskip("skl2onnx")

PAGE = (DOCS / "sealed.md").read_text()
FEATURES = ["income", "years_employed", "debt"]
PRECISE = 2.0**30
"""An epsilon by which noise is far below one person's share."""

FLOAT, INTEGER = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


def graph(
    *nodes: tuple[str, list[str], str], inputs: tuple[Any, int] = (None, 3), last: str = "y", **constants: Any
) -> bytes:
    """A model of one input ``x``: operators with their inputs and their output, and constants by name."""
    made = onnx.helper.make_graph(
        [onnx.helper.make_node(operator, [*of], [to]) for operator, of, to in nodes],
        "g",
        [onnx.helper.make_tensor_value_info("x", FLOAT, inputs)],
        [onnx.helper.make_tensor_value_info(last, FLOAT, None)],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    opset = [onnx.helper.make_opsetid("", 17)]
    return bytes(onnx.helper.make_model(made, opset_imports=opset, ir_version=8).SerializeToString())


def first_of(*nodes: tuple[str, list[str], str], **constants: Any) -> bytes:
    """A model of the first feature, called ``a`` and of shape (rows, 1)."""
    ends = {"from_": np.array([0]), "to": np.array([1]), "axis": np.array([1])}
    return graph(("Slice", ["x", "from_", "to", "axis"], "a"), *nodes, **ends, **constants)


def exact(fit: Any) -> bytes:
    """A fitted model of scikit-learn as an ONNX file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = skl2onnx.to_onnx(fit, np.zeros((1, 3), np.float32), options={"zipmap": False})
    return bytes(made.SerializeToString())


def handing(folder: Path, **sealed: Any) -> Path:
    """The documented example, which takes models."""
    deployment(folder)
    policy = tomllib.loads((folder / "policy.toml").read_text())
    policy["sealed"] = {"features": FEATURES, **sealed}
    # Not counts, which keep what a first request has paid for: tests share a service, and come in any order.
    policy["audit"] |= {"epsilon_max": PRECISE, "mechanism": "laplace"}
    policy["budget"]["epsilon"] = 8 * PRECISE
    policy["developers"] = {"alice": {"epsilon": 8 * PRECISE}, "bob": {"epsilon": 2.0}}
    (folder / "policy.toml").write_text(tomli_w.dumps(policy))
    return folder


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(handing(tmp_path_factory.mktemp("loans"), megabytes=1, seconds=0.5)) as running:
        yield running


@pytest.fixture(scope="module")
def audits(served: Served) -> Iterator[AuditClient]:
    with served.client() as client:
        yield client


@pytest.fixture(scope="module")
def people(served: Served) -> pd.DataFrame:
    return pd.read_csv(served.folder / "loans.csv")


@pytest.fixture(scope="module")
def fitted(people: pd.DataFrame) -> list[Any]:
    X, y = people[FEATURES].to_numpy(), people["repaid"].to_numpy()
    return [
        LogisticRegression().fit(X, y),
        make_pipeline(SimpleImputer(), RandomForestClassifier(5, random_state=0)).fit(X, y),
    ]


@pytest.fixture(scope="module")
def scorer() -> Iterator[ScorerProcess]:
    process = ScorerProcess()
    yield process
    process.close()


def test_models_are_answered_about_as_their_predictions_are(
    audits: AuditClient, people: pd.DataFrame, fitted: list[Any]
) -> None:
    X, y = people[FEATURES].to_numpy(np.float32), people["repaid"] == 1
    a = people["group"] == "a"
    scores = [model.predict_proba(X)[:, 1] for model in fitted]
    before = audits.terms()
    assert before.sealed is not None
    assert before.sealed.features == tuple(FEATURES)
    assert (before.sealed.bytes_max, before.sealed.seconds_max) == (1 << 20, 0.5)
    files = {"logistic": exact(fitted[0]), "forest": exact(fitted[1])}
    sp = audits.ask_sealed(files, "sp", PRECISE, request_id="sp")
    eo = audits.ask_sealed(files, "eo", PRECISE, request_id="eo")
    assert sp.models == ("logistic", "forest")
    assert sp.gaps == pytest.approx([score[a].mean() - score[~a].mean() for score in scores], abs=1e-5)
    assert eo.gaps == pytest.approx([score[a & y].mean() - score[~a & y].mean() for score in scores], abs=1e-5)
    after = audits.terms().epsilon_remaining
    assert before.epsilon_remaining - after == pytest.approx(2 * PRECISE)

    again = audits.ask_sealed(files, "sp", PRECISE, request_id="sp")
    assert again.gaps.tobytes() == sp.gaps.tobytes()
    with pytest.raises(AuditRefused, match="request id"):
        audits.ask_sealed([*files.values()][::-1], "sp", PRECISE, request_id="sp")
    assert audits.terms().epsilon_remaining == after


def test_a_request_is_about_the_files_to_the_last_byte(audits: AuditClient) -> None:
    one, other = (first_of(("Mul", ["a", "by"], "y"), by=np.array([by], np.float32)) for by in (0.5, 0.25))
    assert len(one) == len(other)
    audits.ask_sealed(one, "sp", 0.1, request_id="file")
    with pytest.raises(AuditRefused) as caught:
        audits.ask_sealed(other, "sp", 0.1, request_id="file")
    assert caught.value.reason == "REQUEST_ID_REUSED"


@pytest.mark.parametrize(
    ("sizes", "parts"), [([9], [b"1234"]), ([4], [b"1234", b"5"]), ([2, 2], [b"123"]), ([4], []), ([4], [None])]
)
def test_other_bytes_than_announced_are_refused(
    audits: AuditClient, sizes: list[int], parts: list[bytes | None]
) -> None:
    assert refusal_of(audits, sizes, parts) == error_pb2.REASON_REQUEST_MALFORMED


@pytest.mark.parametrize("more", [None, 1, 10_000])
def test_no_model_and_too_many_are_refused(audits: AuditClient, fitted: list[Any], more: int | None) -> None:
    models = 0 if more is None else audits.terms().queries_max + more
    model = exact(fitted[0])
    refused = refusal_of(audits, [len(model)] * models, [model] * min(models, 40))
    assert refused == error_pb2.REASON_QUERIES_OUT_OF_RANGE


def refusal_of(audits: AuditClient, sizes: list[int], parts: list[bytes | None]) -> Any:
    """Announce models of so many bytes and send others: why that is refused, for nothing."""
    header = audit_pb2.AuditSealedHeader(request_id="r", deal_id="loans", metric=1, epsilon=1.0, sizes=sizes)
    whole = [audit_pb2.AuditSealedRequest(header=header)]
    whole += [audit_pb2.AuditSealedRequest(models_chunk=each) if each else whole[0] for each in parts]
    before = audits.terms().epsilon_remaining
    with pytest.raises(grpc.RpcError) as caught:
        audits._service.AuditSealed(iter(whole), timeout=300)
    assert audits.terms().epsilon_remaining == before
    return reason_of(caught.value)


def test_the_same_file_asked_once_is_paid_for_once(audits: AuditClient, tmp_path: Path, fitted: list[Any]) -> None:
    (tmp_path / "model.onnx").write_bytes(exact(fitted[0]))
    first, again = (
        audits.ask_sealed(each, "sp", 1.0, once=True) for each in (tmp_path / "model.onnx", exact(fitted[0]))
    )
    assert first.request_id == again.request_id
    assert first.gaps.tobytes() == again.gaps.tobytes()


SLOW = graph(
    ("MatMul", ["x", "wide"], "a0"),
    *(("MatMul", [f"a{at}", "square"], f"a{at + 1}") for at in range(5000)),
    ("MatMul", ["a5000", "narrow"], "y"),
    wide=np.ones((3, 250), np.float32),
    square=np.ones((250, 250), np.float32) / 250,
    narrow=np.ones((250, 1), np.float32),
)
UNFIT: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "MODEL_TOO_LARGE"),
    "too much": (first_of(("Identity", ["a"], "y"), more=np.ones(1 << 18, np.float32)), "MODEL_TOO_LARGE"),
    "garbage": (b"PK\x03\x04 no model", "MODEL_MALFORMED"),
    "an unfinished graph": (graph(("Relu", ["z"], "y")), "MODEL_MALFORMED"),
    "columns that do not fit": (graph(("MatMul", ["x", "w"], "y"), w=np.ones((4, 1), np.float32)), "MODEL_MALFORMED"),
    "a drawn number": (first_of(("RandomNormalLike", ["a"], "y")), "MODEL_OPERATOR"),
    "what may be dropped at random": (first_of(("Dropout", ["a"], "y")), "MODEL_OPERATOR"),
    "a size that depends on values": (first_of(("NonZero", ["a"], "y")), "MODEL_OPERATOR"),
    "a size that is no constant": (first_of(("Cast", ["a"], "i"), ("Tile", ["a", "i"], "y")), "MODEL_OPERATOR"),
    "a row at a time": (graph(("Identity", ["x"], "y"), inputs=(1, 3)), "MODEL_SHAPE"),
    "four features": (graph(("ReduceSum", ["x"], "y"), inputs=(None, 4)), "MODEL_SHAPE"),
    "three numbers a row": (graph(("Identity", ["x"], "y")), "MODEL_SHAPE"),
    "one number": (graph(("ReduceSum", ["x"], "y")), "MODEL_SHAPE"),
    "slow": (SLOW, "MODEL_SLOW"),
    "large": (
        first_of(("Tile", ["a", "many"], "b"), ("ReduceMean", ["b"], "y"), many=np.array([1, 1 << 26])),
        "MODEL_SLOW",
    ),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", UNFIT)
def test_an_unfit_model_is_one_line_and_free(served: Served, audits: AuditClient, kind: str) -> None:
    model, reason = UNFIT[kind]
    before = audits.terms().epsilon_remaining
    with pytest.raises(AuditRefused) as caught:
        audits.ask_sealed([first_of(("Identity", ["a"], "y")), model], "sp", 1.0)
    assert caught.value.reason == reason
    assert "\n" not in str(caught.value)
    assert audits.terms().epsilon_remaining == before
    assert audits.ask_sealed(first_of(("Identity", ["a"], "y")), "sp", 0.1).epsilon_charged == 0.1
    assert "Traceback" not in served.log


# Its index is 0 for what is drawn in making up rows, and beyond the table for an income in thousands.
STUMBLES = first_of(
    ("Mul", ["a", "little"], "b"),
    ("Cast", ["b"], "i"),
    ("Gather", ["table", "i"], "c"),
    ("Flatten", ["c"], "y"),
    little=np.array([0.1], np.float32),
    table=np.array([0.7, 0.7], np.float32),
)


def stumbling() -> bytes:
    """STUMBLES, with the type that its index is cast to."""
    model = onnx.load_model_from_string(STUMBLES)
    (cast,) = (node for node in model.graph.node if node.op_type == "Cast")
    cast.attribute.append(onnx.helper.make_attribute("to", INTEGER))
    return bytes(model.SerializeToString())


def test_no_model_tells_by_failing_what_is_in_a_row(scorer: ScorerProcess) -> None:
    low, high = np.zeros((50, 3)), np.zeros((50, 3))
    high[7, 0] = 1000.0
    sound = first_of(("Identity", ["a"], "y"))
    found = {name: scorer.scores(rows, [stumbling(), sound], 1.0) for name, rows in (("low", low), ("high", high))}
    assert found["low"].tolist() == [[pytest.approx(0.7)] * 50, [0.0] * 50]
    assert found["high"].tolist() == [
        [pytest.approx(0.7 * (row != 7)) for row in range(50)],  # and nobody else's score is another for it
        [float(row == 7) for row in range(50)],
    ]


def over_rows(*nodes: tuple[str, list[str], str], **constants: Any) -> bytes:
    """A model whose `ReduceMax` is over rows: they all get what one of them has."""
    model = onnx.load_model_from_string(first_of(*nodes, **constants))
    for node in model.graph.node:
        if node.op_type == "ReduceMax":
            node.attribute.append(onnx.helper.make_attribute("axes", [0]))
    return bytes(model.SerializeToString())


NONE = np.zeros(1, np.float32)
TELLS = over_rows(
    ("ReduceMax", ["a"], "m"), ("Mul", ["a", "none"], "b"), ("Add", ["b", "m"], "y"), none=np.zeros(1, "f")
)
"""Gives everybody the largest income."""
TELLS_REAL_ONES = over_rows(
    ("Sub", ["a", "much"], "c"),
    ("Relu", ["c"], "d"),
    ("ReduceMax", ["d"], "m"),
    ("Mul", ["a", "none"], "b"),
    ("Add", ["b", "m"], "e"),
    ("Mul", ["e", "little"], "y"),
    much=np.full(1, 10, "f"),
    none=NONE,
    little=np.full(1, 0.01, "f"),
)
"""Gives everybody the largest income beyond what is drawn in making up rows."""


@pytest.mark.parametrize("binary", [False, True])
def test_no_model_gives_everybody_what_one_row_has(scorer: ScorerProcess, binary: bool) -> None:
    rows = np.zeros((200, 3))
    with pytest.raises(Refusal) as refused:
        scorer.scores(rows, [TELLS], 1.0, binary=binary)
    assert refused.value.reason == error_pb2.REASON_MODEL_OPERATOR
    assert scorer.scores(rows, [TELLS_REAL_ONES], 1.0, binary=binary).tolist() == [[0.0] * 200]
    rows[7, 0] = 75.0  # which would be a score of 0.65 for everybody
    (found,) = scorer.scores(rows, [TELLS_REAL_ONES], 1.0, binary=binary)
    assert found[7] == pytest.approx(0.65)
    assert np.count_nonzero(found) <= 6, "but for a few who stood beside it twice"


def test_no_model_gives_everybody_less_than_one_half_for_one_row(scorer: ScorerProcess) -> None:
    """A difference that is no difference of scores, and one of everybody's decisions."""
    rows = np.zeros((200, 3))
    half = over_rows(
        ("Sub", ["a", "much"], "c"),
        ("Relu", ["c"], "d"),
        ("ReduceMax", ["d"], "m"),
        ("Mul", ["m", "little"], "e"),
        ("Mul", ["a", "none"], "b"),
        ("Sub", ["b", "e"], "f"),
        ("Add", ["f", "half"], "y"),
        much=np.full(1, 10, "f"),
        none=NONE,
        little=np.full(1, 1e-8, "f"),
        half=np.full(1, 0.5, "f"),
    )
    assert (scorer.scores(rows, [half], 1.0, binary=True) >= 0.5).all()
    rows[7, 0] = 75.0
    assert np.count_nonzero(scorer.scores(rows, [half], 1.0, binary=True) < 0.5) <= 6


def test_what_is_run_is_what_was_looked_at() -> None:
    """The same bytes may be an ONNX model and, to a runtime that guesses, one of another format."""
    given: list[tuple[bytes, str]] = []

    class Runtime:
        SessionOptions = onnxruntime.SessionOptions

        @staticmethod
        def InferenceSession(model: bytes, options: Any, **_: Any) -> Any:  # noqa: N802 - as the library calls it
            given.append((model, options.get_session_config_entry("session.load_model_format")))
            return onnxruntime.InferenceSession(model, options)

    model = first_of(("Identity", ["a"], "y"))
    behind = model + b"\x08\x08"  # its version, once more
    scorer_module._opened(behind, 3, Runtime)
    ((run, form),) = given
    assert form == "ONNX"
    assert run == onnx.load_model_from_string(behind).SerializeToString() != behind


@pytest.mark.check
def test_a_refusal_for_want_of_budget_takes_as_long_whatever_is_in_a_row(served: Served) -> None:
    """200 refusals of a developer with nothing left, of a model that fails on real rows and of one that does not.

    They are as large. Ranks of how long they took: in 1 of 10^6 runs a sound service fails.
    """
    from scipy.stats import mannwhitneyu

    fails, runs = stumbling(), stumbling().replace(np.float32(0.1).tobytes(), np.float32(1e-9).tobytes())
    assert len(fails) == len(runs)
    assert fails != runs
    took: dict[bytes, list[float]] = {fails: [], runs: []}
    with served.client("bob") as audits:
        for _ in range(100):
            for model in took:
                began = time.perf_counter()
                with pytest.raises(AuditRefused) as caught:
                    audits.ask_sealed(model, "sp", 3.0)
                took[model].append(time.perf_counter() - began)
                assert caught.value.reason == "BUDGET_EXHAUSTED"
    assert mannwhitneyu(*took.values()).pvalue > 1e-6


LONG = graph(
    ("MatMul", ["x", "wide"], "a0"),
    *(("MatMul", [f"a{at}", "square"], f"a{at + 1}") for at in range(3000)),
    ("MatMul", ["a3000", "narrow"], "y"),
    wide=np.ones((3, 250), np.float32),
    square=np.ones((250, 250), np.float32) / 250,
    narrow=np.ones((250, 1), np.float32),
)


def scoring(served: Served) -> list[psutil.Process]:
    """The processes that score, and what they have started."""
    found = []
    for each in psutil.Process(served.process.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            found += [each] * ("compliance.answers.scorer" in " ".join(each.cmdline()))
    return found


def until(seconds: float, holds: Callable[[], bool]) -> bool:
    ends = time.monotonic() + seconds
    while not holds() and time.monotonic() < ends:
        time.sleep(0.05)
    return holds()


@pytest.mark.check
@pytest.mark.skipif(sys.platform != "linux", reason="processes end with their parents on Linux")
def test_nobody_waits_for_anothers_models_and_what_nobody_waits_for_ends(tmp_path: Path) -> None:
    with serving(handing(tmp_path, megabytes=4, seconds=60.0)) as running:
        idle = len(scoring(running))
        with running.client("bob") as audits:
            audits.terms()  # which are worked out meanwhile

        def gives_up(after: float = 6) -> None:
            with running.client() as audits, contextlib.suppress(grpc.RpcError):
                audits._service.AuditSealed(iter(request(LONG)), timeout=after)

        with ThreadPoolExecutor(3) as alice:
            asked = [alice.submit(gives_up) for _ in range(3)]
            assert until(60, lambda: len(scoring(running)) == idle + 1), "one at a time"
            with running.client("bob") as audits:
                answered = audits.ask_sealed(first_of(("Identity", ["a"], "y")), "sp", 0.5)
            assert answered.epsilon_charged == 0.5
            assert len(scoring(running)) == idle + 1, "alice's goes on"
            for each in asked:
                each.exception()
        assert until(60, lambda: len(scoring(running)) == idle), "alice has given up"
        with ThreadPoolExecutor(1) as alice:
            asked = [alice.submit(gives_up, 60)]
            assert until(50, lambda: len(scoring(running)) == idle + 1)
            processes = scoring(running)
            running.process.kill()
            _, alive = psutil.wait_procs(processes, 20)
            assert not alive


def request(model: bytes) -> list[Any]:
    header = audit_pb2.AuditSealedHeader(
        request_id=uuid.uuid4().hex, deal_id="loans", metric=1, epsilon=0.1, sizes=[len(model)]
    )
    return [audit_pb2.AuditSealedRequest(header=header), audit_pb2.AuditSealedRequest(models_chunk=model)]


def test_scores_are_put_where_predictions_may_be(scorer: ScorerProcess) -> None:
    rows = np.array([[-2.0, 0, 0], [0.25, 0, 0], [7, 0, 0], [np.nan, 0, 0], [np.inf, 0, 0], [-np.inf, 0, 0]])
    assert scorer.scores(rows, [first_of(("Identity", ["a"], "y"))], 1.0).tolist() == [[0, 0.25, 1, 0, 1, 0]]
    two = graph(("Concat", ["x"], "b"), ("Slice", ["b", "f", "t", "at"], "y"), f=[1], t=[3], at=[1])
    model = onnx.load_model_from_string(two)
    model.graph.node[0].attribute.append(onnx.helper.make_attribute("axis", 1))
    found = scorer.scores(np.array([[0.1, 0.2, 0.3]]), [model.SerializeToString()], 1.0)
    assert found == pytest.approx(np.array([[0.3]]))


def test_a_batch_that_dies_takes_nobody_with_it(scorer: ScorerProcess) -> None:
    rows, sound = np.full((50, 3), 0.5), first_of(("Identity", ["a"], "y"))
    for _ in range(2):
        with pytest.raises(Refusal) as refused:
            scorer.scores(rows, [sound, UNFIT["large"][0]], 1.0)
        assert refused.value.reason == error_pb2.REASON_MODEL_SLOW
        assert scorer.scores(rows, [sound], 1.0).tolist() == [[0.5] * 50]


def test_a_process_that_has_ended_is_said(caplog: pytest.LogCaptureFixture) -> None:
    scorer = ScorerProcess(processes=1)
    scorer._processes[0].kill()
    scorer._processes[0].wait()
    for _ in range(2):  # found so, and known so
        with pytest.raises(Refusal) as refused:
            scorer.scores(np.zeros((5, 3)), [first_of(("Identity", ["a"], "y"))], 1.0)
        assert refused.value.reason == error_pb2.REASON_MODEL_UNAVAILABLE
    assert "the process that scores models has ended" in caplog.text
    scorer.close()


@pytest.mark.check
def test_many_rows_are_scored_in_blocks_and_in_order(scorer: ScorerProcess) -> None:
    rows = np.random.default_rng(0).random((150_001, 3))
    assert scorer.scores(rows, [first_of(("Identity", ["a"], "y"))], 5.0)[0] == pytest.approx(rows[:, 0], abs=1e-7)


@pytest.mark.skipif(sys.platform != "linux", reason="layers are Linux's")
def test_what_scores_has_no_file_and_no_protected_attribute(served: Served) -> None:
    """Its files are closed to it: it could read none even if a model had taken it over."""
    children = psutil.Process(served.process.pid).children()
    scoring = [each for each in children if each.cmdline()[-1].endswith(".scorer")]
    assert scoring
    for process in scoring:
        assert process.cmdline()[1:3] == ["-I", "-m"]
        assert process.environ().keys() <= sealed._ENVIRONMENT, "nothing of the service's own"
    said = served.said("models that are handed over run in a process")
    for layer in ("landlock", "tcp-ports", "non-dumpable", "syscalls"):
        assert layer in said.partition("\n")[0]


def test_the_process_reads_no_data(tmp_path: Path) -> None:
    """What the process does is done here in its stead: with its layers, a file of people cannot be opened."""
    (tmp_path / "people.csv").write_text("group\na\n")
    code = (
        "from fairwall.rpc import confine; layers = confine.locked_in('compliance');"
        "active = [layer.name for layer in layers if layer.active];"
        f"print(active);\ntry: open({str(tmp_path / 'people.csv')!r})\nexcept PermissionError: print('closed')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    layers, *closed = done.stdout.splitlines()
    assert closed == (["closed"] if "landlock" in layers else [])


def _policy(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    policy = tomllib.loads((folder / "policy.toml").read_text())
    change(policy)
    (folder / "policy.toml").write_text(tomli_w.dumps(policy))


WRONG: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "twice": (lambda p: p["sealed"].update(features=["debt", "debt"]), "sealed.features: a column stands there twice"),
    "protected": (lambda p: p["sealed"].update(features=["income", "group"]), "sealed.features: 'group' is protected"),
    "the label": (
        lambda p: p["sealed"].update(features=["repaid"]),
        "sealed.features: 'repaid' is protected, the label",
    ),
    "none": (lambda p: p["sealed"].update(features=[]), "sealed.features: must have at least 1"),
    "not there": (lambda p: p["sealed"].update(features=["rent"]), "sealed.features: .*no column 'rent'"),
    "a typo": (lambda p: p["sealed"].update(megabyte=1), "sealed.megabyte: unknown key.*megabytes"),
    "no time": (lambda p: p["sealed"].update(seconds=0.0), "sealed.seconds: must be greater"),
    "texts": (lambda p: p["sealed"].update(features=["place"]), "sealed.features: .*'place' has no numbers"),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_policy_is_one_line(tmp_path: Path, kind: str) -> None:
    spoil, why = WRONG[kind]
    handing(tmp_path)
    if kind == "texts":
        pd.read_csv(tmp_path / "loans.csv").assign(place="north").to_csv(tmp_path / "loans.csv", index=False)
    _policy(tmp_path, spoil)
    ended = forked_programs.run(
        [sys.executable, "-I", "-m", "compliance", "--policy", str(tmp_path / "policy.toml")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 2
    (said,) = (line for line in ended.stderr.splitlines() if line.startswith("compliance: "))
    assert re.search(why, said), said


@pytest.mark.check
def test_a_refusal_is_the_same_whoever_is_in_which_group(tmp_path: Path, fitted: list[Any]) -> None:
    """Two services of people who differ in everybody's group alone refuse alike, and score alike."""
    said = []
    for name, swap in (("one", {}), ("other", {"a": "b", "b": "a"})):
        (folder := tmp_path / name).mkdir()
        handing(folder, megabytes=1, seconds=0.5)
        people = pd.read_csv(folder / "loans.csv")
        people.assign(group=people["group"].replace(swap)).to_csv(folder / "loans.csv", index=False)
        with serving(folder) as running, running.client() as audits:
            refused = []
            for model, _ in list(UNFIT.values())[:-2]:
                with pytest.raises(AuditRefused) as caught:
                    audits.ask_sealed(model, "sp", 1.0)
                refused.append(str(caught.value))
            gaps = audits.ask_sealed(exact(fitted[0]), "sp", PRECISE).gaps
        said.append((refused, gaps))
    assert said[0][0] == said[1][0]
    assert said[0][1] == pytest.approx(-said[1][1], abs=1e-6)


@pytest.mark.check
def test_a_service_takes_no_first_models_while_it_runs(tmp_path: Path) -> None:
    deployment(tmp_path)
    with serving(tmp_path) as running, running.client() as audits:
        assert audits.terms().sealed is None
        with pytest.raises(AuditRefused) as caught:
            audits.ask_sealed(first_of(("Identity", ["a"], "y")), "sp", 0.1)
        assert caught.value.reason == "NO_FEATURES"
        _policy(tmp_path, lambda policy: policy.update(sealed={"features": FEATURES}))
        running.process.send_signal(1)
        running.said("sealed: the first cannot come while the service runs")
        assert audits.terms().sealed is None


@pytest.mark.check
def test_the_page_s_policy_and_model_are_answered(tmp_path: Path) -> None:
    deployment(tmp_path)
    policy, asked = re.findall(r"```(?:toml|python)\n(.*?)```", PAGE, re.DOTALL)
    _policy(tmp_path, lambda served: served.update(tomllib.loads(policy)))
    (tmp_path / "loans.csv").rename(tmp_path / "people.csv")
    _policy(tmp_path, lambda served: served["data"].update(source="people.csv"))
    pd.read_csv(DOCS / "example" / "loans.csv").iloc[200:].to_csv(tmp_path / "loans.csv", index=False)
    with serving(tmp_path) as running:
        done = forked_programs.run(
            [sys.executable, "-W", "ignore", "-c", asked.replace("127.0.0.1:7443", running.address)],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
    assert done.returncode == 0, done.stderr
    assert "logistic" in done.stdout
    assert "..." not in done.stdout  # B7: no column of the frame is left out
