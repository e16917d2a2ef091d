"""Make a kit to test a server with: fictitious people, certificates of every kind, policies, and a description.

A server's author starts it on these policies; the tester reads the same folder.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from fairwall import toml
from fairwall.laws.metrics.metric import find_metric
from fairwall.laws.privacy.exposure import REVEAL_MAX
from fairwall.rpc.identity import server_name_of, uri_of
from sim.conformance import certificates
from sim.conformance.certificates import LaxAuthority
from sim.conformance.local_law import PROTOCOLS

SPENDABLE = 0.5
"""Epsilon of the developers who soon run out: small, so that a tighter composition rule sells more of it."""

SHORT_OF_DELTA = "spender-29"
"""Developer whose delta covers five batches under basic composition."""


ADVANTAGED = {"advantaged": ("1",)}
"""Default protected column, and the values of its advantaged group."""


@dataclass(frozen=True)
class Variant:
    """A policy of a kit.

    Every batch has `batch_delta`, 0 if the mechanism needs none; `delta` is that of the budget, and of every share.
    `by` has the protected columns with the values of each one's advantaged group; `groups` has how many people with
    label 0, and with label 1, are advantaged by the first. All else is as in a policy; the default `metrics` are all
    that take scores. What a batch reveals is bounded if it `is_limited`. `more` is added to the policy's sections.
    """

    mechanism: str
    rule: str = "basic"
    precision: str | int = "float64"
    bounding: str = "none"
    epsilon_max: float = 2.0**20
    batch_delta: float = 0.0
    delta: float = 0.0
    by: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: ADVANTAGED)
    people: int = 48
    groups: tuple[int, int] = field(default=(17, 4))
    minimum_group: int = 3
    metrics: tuple[str, ...] = ()
    is_limited: bool = False
    spendable: float = SPENDABLE
    more: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def changed(self, policy: dict[str, Any]) -> dict[str, Any]:
        """Return a policy with this variant's changes."""
        audit = {name: value for name, value in policy["audit"].items() if name != "reveal_max"} | {
            "mechanism": self.mechanism,
            "precision": self.precision,
            "bounding": self.bounding,
            "epsilon_max": self.epsilon_max,
            "delta": self.batch_delta,
            **({} if self.is_limited else {"reveal_max": 1.0}),
        }
        budget = policy["budget"] | {"rule": self.rule, "delta": self.delta}
        metrics = list(self.metrics) or [metric for metric in audit["metrics"] if not find_metric(metric).binary]
        developers = {
            name: {"epsilon": self.spendable if name.startswith("spender") else share["epsilon"], "delta": self.delta}
            for name, share in policy["developers"].items()
        }
        if self.rule == "basic" and self.batch_delta:
            developers[SHORT_OF_DELTA]["delta"] = 5 * self.batch_delta
        kept = {name: section for name, section in policy.items() if name != "release"}
        kept["data"] = policy["data"] | {"minimum_group": self.minimum_group}
        if self.by != ADVANTAGED:
            alone = ("protected", "advantaged", "disadvantaged")
            kept["data"] = {name: value for name, value in kept["data"].items() if name not in alone}
            kept["data"]["protected"] = {name: list(values) for name, values in self.by.items()}
        kept |= {"audit": audit | {"metrics": metrics}, "budget": budget, "developers": developers}
        return kept | {name: {**kept.get(name, {}), **its} for name, its in self.more.items()}


def _read(fields: dict[str, Any]) -> Variant:
    named = {key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()}
    by = {column: tuple(values) for column, values in fields.get("by", ADVANTAGED).items()}
    return Variant(**named | {"by": by})


DATA: dict[str, Any] = toml.read(Path(__file__).with_name("kit.toml"))
VARIANTS = {name: _read(told) for name, told in DATA["variants"].items()}
"""Variants by the name of their deployment."""


NAME = "kit"
PEOPLE = 48
LITTLE = 2.0
DEVELOPERS = ("alice", "bob")
SPENDERS = tuple(f"spender-{number}" for number in range(1, 30))
"""Developers whose budget is soon spent, one for each case that spends it."""
COUNTERS = tuple(name.replace("spender", "counter") for name in SPENDERS)
"""Developers for the same cases with counts by group, which are charged to the account of audits."""
FRUGAL = {
    "calls-a-day": {"calls_a_day": 12},
    "bytes-a-day": {"bytes_a_day": 40_000},
    "answers-a-day": {"answers_a_day": 3},
}
"""Developers with small daily quotas, whatever remains of their budgets: in ``guarded`` alone."""
CROWD = tuple(f"one-of-many-{number}" for number in range(1, 41))
"""Accounts for tests that repeat one-time draws: a one-time purchase is drawn once for each account."""

