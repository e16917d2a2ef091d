"""Draws policies, two data sets that differ in one person's protected values, and what is asked of both."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import tomli_w
from numpy.typing import NDArray

from compliance.answers.group_service import _ALLOWED_BY
from compliance.deployment.policy.reading import parse
from compliance.deployment.policy.schema import PolicyError
from compliance.mechanisms import MECHANISMS
from fairwall.compliance.v1 import audit_service_pb2 as audit
from fairwall.compliance.v1 import group_service_pb2 as group
from fairwall.compliance.v1 import release_service_pb2 as release
from fairwall.laws.local import LOCAL_LAWS
from fairwall.laws.metrics.metric import METRICS, find_metric
from fairwall.laws.metrics.sensitivity import least_stratum
from fairwall.rpc.arrays import header_of
from fairwall.wire.metrics import number_of
from tests.neighbours.world import NAME


class Asked(Protocol):
    """A world, as far as anything happens to it."""

    def call(self, caller: str, method: str, *messages: Any) -> list[bytes]:
        """Call a method with messages, or with bytes that are none; the answer's messages."""

    def reload(self, text: str) -> None:
        """Have another policy read, as by SIGHUP."""

    def restart(self) -> None:
        """End the service, and start it again with its ledger."""


Event: TypeAlias = Callable[[Asked], object]
"""Something that happens to both worlds."""

Table: TypeAlias = dict[str, NDArray[np.str_]]
"""A file's columns."""

DEPLOYABLE = [name for name, mechanism in MECHANISMS.items() if mechanism.guarantee != "none"]
RULES = ("basic", "advanced", "zcdp", "tight")
"""Of budgets; the last one takes long to add up."""

DEVELOPERS = ("developer/alice", "developer/bob")
CALLERS = (*DEVELOPERS * 5, "developer/carol")
EPSILONS = (0.001, 0.01, 0.1, 0.5, 0.5, 1.0, 3.0, 8.0)
UNFIT = (1e-6, 1e3, math.inf, math.nan, -1.0, 0.0)
"""Below the least epsilon, above the most, and none at all."""

VALUES = {"group": ("a", "b", "c", ""), "race": ("x", "y", "z", ""), "sex": ("f", "m")}
"""What a person may have in a protected column; "" for nothing."""


@dataclass(frozen=True)
class Drawn:
    """Two worlds and what happens to both.

    Parameters
    ----------
    policy : str
        Of the start.
    people : tuple of str
        The file of each world.
    is_whole : bool
        Whether to look at what takes longer, too: what answers are said to be worth at a start, and the page as drawn.
    """

    policy: str
    people: tuple[str, str]
    events: tuple[Event, ...]
    is_whole: bool = False


def draw(seed: int, mechanism: str | None = None, *, is_whole: bool = False) -> Drawn:
    """Draw two worlds and what happens to both: a function of the seed.

    By which mechanism is answered the seed says too, unless it is named.
    """
    rng = np.random.default_rng(seed)
    while True:
        policy = _policy(rng, mechanism or DEPLOYABLE[seed % len(DEPLOYABLE)], RULES[: None if is_whole else -1])
        text = tomli_w.dumps(policy)
        try:
            parse(text.encode(), Path.cwd() / "policy.toml")
        except PolicyError:
            continue
        people = _people(rng, policy)
        who = int(rng.integers(len(people["repaid"])))
        other = _neighbour(rng, people, who, policy)
        if all(_is_servable(each, policy) for each in (people, other)):
            break
    events = tuple(_events(rng, policy, people, who))
    return Drawn(text, (_csv(people), _csv(other)), events, is_whole)


