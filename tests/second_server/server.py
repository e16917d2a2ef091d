"""AuditService a second time, by the documents alone: grpc and Python's own library, nothing of this project's Python.

    python server.py --descriptors FILE --policy FILE

FILE is what `fairwall test protocol --descriptors FILE` writes. Arithmetic, noise, ledger and identity are
written again, and differently: sums by `math.fsum`, noise from the system's generator, one SQLite table.
"""

import argparse
import csv
import fcntl
import hashlib
import itertools
import json
import logging
import math
import os
import random
import re
import signal
import sqlite3
import ssl
import struct
import sys
import threading
import tomllib
from concurrent import futures
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

LOG = logging.getLogger("second")
SERVICE = "/fairwall.compliance.v1.AuditService/"
SYSTEM = random.SystemRandom()
ELEMENTS = {1: ("d", 8), 2: ("f", 4), 3: ("B", 1)}
BITS = 4
NAME = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"

INVALID, PRECONDITION = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED
REFUSALS = {
    "CALLER_UNKNOWN": (
        grpc.StatusCode.UNAUTHENTICATED,
        "the caller's certificate names no party of this run, has expired, or is revoked",
    ),
    "CALLER_NOT_ALLOWED": (grpc.StatusCode.PERMISSION_DENIED, "this party may not call this method"),
    "DEADLINE_MISSING": (INVALID, "the call needs a deadline of at most one hour"),
    "REQUEST_MALFORMED": (
        INVALID,
        "a message is missing, out of order, or longer or shorter than its header says",
    ),
    "REQUEST_ID_INVALID": (INVALID, "a request id is 1 to 64 printable ASCII characters"),
    "REQUEST_ID_REUSED": (grpc.StatusCode.ALREADY_EXISTS, "this request id was used before for another request"),
    "DEAL_UNKNOWN": (grpc.StatusCode.NOT_FOUND, "no such deal is open"),
    "METRIC_UNKNOWN": (INVALID, "this service knows no such metric"),
    "METRIC_NOT_ALLOWED": (PRECONDITION, "the policy does not allow this metric"),
    "COLUMN_UNKNOWN": (
        PRECONDITION,
        "gaps are not by this column; or the table has no such column of numbers, or one that holds no predictions",
    ),
    "PREDICTIONS_SHAPE": (INVALID, "predictions have one row a model and one column a person of the test set"),
    "PREDICTIONS_NOT_FINITE": (INVALID, "a prediction is not a finite number"),
    "PREDICTIONS_OUT_OF_RANGE": (INVALID, "a prediction lies outside [0, 1]"),
    "PREDICTIONS_NOT_BINARY": (INVALID, "this metric needs decisions: every prediction 0 or 1"),
    "QUERIES_OUT_OF_RANGE": (INVALID, "a batch has at least one model and no more than the policy allows"),
    "EPSILON_INVALID": (INVALID, "epsilon is a number of at least 1e-12, and within what the policy allows a batch"),
    "BUDGET_EXHAUSTED": (EXHAUSTED, "the remaining privacy budget does not cover this batch"),
    "LEDGER_UNAVAILABLE": (
        EXHAUSTED,
        "the ledger cannot be written now; the same request, sent again under the same id, is charged at most once",
    ),
    "NO_FEATURES": (PRECONDITION, "this service has no features of its own to ask models about"),
    "TOO_MANY_CALLS": (EXHAUSTED, "this caller has 8 calls under way already"),
    "INTERNAL": (grpc.StatusCode.INTERNAL, "the service failed"),
}


class Refused(Exception):
    """With the numbers that the reason tells."""

    def __init__(self, reason, **numbers):
        super().__init__(reason)
        self.numbers = numbers


class Protocol:
    """The protocol's messages, from its descriptors."""

    def __init__(self, path):
        pool = descriptor_pool.DescriptorPool()
        for file in descriptor_pb2.FileDescriptorSet.FromString(path.read_bytes()).file:
            pool.Add(file)
        self._pool = pool
        self.metrics = {
            value.number: value.name.removeprefix("METRIC_").lower()
            for value in pool.FindEnumTypeByName("fairwall.wire.v1.Metric").values
        }
        self.reasons = {
            value.name.removeprefix("REASON_"): value.number
            for value in pool.FindEnumTypeByName("fairwall.wire.v1.Reason").values
        }

    def __getattr__(self, name):
        package = "wire" if name in ("AuditError", "Array") else "compliance"
        found = message_factory.GetMessageClass(self._pool.FindMessageTypeByName(f"fairwall.{package}.v1.{name}"))
        setattr(self, name, found)
        return found