BASE: dict[str, dict[str, Any]] = DATA["policy"]
"""Policy of ``main``, up to what depends on a deployment. Nobody lives abroad; some have no kind, or another one."""
RELEASED: dict[str, list[str]] = BASE["release"]["columns"]
"""Released columns, and their domains."""
LIKELY: dict[str, dict[str, Any]] = {
    "kind": {"columns": {"x": "kind-x", "y": "kind-y", "z": "kind-z"}, "golden": "kind"}
}
"""Attribute that people of ``likely`` are also counted by, known by probabilities, and for a golden sample for sure."""
LIKELY_PEOPLE, GOLDEN = 240, 100
MEASURES = (*("selection_rate", "true_positive_rate", "false_positive_rate", "accuracy", "mean_score", "scoring_rate"),)
REVOKED = "revoked"
"""Folder of the lists of revoked certificates, in the folder of certificates."""
RELEASED_PEOPLE = 3000

_GROUPS = {
    "main": (13, 8),
    "mirror": (20, 19),
    "second-mirror": (4, 9),
    "little": (13, 8),
    "lopsided": (13, 0),
    "few": (13, 8),
    # Cases start these anew, and leave nothing of them.
    "troubled": (13, 8),
    "twin-a": (13, 8),
    "twin-b": (20, 17),
    # This one runs for the whole test.
    "waiting": (13, 8),
    "guarded": (13, 8),
    "likely": (60, 50),
    **{name: variant.groups for name, variant in VARIANTS.items()},
}
"""Advantaged people with label 0, and with label 1, by deployment. Mirrors have groups of very different sizes."""


def make(folder: Path, mechanism: str = "laplace") -> Path:
    """Make a kit in a folder; return its description. `mechanism` answers where a check is not about another one."""
    folder.mkdir(parents=True, exist_ok=True)
    _certificates(folder / "certificates")
    deployments = {}
    for deployment, groups in _GROUPS.items():
        place = folder / deployment
        place.mkdir(mode=0o700)
        _people(place / "people.csv", groups, _people_of(deployment))
        if deployment == "likely":
            _make_likely(place / "people.csv")
        if deployment == "tables" and not _put_into_an_engine(place):
            continue
        policy = _policy(deployment, mechanism)
        if "release" in policy:
            _released(place / "released.csv", groups)
        (place / "policy.toml").write_text(tomli_w.dumps(policy), encoding="utf-8")
        deployments[deployment] = _description(deployment, policy)
    deployments["replica-too"] = deployments["replica"] | {"beside": "replica"}
    deployments |= _protocols(folder / "protocols")
    for name, policy, description in (("model", _MODEL, _MODEL_FACTS), ("game", _GAME, _GAME_FACTS)):
        (folder / name).mkdir(mode=0o700)
        (folder / name / "policy.toml").write_text(tomli_w.dumps(policy), encoding="utf-8")
        deployments[name] = {**description, "policy": f"{name}/policy.toml"}
    target = folder / "target.toml"
    target.write_text(tomli_w.dumps({"name": NAME, "deployments": deployments, "callers": _CALLERS}), encoding="utf-8")
    return target


_MODEL, _GAME = DATA["model"], DATA["game"]
_MODEL_FACTS = {"credentials": "developer-server", "deal": NAME, **_MODEL["model"], **_MODEL["audited"]}
_GAME_FACTS = {"credentials": "referee", "deal": NAME, "people": _GAME["game"]["people"]}

_CALLERS = {
    "developer": "developer-alice",
    "renewed": "developer-renewed",
    "other": "developer-bob",
    **{name: f"developer-{name}" for name in (*SPENDERS, *COUNTERS, *FRUGAL, *CROWD)},
}