def _policy(rng: np.random.Generator, mechanism: str, rules: Sequence[str]) -> dict[str, Any]:
    def perhaps(**keys: Any) -> dict[str, Any]:
        return keys if rng.random() < 0.5 else {}

    delta, whole = float(rng.choice([0.0, 1e-6])), float(rng.choice([1.0, 4.0, 20.0]))
    able = [name for name in METRICS if MECHANISMS[mechanism].refuses(name, 0.5, delta) is None]
    metrics = [str(name) for name in rng.permutation(able)[: rng.integers(1, 6)]]
    groups = {"race": ["x", "y", "unknown", "other"], "sex": ["f", "m"], "group": ["a", "other", "unknown"]}
    by = {str(name): groups[str(name)] for name in rng.permutation(list(groups))[: rng.integers(0, 4)]}
    most = float(rng.choice([0.5, 0.99, whole])) if whole > 0.99 else whole
    share = {"delta": 0.01 if delta else 0.0}
    policy = {
        "deployment": {
            "name": NAME,
            "listen": "127.0.0.1:1",
            "credentials": "credentials",
            "ledger": "ledger/ledger.sqlite",
            "seal": "seal/head",
        },
        "data": {
            "source": "people.csv",
            "protected": "group",
            "advantaged": "a",
            "label": "repaid",
            "positive": "1",
            "minimum_group": int(rng.integers(1, 4)),
            "missing": str(rng.choice(["refuse", "drop"])),
            "impute": perhaps(group=str(rng.choice(["a", "b"]))) | perhaps(repaid="0"),
            **perhaps(disadvantaged="b"),
            **perhaps(id="number", public=[["income"], ["income"], ["income", "sex"]][rng.integers(3)]),
            **({"groups": by} if by else {}),
        },
        "audit": {
            "metrics": metrics,
            "mechanism": mechanism,
            "queries_max": int(rng.integers(1, 7)),
            "epsilon_max": most,
            "delta": delta,
            "precision": [2, "float32", "float64", "float64"][rng.integers(4)],
            **perhaps(bounding=str(rng.choice(["clamp", "truncate", "boundary-inflate"]))),
            **perhaps(reveal_max=float(rng.choice([0.55, 0.7, 1.0]))),
        },
        "budget": {"epsilon": whole, "rule": str(rng.choice(rules)), **share},
        "developers": {
            "alice": {"epsilon": whole, "release": 4.0, **share},
            "bob": {"epsilon": whole / 2, "release": 1.0, "answers_a_day": int(rng.integers(1, 5)), **share},
        },
        "release": {
            "source": "people.csv",
            "columns": perhaps(race=["x", "y", "z", "?"]) | {"sex": ["f", "m"]},
            "protocol": str(rng.choice(list(LOCAL_LAWS))),
            "epsilon": 5.0,
        },
    }
    if rng.random() < 0.5:
        del policy["release"]
        for each in policy["developers"].values():
            del each["release"]
    return policy


def _people(rng: np.random.Generator, policy: dict[str, Any]) -> Table:
    n, data = int(rng.integers(12, 41)), policy["data"]
    labels = ["1", "1", "0", "0", ""] if data["missing"] == "drop" or "repaid" in data["impute"] else ["1", "0"]
    return {
        "number": rng.permutation(n).astype(str),
        "group": rng.choice(_possible("group", data), n),
        "race": rng.choice(_possible("race", data), n),
        "sex": rng.choice(_possible("sex", data), n),
        "income": rng.integers(1, 99, n).astype(str),
        "repaid": rng.choice(labels, n),
    }


def _possible(column: str, data: dict[str, Any]) -> list[str]:
    """List the values that a policy takes in a column."""
    listed = data.get("groups", {}).get(column)
    possible = [
        value
        for value in VALUES[column]
        if not listed or value in listed or ("other" if value else "unknown") in listed
    ]
    if column != data["protected"]:
        return possible
    either = [data["advantaged"], *([data["disadvantaged"]] if "disadvantaged" in data else ["b", "c"])]
    return [value for value in possible if value in either or (not value and column in data["impute"])]