# Arithmetic ---------------------------------------------------------------------------------------------------------


class People:
    """Labels and groups, and what metrics say of models."""

    def __init__(self, labels, groups):
        self.labels, self.groups = labels, groups

    def stratum(self, metric):
        wanted = {"eo": 1, "fpr": 0}.get(metric.removeprefix("abs_"))
        return [i for i, label in enumerate(self.labels) if wanted is None or label == wanted]

    def smallest(self, metric):
        inside = self.stratum(metric)
        ones = sum(self.groups[i] for i in inside)
        return min(ones, len(inside) - ones)

    def values(self, metric, row):
        """What a metric averages."""
        return [1 - row[i] if metric.endswith("oad") and self.labels[i] == 0 else row[i] for i in self.stratum(metric)]

    def gap(self, metric, row):
        base = metric.removeprefix("abs_")
        if base == "ppv":
            gap = self._precision_gap(row)
        else:
            values = [1 - h if base == "oad" and y == 0 else h for h, y in zip(row, self.labels, strict=True)]
            means = []
            for group in (1, 0):
                inside = [values[i] for i in self.stratum(metric) if self.groups[i] == group]
                means.append(math.fsum(inside) / len(inside))
            gap = means[0] - means[1]
        return abs(gap) if metric.startswith("abs_") else gap

    def _precision_gap(self, row):
        shares = []
        for group in (1, 0):
            hits = [self.labels[i] for i, h in enumerate(row) if h == 1 and self.groups[i] == group]
            if not hits:
                return 0.0
            shares.append(sum(hits) / len(hits))
        return shares[0] - shares[1]

    def sensitivity(self, metric, least):
        """How far one person's group moves the metric, at most, while both groups have at least so many."""
        n = len(self.stratum(metric))
        if metric == "ppv":
            return 1.0
        return (n if metric.startswith("abs_") else n + 1) / ((least + 1) * (n - least))


def on_grid(value, scale):
    """Round to a power of two that is public: float64's last bits would tell."""
    step = max(2.0**-44, 2.0 ** (math.frexp(scale)[1] - 21))
    return round(value / step) * step


def noise(scale):
    return scale * (SYSTEM.expovariate(1.0) - SYSTEM.expovariate(1.0))


def probability_above(people, metric, row, answer, reach, threshold):
    """P(the population's gap > threshold), for Laplace noise; docs/mechanisms.md says what is taken for granted."""
    if metric == "ppv":
        return math.nan
    values = people.values(metric, row)
    n, mean = len(values), math.fsum(values) / len(values)
    variance = (math.fsum((value - mean) ** 2 for value in values) + 0.25) / (n + 1)
    laws = [
        (weight, prior, math.sqrt(variance / (n * share * (1 - share))))
        for weight, prior in ((0.85, 0.1), (0.15, 0.4))
        for share in (0.125, 0.275, 0.425)
    ]
    scale, absolute = reach / math.log(20), metric.startswith("abs_")
    least, points = (0.0 if absolute else -1.0), 600
    at = min(max(threshold, least), 1.0)
    # Noise that is far from the range has its peak at an end. Beyond 14 scales there is nothing to speak of.
    peak = min(max(answer, least), 1.0)
    low, high = max(least, peak - 14 * scale), min(1.0, peak + 14 * scale)
    above = total = 0.0
    for k in range(points):
        gap = low + (high - low) * (k + 0.5) / points
        noisy = math.exp((abs(answer - peak) - abs(answer - gap)) / scale)
        for weight, prior, sampling in laws:
            both = math.hypot(prior, sampling)
            likely = noisy * weight / both * math.exp(-((gap / both) ** 2) / 2)
            known = NormalDist(gap * (prior / both) ** 2, prior * sampling / both)
            inside = known.cdf(1)
            total += likely * (inside - known.cdf(-1))
            above += likely * (inside - known.cdf(at))
            if absolute:
                above += likely * (known.cdf(-at) - known.cdf(-1))
    return min(above / total, 1.0)


# Ledger -------------------------------------------------------------------------------------------------------------