def _certificates(folder: Path) -> None:
    authority = LaxAuthority(f"fairwall {NAME}")
    alice, shown = uri_of(NAME, "developer", "alice"), server_name_of(NAME, "compliance")
    issued = {
        "compliance": authority.party(NAME, "compliance", serves=True),
        **{
            f"developer-{name}": authority.party(NAME, "developer", name)
            for name in (*DEVELOPERS, *SPENDERS, *COUNTERS, *FRUGAL, *CROWD)
        },
        # alice, under another certificate than her first.
        "developer-renewed": authority.party(NAME, "developer", "alice"),
        # Of this deployment, but not in its policy.
        "unlisted": authority.party(NAME, "developer", "mallory"),
        "longer-name": authority.party(NAME, "developer", "alice2"),
        "shorter-name": authority.party(NAME, "developer", "ali"),
        "unnamed": authority.party(NAME, "developer"),
        "developer-server": authority.party(NAME, "developer", serves=True),
        "adversary": authority.party(NAME, "adversary"),
        "referee": authority.party(NAME, "referee", serves=True),
        # Names that are nobody's.
        "another-run": authority.party("another", "developer", "alice"),
        "longer-run": authority.party(f"{NAME}2", "developer", "alice"),
        "two-names": authority.issue(alice, uri_of(NAME, "developer", "bob")),
        "no-name": authority.issue(common_name="alice"),
        "common-name": authority.issue("https://example.org/alice", common_name=alice),
        "capital-name": authority.issue(uri_of(NAME, "developer", "Alice")),
        "path-name": authority.issue(alice + "/bob"),
        "dns-name": authority.issue(server=f"alice.{NAME}.fairwall"),
        # A developer by its URI, whatever else the certificate says.
        "misleading": authority.issue(uri_of(NAME, "developer", "mallory"), common_name=alice),
        "renewed": authority.party(NAME, "developer", "alice"),
        "short-lived": authority.party(NAME, "developer", "alice", valid=timedelta(hours=1)),
        "not-yet-valid": authority.issue(alice, begins=timedelta(days=20)),
        "with-another-uri": authority.issue("https://example.org/fairwall://kit/developer/bob", alice),
        "the-same-twice": authority.issue(alice, alice),
        "as-dns-name": authority.issue(server=alice, serves=False),
        **{name: authority.issue(uri) for name, uri in DATA["odd"].items()},
        "two-parties": authority.issue(uri_of(NAME, "compliance"), uri_of(NAME, "adversary")),
        **{
            f"nearly-compliance-{number}": authority.issue(uri, common_name=uri_of(NAME, "compliance"))
            for number, uri in enumerate(DATA["nearly_compliance"], 1)
        },
        # Refused in the handshake.
        "expired": authority.issue(alice, valid=timedelta(days=-1)),
        "another-authority": LaxAuthority(f"fairwall {NAME}").party(NAME, "developer", "alice"),
        # Servers that clients must not talk to.
        "another-server": authority.party("another", "compliance", serves=True),
        "another-compliance": LaxAuthority(f"fairwall {NAME}").party(NAME, "compliance", serves=True),
        "compliance-expired": authority.issue(server=shown, valid=timedelta(days=-1)),
        "compliance-not-yet": authority.issue(server=shown, begins=timedelta(days=20)),
        "compliance-by-common-name": authority.issue(server=f"nobody.{NAME}.fairwall", common_name=shown),
        "compliance-by-uri": authority.issue(f"fairwall://{shown}", server=f"referee.{NAME}.fairwall"),
        "compliance-nearly": authority.issue(server=f"{shown}.example.org"),
        "client-as-server": authority.issue(alice, server=server_name_of(NAME, "compliance"), serves=False),
    }
    # One folder for each deployment: its service keeps its ledger's key there.
    issued |= {_shown(deployment): issued["compliance"] for deployment in (*_GROUPS, "protocols")}
    for name, credentials in issued.items():
        certificates.write(folder / name, credentials)
    bob = issued["developer-bob"]
    lists = {
        "nobody": authority.revoked(),
        "bob": authority.revoked(bob),
        "foreign": LaxAuthority(f"fairwall {NAME}").revoked(bob),
        "overdue": authority.revoked(bob, until=timedelta(days=-1)),
        "not yet": authority.revoked(bob, begins=timedelta(days=1)),
        "two lists": authority.revoked(bob) + authority.revoked(),
        "changes": authority.revoked(bob, changes=True),
        "broken": authority.revoked(bob)[:200],
    }
    (folder / REVOKED).mkdir()
    for name, text in lists.items():
        (folder / REVOKED / f"{name}.pem").write_text(text, encoding="ascii")
    (folder / _shown("guarded") / "revoked.pem").write_text(lists["nobody"], encoding="ascii")


def _shown(deployment: str) -> str:
    return f"compliance-{deployment}"


def _people(path: Path, groups: tuple[int, int], people: int, first_id: int = 1) -> None:
    """Write a table of people; all tables have the same labels, and equal ids have equal incomes."""
    labels, rng = np.random.default_rng(0).permutation(np.arange(people) % 2), np.random.default_rng(2)
    advantaged, counted = np.zeros(people, int), np.random.default_rng([3, *groups])
    for label, size in enumerate(groups):
        who = np.flatnonzero(labels == label)
        advantaged[np.random.default_rng(size).permutation(who)[:size]] = 1
    columns: dict[str, Any] = {"label": labels, "advantaged": advantaged}
    ids, earned = rng.permutation(people) + first_id, rng if first_id == 1 else np.random.default_rng(first_id)
    columns |= {"person": ids, "income": earned.integers(10, 99, people)}
    columns |= {
        "kind": counted.choice(("x", "y", "z", ""), people),
        "half": counted.choice(BASE["data"]["groups"]["half"], people),
    }
    columns |= {"seat": range(people)}
    lines = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join([",".join(columns), *lines]) + "\n", encoding="utf-8")
    path.chmod(0o600)