def _neighbour(rng: np.random.Generator, people: Table, who: int, policy: dict[str, Any]) -> Table:
    """Change a person's protected values, or some of them."""
    data, other = policy["data"], {name: values.copy() for name, values in people.items()}
    protected = {data["protected"], *data.get("groups", {}), *policy.get("release", {}).get("columns", {})}
    columns = [name for name in VALUES if name in protected or name not in data.get("public", [])]
    changed = [name for name in columns if rng.random() < 0.8] or columns
    for column in changed:
        before = people[column][who]
        others = [value for value in _possible(column, data) if value != before]
        # Mostly to the other side: all but one value of the protected column are one group.
        across = [value for value in others if "a" in (value, before)]
        other[column][who] = rng.choice(across if across and rng.random() < 0.8 else others)
    if data["missing"] == "drop" and rng.random() < 0.1:  # a service that does not refuse to start tells who it was
        other[data["protected"]][who] = ""
    return other


def _is_servable(people: Table, policy: dict[str, Any]) -> bool:
    """Whether all groups that the policy names are there, and as large as it says in every stratum."""
    data = policy["data"]
    if not {data.get("disadvantaged", "a"), data["impute"].get("group", "a")} <= {*people["group"]}:
        return False
    labels = np.where(people["repaid"] == "", data["impute"].get("repaid", ""), people["repaid"])
    groups = np.where(people["group"] == "", data["impute"].get("group", ""), people["group"])
    least = data["minimum_group"]
    for metric in policy["audit"]["metrics"]:
        for label in find_metric(metric).strata:
            inside = groups[labels != "" if label is None else labels == str(label)]
            advantaged = int(np.count_nonzero(inside == "a"))
            if min(advantaged, len(inside) - advantaged) < least or len(inside) < least_stratum(least):
                return False
    return True


def _csv(table: Table) -> str:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(table)
    rows.writerows(zip(*table.values(), strict=True))
    return text.getvalue()


def _events(rng: np.random.Generator, policy: dict[str, Any], people: Table, who: int) -> Iterator[Event]:
    """Draw a sequence of calls, and what else happens to a service."""
    asked: list[Event] = []
    for place in range(int(rng.integers(5, 15))):
        kind = rng.choice(["audit", "by group", "release", "repeat", "look", "unfit", "service"], p=_OFTEN)
        match kind:
            case "repeat" if asked:
                yield asked[rng.integers(len(asked))]
            case "service":
                yield _service(rng, policy)
            case _:
                made = _MADE.get(str(kind), _look)(rng, policy, people, who, f"r{place}")
                asked.append(made)
                yield made


_OFTEN = (0.4, 0.2, 0.08, 0.15, 0.05, 0.05, 0.07)


def _audit(rng: np.random.Generator, policy: dict[str, Any], people: Table, who: int, name: str) -> Event:
    metric = str(rng.choice(policy["audit"]["metrics"]))
    predictions = _predictions(rng, people, who, policy["audit"]["queries_max"])
    if METRICS[metric].binary:
        predictions = np.rint(predictions)
    header = audit.AuditHeader(
        request_id=name,
        deal_id=NAME,
        metric=number_of(metric),
        epsilon=_epsilon(rng, policy),
        predictions=header_of(predictions),
        threshold=float(rng.choice([-0.1, 0.0, 0.1])) if rng.random() < 0.3 else None,
    )
    upload = "Audit", audit.AuditRequest, header, predictions, str(rng.choice(CALLERS)), rng.random() < 0.3
    if rng.random() < 0.3:  # the last one is malformed at times
        utilities = rng.random(len(predictions) - (rng.random() < 0.1))
        header.candidates.CopyFrom(
            audit.Candidates(
                names=[f"m{i}" for i in range(len(predictions))],
                utilities=utilities,
                baseline=int(rng.integers(len(predictions))),
                at_least=float(rng.random()),
            )
        )
    return _upload(*upload)