def exact(epsilon):
    """What a float64 was written as: the shortest decimal that reads back as it."""
    return Fraction(repr(float(epsilon)))


def rounded_down(amount):
    nearest = float(amount)
    return nearest if exact(nearest) <= amount else math.nextafter(nearest, 0.0)


class Ledger:
    """One table: what each developer asked, paid and was told. How many rows it has stands outside its folder."""

    def __init__(self, path, seal, begun, first, budget, shares):
        for folder in (path.parent, seal.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if begun.exists() and not path.exists():
            sys.exit(f"{path}: the ledger is lost")
        begun.touch(mode=0o600)
        self._held = begun.open("rb")
        try:
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"{path}: another service has this ledger")
        if begun.read_text() not in ("", first):
            sys.exit(f"{path}: the ledger is of data whose first protected column is another one")
        begun.write_text(first)
        self._seal = seal
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
        self._lock = threading.Lock()
        self._budget, self._shares = budget, shares
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS sold (developer TEXT, id TEXT, digest BLOB, epsilon REAL, answer BLOB, "
            "PRIMARY KEY (developer, id))"
        )
        self._db.execute("CREATE TABLE IF NOT EXISTS probe (written INTEGER)")
        if self._rows() < (int(seal.read_text()) if seal.exists() else 0):
            sys.exit(f"{path}: an old copy of the ledger")

    def _rows(self):
        return self._db.execute("SELECT COUNT(*) FROM sold").fetchone()[0]

    def _seal_rows(self):
        fresh = self._seal.with_suffix(".new")
        with fresh.open("w") as file:
            file.write(str(self._rows()))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._seal)

    def writable(self):
        with self._lock:
            try:
                self._db.execute("INSERT INTO probe VALUES (1)")
                self._db.execute("DELETE FROM probe")
                self._seal_rows()
            except (sqlite3.Error, OSError):
                return False
            return True

    def share(self, developer):
        return self._shares[developer]

    def left(self, developer):
        with self._lock:
            return rounded_down(self._left(developer))

    def _left(self, developer):
        paid = [(name, exact(epsilon)) for name, epsilon in self._db.execute("SELECT developer, epsilon FROM sold")]
        own = sum(epsilon for name, epsilon in paid if name == developer)
        whole = exact(self._budget) - sum(epsilon for _, epsilon in paid)
        return max(Fraction(0), min(exact(self._shares[developer]) - own, whole))

    def sell(self, developer, request_id, digest, epsilon, make):
        """Return the answer that was sold under this id, or make one, charge it and keep it; and what is left now."""
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    answer = self._sell(developer, request_id, digest, epsilon, make)
                    self._db.execute("COMMIT")
                    self._seal_rows()
                except BaseException:
                    if self._db.in_transaction:
                        self._db.execute("ROLLBACK")
                    raise
            except (sqlite3.Error, OSError):
                raise Refused("LEDGER_UNAVAILABLE") from None
            return answer, rounded_down(self._left(developer))

    def _sell(self, developer, request_id, digest, epsilon, make):
        key = (developer, request_id)
        row = self._db.execute("SELECT digest, answer FROM sold WHERE developer = ? AND id = ?", key).fetchone()
        if row is not None:
            if row[0] != digest:
                raise Refused("REQUEST_ID_REUSED")
            return row[1]
        left = self._left(developer)
        if exact(epsilon) > left:
            raise Refused("BUDGET_EXHAUSTED", epsilon_remaining=rounded_down(left), epsilon_needed=epsilon)
        answer = make(rounded_down(left - exact(epsilon)))
        self._db.execute("INSERT INTO sold VALUES (?, ?, ?, ?, ?)", (*key, digest, epsilon, answer))
        return answer


# Service ------------------------------------------------------------------------------------------------------------


def whole(messages):
    """Pass on a stream; grpc.RpcError if its caller gave it up, also where it ends like a whole one at first."""
    yield from messages
    next(messages, None)