def _people_of(deployment: str) -> int:
    return (
        VARIANTS[deployment].people if deployment in VARIANTS else LIKELY_PEOPLE if deployment == "likely" else PEOPLE
    )


def _make_likely(path: Path) -> None:
    """Add probabilities to a table, and keep only a golden sample's kinds; no digit is rounded."""
    head, *lines = path.read_text("utf-8").splitlines()
    (kind,) = LIKELY.values()
    rng, place, values = np.random.default_rng(4), head.split(",").index(str(kind["golden"])), list(kind["columns"])
    parts = rng.multinomial(1024, rng.dirichlet(np.ones(len(values)), len(lines)))
    golden, rows = rng.permutation(len(lines)) < GOLDEN, []
    for line, own, known in zip(lines, parts, golden, strict=True):
        row = line.split(",")
        row[place] = str(rng.choice(values)) if known else ""
        rows.append(",".join([*row, *(f"{part / 1024:.10f}" for part in own)]))
    path.write_text("\n".join([",".join([head, *kind["columns"].values()]), *rows]) + "\n", encoding="utf-8")


def _put_into_an_engine(place: Path) -> bool:
    """Write people and tables for an engine; return False without duckdb."""
    try:
        import duckdb
    except ImportError:
        return False
    with duckdb.connect() as engine:
        for name, told in (("people", "*"), ("scores", "person, 0.5 AS m0"), ("others", "person, 0.5 AS m0")):
            (place / name).mkdir()
            engine.execute(f"CREATE OR REPLACE TABLE told AS FROM (FROM '{place}/people.csv' SELECT {told})")
            engine.execute(f"COPY told TO '{place}/{name}/0.parquet' (FORMAT parquet)")
    return True


def _released(path: Path, seed: tuple[int, int]) -> None:
    """Write a table of the people with released attributes, with one unreleased column."""
    rng = np.random.default_rng(seed)
    regions = rng.choice(RELEASED["region"][:4], RELEASED_PEOPLE, p=(0.4, 0.3, 0.2, 0.1))
    ages = rng.integers(18, 90, RELEASED_PEOPLE)
    groups, grades = (rng.choice(RELEASED[name], RELEASED_PEOPLE) for name in ("group", "grade"))
    rows = zip(regions, ages, groups, grades, strict=True)
    path.write_text("\n".join(["region,age,group,grade", *(",".join(map(str, row)) for row in rows)]) + "\n", "utf-8")
    path.chmod(0o600)


def _policy(deployment: str, mechanism: str) -> dict[str, Any]:
    little = deployment == "little"
    policy: dict[str, Any] = copy.deepcopy(BASE)
    policy["deployment"]["credentials"] = f"../certificates/{_shown(deployment)}"
    policy["audit"]["mechanism"] = mechanism
    plenty, enough = policy["budget"]["epsilon"], policy["release"]["epsilon"]
    share = {"epsilon": LITTLE, "release": LITTLE} if little else {"epsilon": plenty / 4, "release": enough / 4}
    policy["developers"] = {
        **{name: dict(share) for name in (*DEVELOPERS, *CROWD)},
        **{name: {"epsilon": LITTLE, "release": LITTLE} for name in SPENDERS},
        **{name: {"epsilon": LITTLE} for name in COUNTERS},
    }
    if deployment == "few":
        policy["data"]["minimum_group"] = 9
    if deployment == "likely":
        del policy["data"]["groups"]["kind"]
        policy["data"]["probabilities"] = LIKELY
    if deployment == "guarded":
        policy["audit"]["metrics"] = ["sp", "fpr"]
        policy["developers"] |= {name: {"epsilon": LITTLE, "release": LITTLE, **its} for name, its in FRUGAL.items()}
    if little:  # a service that sells no answer worse than a guess can serve these alone
        policy["data"]["minimum_group"] = min(_GROUPS[deployment])
        scored = [metric for metric in policy["audit"]["metrics"] if not find_metric(metric).binary]
        policy["audit"] |= {"metrics": scored, "epsilon_max": LITTLE}
        policy["budget"]["epsilon"] = policy["release"]["epsilon"] = 1.5 * LITTLE
    policy = VARIANTS[deployment].changed(policy) if deployment in VARIANTS else policy
    for name, table in policy.get("tables", {}).items():  # all developers may ask about the first one
        table["developers"] = list(policy["developers"]) if name == "scores" else ["bob"]
        policy["data"] = {key: value for key, value in policy["data"].items() if key not in ("groups", "public")}
    return policy