def _by_group(rng: np.random.Generator, policy: dict[str, Any], people: Table, who: int, name: str) -> Event:
    columns = list(policy["data"].get("groups", {})) or ["race"]
    compared = {part for metric in policy["audit"]["metrics"] for part in METRICS[metric].parts}
    allowed = [measure for measure, part in _ALLOWED_BY.items() if part in compared]
    among = allowed if allowed and rng.random() < 0.8 else group.Measure.values()
    measures = rng.permutation(among)[: rng.integers(1, 4)].tolist()
    predictions = _predictions(rng, people, who, policy["audit"]["queries_max"])
    if group.MEASURE_MEAN_SCORE not in measures or len(measures) > 1:
        predictions = np.rint(predictions)
    header = group.ByGroupHeader(
        request_id=name,
        deal_id=NAME,
        by=[str(each) for each in rng.permutation(columns)[: rng.integers(1, len(columns) + 1)]],
        measures=measures,
        epsilon=_epsilon(rng, policy),
        predictions=header_of(predictions),
    )
    return _upload("ByGroup", group.ByGroupRequest, header, predictions, str(rng.choice(CALLERS)), rng.random() < 0.3)


def _upload(
    method: str, message: Any, header: Any, predictions: NDArray[np.float64], caller: str, knows_rows: bool
) -> Event:
    chunk = predictions.tobytes()

    def upload(world: Asked) -> None:
        if knows_rows:  # as the terms say
            (told,) = world.call(caller, "GetTerms", audit.GetTermsRequest(deal_id=NAME)) or (b"",)
            header.rows_digest = audit.GetTermsResponse.FromString(told).rows.ids_digest
        halves = (message(predictions_chunk=part) for part in (chunk[:40], chunk[40:]))
        world.call(caller, method, message(header=header), *halves)

    return upload


def _release(rng: np.random.Generator, policy: dict[str, Any], people: Table, who: int, name: str) -> Event:
    caller = str(rng.choice(CALLERS))
    asked = release.SanitiseRequest(request_id=name, deal_id=NAME, epsilon=_epsilon(rng, policy))

    def buy(world: Asked) -> None:
        world.call(caller, "GetReleaseTerms", release.GetReleaseTermsRequest(deal_id=NAME))
        world.call(caller, "Sanitise", asked)

    return buy


def _look(rng: np.random.Generator, policy: dict[str, Any], *_: object) -> Event:
    """Ask for what costs nothing."""
    caller, metric = str(rng.choice(CALLERS)), str(rng.choice(policy["audit"]["metrics"]))
    worth = audit.GetExpectedErrorRequest(
        deal_id=NAME, metric=number_of(metric), models=int(rng.integers(0, 4)), epsilon=_epsilon(rng, policy)
    )

    def look(world: Asked) -> None:
        world.call(caller, "GetTerms", audit.GetTermsRequest(deal_id=NAME))
        world.call(caller, "GetGroupTerms", group.GetGroupTermsRequest(deal_id=NAME))
        world.call(caller, "GetExpectedError", worth)

    return look


