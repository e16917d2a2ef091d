"""No message that can travel to a party reaches a field above its clearance, by the labels of the descriptors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool

from fairwall.compliance.v1 import audit_service_pb2
from fairwall.developer.v1 import model_service_pb2
from fairwall.game.v1 import inference_service_pb2, referee_service_pb2
from fairwall.rpc.access import CALLERS, PARTIES_OF_A_RUN, SERVED_BY
from fairwall.rpc.identity import PARTIES
from fairwall.wire.v1 import error_pb2
from fairwall.wire.v1.visibility_pb2 import (
    VISIBILITY_DEVELOPMENT,
    VISIBILITY_INHERITED,
    VISIBILITY_OUTSIDE,
    VISIBILITY_PROTECTED,
    VISIBILITY_UNSPECIFIED,
    visibility,
)

HEALTH = "/grpc.health.v1.Health/"
CLEARANCE = {
    "adversary": VISIBILITY_OUTSIDE,
    "developer": VISIBILITY_DEVELOPMENT,
    "compliance": VISIBILITY_PROTECTED,
    "referee": VISIBILITY_PROTECTED,
}
METHODS = {
    f"/{service.full_name}/{method.name}": method
    for module in (audit_service_pb2, model_service_pb2, referee_service_pb2, inference_service_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}
MAY_INHERIT = {
    "fairwall.wire.v1.ArrayHeader",
    "fairwall.wire.v1.Array",
    "fairwall.wire.v1.Precision",
    "fairwall.game.v1.QueryCount",
}


class Reached(NamedTuple):
    """A field that a message reaches: where it stands, its own label, and the one that applies."""

    path: str
    field: Any
    label: int
    level: int


def walk(message: Any, inherited: int = VISIBILITY_UNSPECIFIED, within: tuple[str, ...] = ()) -> Iterator[Reached]:
    """Every field that a message reaches."""
    for field in message.fields:
        label = field.GetOptions().Extensions[visibility]
        level = inherited if label == VISIBILITY_INHERITED else label
        yield Reached(f"{message.full_name}.{field.name}", field, label, level)
        if field.message_type is not None and field.message_type.full_name not in within:
            yield from walk(field.message_type, level, (*within, message.full_name))


def above_clearance(message: Any, party: str) -> list[str]:
    """The fields of a message that a party may not see."""
    return [at.path for at in walk(message) if not VISIBILITY_UNSPECIFIED < at.level <= CLEARANCE[party]]


def travelling() -> Iterator[tuple[str, Any]]:
    """Every message that can travel, beside the party that it travels to."""
    for name, method in METHODS.items():
        yield next(party for prefix, party in SERVED_BY.items() if name.startswith(prefix)), method.input_type
        for caller in sorted(CALLERS[name]):
            yield caller, method.output_type
    for party in PARTIES:
        yield party, error_pb2.Error.DESCRIPTOR


def messages() -> list[Any]:
    return list({message.full_name: message for _, message in travelling()}.values())


def test_the_table_of_callers_names_every_method_and_no_other() -> None:
    assert {name for name in CALLERS if not name.startswith(HEALTH)} == METHODS.keys()


def test_every_caller_and_server_in_the_tables_is_a_party() -> None:
    assert frozenset().union(*CALLERS.values(), SERVED_BY.values()) <= frozenset(PARTIES) == PARTIES_OF_A_RUN
    assert all(CALLERS.values())


def test_no_party_calls_itself_and_the_adversary_and_compliance_never_call_one_another() -> None:
    edges = {(caller, party) for name in METHODS for caller in CALLERS[name] for party in served_by(name)}
    assert edges == {
        ("developer", "compliance"),
        ("adversary", "developer"),
        ("compliance", "developer"),
        ("compliance", "referee"),
        ("developer", "referee"),
        ("adversary", "referee"),
    }


def served_by(name: str) -> set[str]:
    return {party for prefix, party in SERVED_BY.items() if name.startswith(prefix)}


@pytest.mark.parametrize("message", messages(), ids=lambda message: message.name)
def test_every_field_says_who_may_see_it(message: Any) -> None:
    assert [at.path for at in walk(message) if at.level == VISIBILITY_UNSPECIFIED] == []


@pytest.mark.parametrize("message", messages(), ids=lambda message: message.name)
def test_a_label_is_inherited_only_where_the_same_message_serves_several(message: Any) -> None:
    inheriting = {at.path.rpartition(".")[0] for at in walk(message) if at.label == VISIBILITY_INHERITED}
    assert inheriting <= MAY_INHERIT
    assert all(field.GetOptions().Extensions[visibility] != VISIBILITY_INHERITED for field in message.fields)


@pytest.mark.parametrize(
    ("party", "message"), list(travelling()), ids=lambda value: value if isinstance(value, str) else value.name
)
def test_nothing_that_travels_to_a_party_is_above_its_clearance(party: str, message: Any) -> None:
    assert above_clearance(message, party) == []


def test_no_field_that_reaches_the_developer_or_the_adversary_is_named_after_what_they_must_not_see() -> None:
    names = {
        at.field.name for party, message in travelling() if party in ("developer", "adversary") for at in walk(message)
    }
    assert "labels_chunk" in names
    assert [name for name in names if "protected" in name or "exact" in name] == []


def test_the_walk_catches_a_message_sent_to_the_wrong_party() -> None:
    deal = "fairwall.game.v1.DeveloperDeal"
    found = above_clearance(METHODS["/fairwall.game.v1.RefereeService/TakeDeveloperDeal"].output_type, "adversary")
    assert f"{deal}.labels" in found
    assert f"{deal}.release_model" not in found
    assert above_clearance(METHODS["/fairwall.game.v1.RefereeService/TakeComplianceDeal"].output_type, "developer")


@pytest.mark.parametrize("label", [VISIBILITY_PROTECTED, VISIBILITY_UNSPECIFIED])
def test_the_walk_catches_one_wrong_label_deep_in_a_deal(label: int) -> None:
    pool = descriptor_pool.DescriptorPool()
    file = referee_service_pb2.DESCRIPTOR
    for dependency in (descriptor_pb2.DESCRIPTOR, *reversed(_dependencies(file))):
        pool.AddSerializedFile(dependency.serialized_pb)
    broken = descriptor_pb2.FileDescriptorProto.FromString(file.serialized_pb)
    deal = next(message for message in broken.message_type if message.name == "DeveloperDeal")
    labels = next(field for field in deal.field if field.name == "labels")
    labels.options.Extensions[visibility] = label
    pool.AddSerializedFile(broken.SerializeToString())
    response = pool.FindMessageTypeByName("fairwall.game.v1.TakeDeveloperDealResponse")
    header = "fairwall.wire.v1.ArrayHeader"
    assert above_clearance(response, "developer") == [
        "fairwall.game.v1.DeveloperDeal.labels",
        f"{header}.element_type",
        f"{header}.shape",
    ]


def _dependencies(file: Any) -> list[Any]:
    """What a file imports, directly or not, the importer before the imported."""
    found: dict[str, Any] = {}
    for dependency in file.dependencies:
        if dependency.name != descriptor_pb2.DESCRIPTOR.name:
            for each in (dependency, *_dependencies(dependency)):
                found.pop(each.name, None)
                found[each.name] = each
    return list(found.values())