_VARIED = ("people", "by", "rule", "precision", "bounding", "batch_delta", "delta")
"""Facts in a description that come from the variant, not from its policy."""


def _description(deployment: str, policy: dict[str, Any]) -> dict[str, Any]:
    facts = {
        "credentials": _shown(deployment),
        "deal": NAME,
        "people": _people_of(deployment),
        **{name: policy["audit"][name] for name in ("metrics", "mechanism", "queries_max", "epsilon_max")},
        "epsilon_min": policy["audit"]["epsilon_min"],
        "reveal_max": policy["audit"].get("reveal_max", REVEAL_MAX),
        "budget": policy["budget"]["epsilon"],
        "unit": 1 / 8,
        "shares": {name: share["epsilon"] for name, share in policy["developers"].items()},
        "policy": f"{deployment}/policy.toml",
        "table": f"{deployment}/people.csv",
        "minimum_group": policy["data"]["minimum_group"],
        "by": ADVANTAGED,
    }
    if (variant := VARIANTS.get(deployment)) is not None:
        return facts | {
            "optional": True,
            "ids": policy["data"]["id"] if deployment == "tables" else "",
            **{name: getattr(variant, name) for name in _VARIED},
        }
    return facts | {
        "optional": deployment in ("guarded", "likely"),
        "ids": policy["data"]["id"],
        "public": policy["data"]["public"],
        "groups": policy["data"]["groups"]
        | {name: list(its["columns"]) for name, its in policy["data"].get("probabilities", {}).items()},
        "probabilities": policy["data"].get("probabilities", {}),
        "least_share": policy["data"]["least_share"],
        "measures": ["selection_rate", "mean_score", "scoring_rate", "false_positive_rate"]
        if deployment == "guarded"
        else list(MEASURES),
        "releases": _releases(policy, f"{deployment}/released.csv"),
    }


def _releases(policy: dict[str, Any], table: str) -> dict[str, Any]:
    return {
        "people": RELEASED_PEOPLE,
        "protocol": policy["release"]["protocol"],
        "columns": [
            {"name": name, "values": list(values), "share": share}
            for (name, values), share in zip(RELEASED.items(), BASE["release"]["weights"], strict=True)
        ],
        "shares": {name: share.get("release", 0.0) for name, share in policy["developers"].items()},
        "table": table,
    }


def _protocols(place: Path) -> dict[str, Any]:
    """Make a deployment with one data set per release protocol, and return their descriptions."""
    place.mkdir(mode=0o700)
    base, descriptions, datasets = _policy("main", "laplace"), {}, {}
    for number, protocol in enumerate(PROTOCOLS):
        groups = (13 + number, 9)
        _people(place / f"{protocol}.csv", groups, PEOPLE, 1000 * (number + 1))
        _released(place / f"{protocol}-released.csv", groups)
        section = {name: value for name, value in base.items() if name != "deployment"} | {
            "data": {name: value for name, value in base["data"].items() if name not in ("groups", "public")}
            | {"source": f"{protocol}.csv"},
            "release": base["release"] | {"source": f"{protocol}-released.csv", "protocol": protocol},
            "audit": base["audit"] | {"metrics": ["sp"]},
        }
        datasets[protocol] = section
        descriptions[protocol] = {
            "optional": True,
            "of": next(iter(PROTOCOLS)),
            "credentials": _shown("protocols"),
            "deal": protocol,
            "people": PEOPLE,
            "mechanism": "laplace",
            "metrics": ["sp"],
            "unit": 1 / 8,
            "queries_max": section["audit"]["queries_max"],
            "epsilon_max": section["audit"]["epsilon_max"],
            "budget": section["budget"]["epsilon"],
            "policy": "protocols/policy.toml",
            "minimum_group": section["data"]["minimum_group"],
            "releases": _releases(section, f"protocols/{protocol}-released.csv"),
        }
    descriptions[next(iter(PROTOCOLS))]["of"] = ""
    deployment = base["deployment"] | {"credentials": f"../certificates/{_shown('protocols')}"}
    policy = {"deployment": deployment, "datasets": datasets}
    (place / "policy.toml").write_text(tomli_w.dumps(policy), encoding="utf-8")
    return descriptions