def _unfit(rng: np.random.Generator, policy: dict[str, Any], people: Table, who: int, name: str) -> Event:
    """Ask in a way that is refused."""
    caller, n = str(rng.choice(CALLERS)), len(people["repaid"])
    metric = number_of(str(rng.choice(list(METRICS))))
    wrong: dict[str, Any] = {"request_id": name, "deal_id": NAME, "metric": metric, "epsilon": 0.1}
    predictions = _predictions(rng, people, who, policy["audit"]["queries_max"])
    match rng.integers(10):
        case 0:
            wrong |= {"request_id": str(rng.choice(["", "r0", "r1"]))}  # none, or another request's
        case 1:
            wrong |= {"deal_id": "other"}
        case 2:
            wrong |= {"metric": 99}
        case 3:
            predictions[0, who] = math.nan
        case 4:
            predictions[0, who] = 1.5
        case 5:
            predictions = predictions[:, : n - 1]
        case 6:
            wrong |= {"rows_digest": b"others"}
        case 7:
            predictions = np.repeat(predictions, 9, axis=0)
        case 8:
            wrong |= {"metric": number_of("ppv")}
            predictions[0, who] = 0.5
        case 9:
            wrong |= {"metric": number_of(policy["audit"]["metrics"][0]), "request_id": f"r{rng.integers(5)}"}
    header = audit.AuditHeader(**wrong, predictions=header_of(predictions))
    upload = _upload("Audit", audit.AuditRequest, header, np.ascontiguousarray(predictions), caller, knows_rows=False)

    def ask(world: Asked) -> None:
        upload(world)
        world.call(caller, "Audit", audit.AuditRequest(header=header))
        world.call(caller, "Audit", b"\xff")
        world.call("compliance", "GetTerms", audit.GetTermsRequest(deal_id=NAME))
        models = audit.AuditModelsRequest(
            request_id=f"{name} models", deal_id=NAME, metric=metric, epsilon=0.1, models=1
        )
        world.call(caller, "AuditModels", models)
        sealed = audit.AuditSealedHeader(
            request_id=f"{name} sealed", deal_id=NAME, metric=metric, epsilon=0.1, sizes=[1]
        )
        world.call(caller, "AuditSealed", audit.AuditSealedRequest(header=sealed))
        table = audit.AuditTableRequest(request_id=f"{name} table", deal_id=NAME, metric=metric, epsilon=0.1, table="t")
        world.call(caller, "AuditTable", table)
        world.call(caller, "HandModel", release.HandModelRequest(header=release.ModelHeader(deal_id=NAME)))
        world.call(caller, "Tabulate", release.TabulateRequest(request_id=name, deal_id=NAME, epsilon=0.1))

    return ask


def _service(rng: np.random.Generator, policy: dict[str, Any]) -> Event:
    """Change the policy while the service runs, or start the service again."""
    if rng.random() < 0.3:
        return lambda world: world.restart()
    audited, data = dict(policy["audit"]), dict(policy["data"])
    audited["metrics"] = audited["metrics"][: rng.integers(1, len(audited["metrics"]) + 1)]
    audited["queries_max"] = int(rng.integers(1, 7))
    audited["epsilon_max"] = float(rng.choice([0.1, 0.5, audited["epsilon_max"], 1e6], p=[0.3, 0.3, 0.3, 0.1]))
    data["minimum_group"] = int(rng.integers(1, data["minimum_group"] + 1))
    if rng.random() < 0.3:
        audited["mechanism"] = str(rng.choice(DEPLOYABLE))
    admitted = dict(policy["developers"])
    if rng.random() < 0.2:
        del admitted["bob"]
    text = tomli_w.dumps(policy | {"audit": audited, "data": data, "developers": admitted})
    return lambda world: world.reload(text)


def _predictions(rng: np.random.Generator, people: Table, who: int, most: int) -> NDArray[np.float64]:
    """Draw the models of a batch: scores, decisions, and such as part one person, a group or a label from others."""
    n = len(people["repaid"])
    alone = np.arange(n) == who
    kinds: Sequence[Callable[[], NDArray[Any]]] = (
        lambda: rng.random(n),
        lambda: rng.integers(0, 2, n),
        lambda: alone,
        lambda: ~alone,
        lambda: people["group"] == "a",
        lambda: people["race"] == people["race"][who],
        lambda: people["repaid"] == "1",
        lambda: np.zeros(n),
        lambda: np.ones(n),
    )
    models = int(rng.integers(1, most + 1))
    return np.stack([kinds[rng.integers(len(kinds))]() for _ in range(models)]).astype(np.float64)


def _epsilon(rng: np.random.Generator, policy: dict[str, Any]) -> float:
    fit = [epsilon for epsilon in EPSILONS if epsilon <= policy["audit"]["epsilon_max"]]
    return float(rng.choice(fit if rng.random() < 0.85 else UNFIT))


_MADE: dict[str, Callable[..., Event]] = {
    "audit": _audit,
    "by group": _by_group,
    "release": _release,
    "unfit": _unfit,
}