class Service(grpc.GenericRpcHandler):
    def __init__(self, protocol, policy, people, ledger):
        self._protocol, self._by, self._ledger = protocol, people, ledger
        self._people = next(iter(people.values()))
        self._run, audit = policy["deployment"]["name"], policy["audit"]
        self._deal = policy["data"].get("name", self._run)
        self._metrics = [
            number for metric in audit["metrics"] for number, name in protocol.metrics.items() if name == metric
        ]
        self._models_max = audit["queries_max"]
        self._epsilon_max = audit.get("epsilon_max", policy["budget"]["epsilon"])
        self._minimum_group = policy["data"]["minimum_group"]
        self._uri = re.compile(rf"fairwall://([^/]+)/(?:(compliance|developer|adversary|referee)|developer/({NAME}))")
        self._room = {name: threading.BoundedSemaphore(8) for name in (*policy["developers"], "")}
        self._methods = {
            SERVICE + "GetTerms": (self._terms, False, False),
            SERVICE + "AuditModels": (self._audit_models, False, False),
            SERVICE + "Audit": (self._audit, True, False),
            "/grpc.health.v1.Health/Check": (lambda *_: b"\x08" + (b"\1" if ledger.writable() else b"\2"), False, True),
        }

    def service(self, details):
        found = self._methods.get(details.method)
        if found is None:
            return None
        handle, streams, for_all = found

        def call(request, context):
            try:
                developer = self._caller(context, for_all)
                remaining = context.time_remaining()
                # A deadline of an hour may arrive as one of up to ten seconds more.
                if remaining is None or remaining > 3630:
                    raise Refused("DEADLINE_MISSING")
                if not self._room[developer].acquire(blocking=False):
                    raise Refused("TOO_MANY_CALLS")
                try:
                    if not streams:
                        messages = list(itertools.islice(whole(request), 2))
                        if len(messages) != 1:
                            raise Refused("REQUEST_MALFORMED")
                        return handle(messages[0], developer)
                    return handle(whole(request), developer)
                finally:
                    self._room[developer].release()
            except Refused as refused:
                self._refuse(context, str(refused), **refused.numbers)
            except grpc.RpcError:
                raise
            except DecodeError:
                self._refuse(context, "REQUEST_MALFORMED")
            except Exception:
                LOG.exception("%s failed", details.method)
                self._refuse(context, "INTERNAL")

        # A stream to grpc, whichever it is: it would read a lone message before it asks who sends it.
        return grpc.stream_unary_rpc_method_handler(call)

    def _caller(self, context, for_all):
        """Name the developer that calls; compliance itself, which may ask for health, is nobody."""
        for pem in context.auth_context().get("x509_pem_cert", ()):
            # The two times in a certificate; the second is its end.
            end = re.findall(rb"\x17\x0d(\d{12})Z", ssl.PEM_cert_to_DER_cert(pem.decode()))[1]
            if datetime.now(UTC) > datetime.strptime(end.decode() + "+0000", "%y%m%d%H%M%S%z"):
                raise Refused("CALLER_UNKNOWN")
        names = [name.decode("utf-8", "replace") for name in context.auth_context().get("peer_uri", ())]
        callers = [match for name in names if (match := self._uri.fullmatch(name))]
        if len(callers) != 1 or callers[0][1] != self._run:
            raise Refused("CALLER_UNKNOWN")
        if callers[0][3] in self._room:
            return callers[0][3]
        if for_all and callers[0][2] == "compliance":
            return ""
        raise Refused("CALLER_NOT_ALLOWED")

    def _refuse(self, context, reason, **numbers):
        status, sentence = REFUSALS[reason]
        error = self._protocol.AuditError(reason=self._protocol.reasons[reason], **numbers)
        context.set_trailing_metadata((("fairwall-error-bin", error.SerializeToString()),))
        context.abort(status, sentence)

    def _terms(self, data, developer):
        request = self._protocol.GetTermsRequest.FromString(data)
        self._require_deal(request.deal_id)
        terms = self._protocol.GetTermsResponse(
            people=len(self._people.labels),
            metrics=self._metrics,
            mechanism="laplace",
            epsilon=self._ledger.share(developer),
            epsilon_remaining=self._ledger.left(developer),
            queries_max=self._models_max,
            epsilon_max=self._epsilon_max,
            minimum_group=self._minimum_group,
            by=list(self._by),
        )
        terms.precision.float = 1
        return terms.SerializeToString()

    def _audit_models(self, data, _):
        request = self._protocol.AuditModelsRequest.FromString(data)
        self._require_deal(request.deal_id)
        self._validate(request)
        raise Refused("NO_FEATURES")

    def _audit(self, requests, developer):
        messages = map(self._protocol.AuditRequest.FromString, requests)
        first = next(messages, None)
        if first is None or first.WhichOneof("part") != "header":
            raise Refused("REQUEST_MALFORMED")
        header = first.header
        self._require_deal(header.deal_id)
        metric = self._validate(header)
        shape = list(header.predictions.shape)
        if len(shape) != 2 or shape[1] != len(self._people.labels):
            raise Refused("PREDICTIONS_SHAPE", people=len(self._people.labels))
        if not 1 <= shape[0] <= self._models_max:
            raise Refused("QUERIES_OUT_OF_RANGE", queries_max=self._models_max)
        values = self._numbers(header.predictions.element_type, shape, messages)
        self._check(metric, values)
        header.predictions.element_type = 1
        data = struct.pack(f"<{len(values)}d", *values)
        rows = [values[start : start + shape[1]] for start in range(0, len(values), shape[1])]
        digest = hashlib.sha256(header.SerializeToString(deterministic=True) + data).digest()
        answer, left_now = self._ledger.sell(
            developer, header.request_id, digest, header.epsilon, lambda left: self._answer(header, metric, rows, left)
        )
        LOG.info("answered a batch of %d", len(rows))
        told = self._protocol.AuditResponse.FromString(answer)
        if left_now is not None:
            told.epsilon_remaining_now = left_now
        return told.SerializeToString()

    def _numbers(self, kind, shape, messages):
        if kind == BITS:
            width = (shape[1] + 7) // 8
            data = self._receive(messages, shape[0] * width)
            rows = [int.from_bytes(data[start : start + width], "little") for start in range(0, len(data), width)]
            if any(row >> shape[1] for row in rows):
                raise Refused("REQUEST_MALFORMED")
            return [row >> person & 1 for row in rows for person in range(shape[1])]
        if kind not in ELEMENTS:
            raise Refused("REQUEST_MALFORMED")
        letter, size = ELEMENTS[kind]
        return struct.unpack(f"<{shape[0] * shape[1]}{letter}", self._receive(messages, shape[0] * shape[1] * size))

    @staticmethod
    def _receive(messages, size):
        data = bytearray()
        for message in messages:
            if message.WhichOneof("part") != "predictions_chunk":
                raise Refused("REQUEST_MALFORMED")
            data += message.predictions_chunk
            if len(data) > size:
                raise Refused("REQUEST_MALFORMED")
        if len(data) != size:
            raise Refused("REQUEST_MALFORMED")
        return bytes(data)

    def _require_deal(self, deal):
        if deal != self._deal:
            raise Refused("DEAL_UNKNOWN")

    def _validate(self, header):
        if header.by and header.by not in self._by:
            raise Refused("COLUMN_UNKNOWN")
        if not re.fullmatch(r"[ -~]{1,64}", header.request_id):
            raise Refused("REQUEST_ID_INVALID")
        if header.metric == 0 or header.metric not in self._protocol.metrics:
            raise Refused("METRIC_UNKNOWN")
        if header.metric not in self._metrics:
            raise Refused("METRIC_NOT_ALLOWED")
        if not 1e-12 <= header.epsilon <= self._epsilon_max:
            raise Refused("EPSILON_INVALID", epsilon_max=self._epsilon_max)
        if math.isnan(header.threshold):
            raise Refused("REQUEST_MALFORMED")
        if hasattr(header, "candidates") and header.HasField("candidates"):
            self._check_candidates(header.candidates, [*header.predictions.shape, 0][0])
        return self._protocol.metrics[header.metric]

    @staticmethod
    def _check_candidates(told, models):
        names, numbers = list(told.names), [*told.utilities, told.at_least]
        if not len(set(names)) == len(names) == len(told.utilities) == models or told.baseline >= models:
            raise Refused("REQUEST_MALFORMED")
        if not all(1 <= len(name) <= 100 and name.isprintable() for name in names):
            raise Refused("REQUEST_MALFORMED")
        if not all(map(math.isfinite, numbers)) or max(told.utilities) < told.at_least:
            raise Refused("REQUEST_MALFORMED")

    @staticmethod
    def _check(metric, values):
        if not all(map(math.isfinite, values)):
            raise Refused("PREDICTIONS_NOT_FINITE")
        if min(values) < 0 or max(values) > 1:
            raise Refused("PREDICTIONS_OUT_OF_RANGE")
        if metric == "ppv" and not {0.0, 1.0}.issuperset(values):
            raise Refused("PREDICTIONS_NOT_BINARY")

    def _answer(self, header, metric, rows, left):
        people = self._by[header.by] if header.by else self._people
        scale = len(rows) * people.sensitivity(metric, self._minimum_group) / header.epsilon
        reach = scale * math.log(20)
        least, most = (0.0 if metric.startswith("abs_") else -1.0), 1.0
        gaps = [on_grid(people.gap(metric, row) + noise(scale), scale) for row in rows]
        answer = self._protocol.AuditResponse(epsilon_charged=header.epsilon, epsilon_remaining=left, by=header.by)
        self._fill(answer.gaps, gaps)
        for low, high in ((answer.low, answer.high), (answer.likely_low, answer.likely_high)):
            self._fill(low, [min(max(gap - reach, least), most) for gap in gaps])
            self._fill(high, [min(max(gap + reach, least), most) for gap in gaps])
        if header.HasField("threshold"):
            above = [
                probability_above(people, metric, row, gap, reach, header.threshold)
                for row, gap in zip(rows, gaps, strict=True)
            ]
            self._fill(answer.probability_above, above)
        if header.HasField("candidates"):  # of gaps together it knows nothing
            answer.draws.header.element_type = 2
            answer.draws.header.shape.extend([100, len(rows)])
            answer.draws.data = struct.pack("<f", math.nan) * (100 * len(rows))
        return answer.SerializeToString()

    @staticmethod
    def _fill(array, values):
        array.header.element_type = 1
        array.header.shape.append(len(values))
        array.data = struct.pack(f"<{len(values)}d", *values)


