"""Every method, field of an answer and key of a policy is looked at by some check, or a reason says why it is not."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from google.protobuf.descriptor import Descriptor, MethodDescriptor, ServiceDescriptor
from pydantic import BaseModel

from compliance.deployment.policy.schema import Policy
from fairwall import toml
from fairwall.compliance.v1 import audit_service_pb2, group_service_pb2, release_service_pb2
from fairwall.developer.v1 import model_service_pb2
from sim.conformance import sample_deployments

CONFORMANCE = Path(sample_deployments.__file__).parent
UNSEEN = toml.read(CONFORMANCE / "unseen.toml")
SERVICES: list[ServiceDescriptor] = [
    service
    for module in (audit_service_pb2, group_service_pb2, release_service_pb2, model_service_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
]
"""Those that a server may be asked, whose messages are no game's."""


@lru_cache(maxsize=1)
def said() -> frozenset[str]:
    """All attributes that the tester's code reads, and all its words; all keys and words of the cases."""
    found: set[str] = set()
    for path in CONFORMANCE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    for path in CONFORMANCE.glob("cases/*/*.toml"):
        found.update(words(toml.read(path)))
    return frozenset(found)


def words(told: Any) -> Iterator[str]:
    """Give all keys and texts of a table."""
    if isinstance(told, dict):
        yield from told
        for each in told.values():
            yield from words(each)
    elif isinstance(told, list):
        for each in told:
            yield from words(each)
    elif isinstance(told, str):
        yield told


def methods() -> dict[str, MethodDescriptor]:
    return {f"/{each.full_name}/{method.name}": method for each in SERVICES for method in each.methods}


def fields() -> set[str]:
    """The fields of all answers, and of what they are made of, as "Message.field"."""
    found: dict[str, Descriptor] = {}

    def walk(message: Descriptor) -> None:
        if message.full_name not in found:
            found[message.full_name] = message
            for field in message.fields:
                if field.message_type is not None:
                    walk(field.message_type)

    for name, method in methods().items():
        if name not in UNSEEN["methods"]:
            walk(method.output_type)
    return {f"{message.name}.{field.name}" for message in found.values() for field in message.fields}


def sections(told: Any) -> Iterator[type[BaseModel]]:
    """Give the sections that a policy's type is made of."""
    if isinstance(told, type) and not isinstance(told, types.GenericAlias) and issubclass(told, BaseModel):
        yield told
    for each in get_args(told) if get_origin(told) is not None else ():
        yield from sections(each)


def keys(section: type[BaseModel] = Policy, before: str = "") -> set[str]:
    """The keys of a policy, as "section.key"; of what has names of its own "*" stands for each."""
    found = set()
    for name, field in section.model_fields.items():
        inner = list(sections(field.annotation))
        found |= {f"{before}{name}"} if not inner else set()
        for each in inner:
            star = "*." if "dict" in str(field.annotation) else ""
            found |= keys(each, f"{before}{name}.{star}")
    return found


def written(policy: Any, section: type[BaseModel] = Policy, before: str = "") -> set[str]:
    """The keys that a policy of the kit has."""
    found = set()
    for name, field in section.model_fields.items():
        if name not in policy:
            continue
        inner = list(sections(field.annotation))
        found |= {f"{before}{name}"} if not inner else set()
        for each in inner:
            named = "dict" in str(field.annotation)
            for one in policy[name].values() if named else [policy[name]]:
                found |= written(one, each, f"{before}{name}.{'*.' if named else ''}")
    return found


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The keys that any policy of the kit has, or that a check puts there."""
    folder = tmp_path_factory.mktemp("kit") / "kit"
    sample_deployments.make(folder)
    told = [toml.read(path) for path in folder.glob("*/policy.toml") if path.parent.name not in ("model", "game")]
    told += [each for policy in told for each in policy.get("datasets", {}).values()]
    found = set().union(*map(written, told))
    stars = {key.replace("*", name): key for key in keys() for name in ("alice",)}
    return found | {stars.get(word, word) for word in said() if "." in word} | {"datasets"}


def unlike(there: set[str], seen: set[str], excused: set[str]) -> dict[str, list[str]]:
    """What is looked at by nobody, and what is excused that need not be, or is not there."""
    return {
        name: sorted(those)
        for name, those in {"unseen": there - seen - excused, "excused": excused - (there - seen)}.items()
        if those
    }


def test_every_method_is_called() -> None:
    called = {name for name in methods() if name in said()}
    assert unlike(set(methods()), called, set(UNSEEN["methods"])) == {}


def test_every_field_of_an_answer_is_read() -> None:
    read = {name for name in fields() if name.partition(".")[2] in said()}
    assert unlike(fields(), read, set(UNSEEN["fields"])) == {}


def test_every_key_of_a_policy_is_in_the_kit_or_in_a_check(policies: set[str]) -> None:
    assert unlike(keys(), policies & keys(), set(UNSEEN["policy"])) == {}


def test_what_nobody_looks_at_and_what_is_excused_for_nothing_are_noticed() -> None:
    there, seen = {"a", "b", "c"}, {"a"}
    assert unlike(there, seen, {"b", "c"}) == {}
    assert unlike(there, seen, {"a", "b", "d"}) == {"unseen": ["c"], "excused": ["a", "d"]}


def test_every_excuse_is_a_sentence() -> None:
    assert UNSEEN.keys() == {"methods", "fields", "policy"}
    assert all(isinstance(why, str) and len(why.split()) > 3 for told in UNSEEN.values() for why in told.values())