def read_people(path, data):
    """By each protected column."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    labels, by = [int(row[data["label"]] == data["positive"]) for row in rows], data["protected"]
    if isinstance(by, str):
        by = {by: [data["advantaged"]]}
    return {column: People(labels, [int(row[column] in values) for row in rows]) for column, values in by.items()}


def not_served(policy):
    """Return what of a policy this server does not have; None where it has all."""
    audit, budget = policy["audit"], policy["budget"]
    quotas = [its for its in policy["developers"].values() if set(its) - {"epsilon", "delta", "release"}]
    asked = {
        "quotas": (len(quotas), 0),
        "mechanism": (audit["mechanism"], "laplace"),
        "committed": (audit.get("committed", False), False),
        "precision": (audit.get("precision", "float64"), "float64"),
        "bounding": (audit.get("bounding", "none"), "none"),
        "rule": (budget.get("rule", "basic"), "basic"),
    }
    return next((f"{name} {found}" for name, (found, served) in asked.items() if found != served), None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--descriptors", type=Path, required=True)
    parser.add_argument("--policy", type=Path, required=True)
    asked = parser.parse_args()
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    policy = tomllib.loads(asked.policy.read_text(encoding="utf-8"))
    if (unknown := not_served(policy)) is not None:
        sys.exit(f"{unknown} is not served")
    place = asked.policy.parent
    people = read_people(place / policy["data"]["source"], policy["data"])
    for metric, (column, its) in itertools.product(policy["audit"]["metrics"], people.items()):
        if its.smallest(metric) < policy["data"]["minimum_group"]:
            sys.exit(f"metric {metric}: a group by {column} is too small to be audited")
    shares = {name: share["epsilon"] for name, share in policy["developers"].items()}
    deployment = policy["deployment"]
    begun = place / deployment["credentials"] / "begun"
    ledger = Ledger(
        place / deployment["ledger"],
        place / deployment["seal"],
        begun,
        next(iter(people)),
        policy["budget"]["epsilon"],
        shares,
    )
    pem = {
        name: (place / policy["deployment"]["credentials"] / f"{name}.pem").read_bytes()
        for name in ("authority", "certificate", "key")
    }
    server = grpc.server(futures.ThreadPoolExecutor(8 * (len(shares) + 1)), options=(("grpc.so_reuseport", 0),))
    server.add_generic_rpc_handlers((Service(Protocol(asked.descriptors), policy, people, ledger),))
    port = server.add_secure_port(
        policy["deployment"]["listen"],
        grpc.ssl_server_credentials([(pem["key"], pem["certificate"])], pem["authority"], require_client_auth=True),
    )
    server.start()
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    print(json.dumps({"address": f"127.0.0.1:{port}"}), flush=True)  # noqa: T201
    server.wait_for_termination()


if __name__ == "__main__":
    main()
