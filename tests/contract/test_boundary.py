"""No message that can travel to a party reaches a field above its clearance, by the labels of the descriptors."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import descriptor_pb2

from fairwall.game.v1 import reveal_service_pb2
from fairwall.rpc.access import CALLERS, PARTIES_OF_A_RUN, SERVED_BY
from fairwall.rpc.identity import PARTIES
from fairwall.wire.v1.error_pb2 import AuditError
from fairwall.wire.v1.visibility_pb2 import (
    VISIBILITY_INHERITED,
    VISIBILITY_PROTECTED,
    VISIBILITY_UNSPECIFIED,
    visibility,
)
from sim.transcripts.boundary import Travel, learns, server_of, travelling, violations, walk
from sim.transcripts.methods import DEALS, METHODS, SUBMISSIONS, TABLES
from tests.contract.descriptors import pool_of_imports

HEALTH = "/grpc.health.v1.Health/"
TRAVELLING = travelling()
MAY_INHERIT = {
    "fairwall.wire.v1.ArrayHeader",
    "fairwall.wire.v1.Array",
    "fairwall.wire.v1.Precision",
    "fairwall.game.v1.QueryCount",
}


def above_clearance(message: Any, party: str) -> list[str]:
    """The fields of a message that a party may not see."""
    return [found.path for found in violations([Travel(party, "a method", message)])]


def messages() -> list[Any]:
    return list({travel.message.full_name: travel.message for travel in TRAVELLING}.values())


def test_the_table_of_callers_names_every_method_and_no_other() -> None:
    assert {name for name in CALLERS if not name.startswith(HEALTH)} == METHODS.keys()


def test_every_caller_and_server_in_the_tables_is_a_party() -> None:
    assert frozenset().union(*CALLERS.values(), SERVED_BY.values()) <= frozenset(PARTIES) == PARTIES_OF_A_RUN
    assert all(CALLERS.values())


def test_no_party_calls_itself_and_the_adversary_and_compliance_never_call_one_another() -> None:
    edges = {(caller, server_of(name)) for name in METHODS for caller in CALLERS[name]}
    assert edges == {
        ("developer", "compliance"),
        ("adversary", "developer"),
        ("compliance", "developer"),
        ("compliance", "referee"),
        ("developer", "referee"),
        ("adversary", "referee"),
    }


def test_every_field_says_who_may_see_it() -> None:
    assert [at.path for message in messages() for at in walk(message) if at.level == VISIBILITY_UNSPECIFIED] == []


def test_a_label_is_inherited_only_where_the_same_message_serves_several() -> None:
    fields = [at for message in messages() for at in walk(message)]
    assert {at.path.rpartition(".")[0] for at in fields if at.label == VISIBILITY_INHERITED} <= MAY_INHERIT
    own = [field for message in messages() for field in message.fields]
    assert [field for field in own if field.GetOptions().Extensions[visibility] == VISIBILITY_INHERITED] == []


def test_the_whole_boundary_holds_and_every_party_learns_something() -> None:
    assert violations() == []
    assert {travel.party for travel in TRAVELLING} == set(PARTIES)
    assert list(learns("adversary")) == ["OUTSIDE"]
    assert list(learns("developer")) == ["OUTSIDE", "DEVELOPMENT"]
    secret = learns("compliance")["PROTECTED"]
    assert secret["ComplianceDeal"] == ["seed", "audits", "release", "study", "statistics", "groups", "curator"]
    assert secret["AuditCards"] == secret["StatisticsCards"] == ["protected"]
    assert secret["ReleaseCards"] == ["audits", "sensitive", "release"]
    assert (secret["StudyCards"], secret["GroupCards"]) == (["study_cells", "study_answers"], ["groups"])
    assert secret["CuratorCards"] == ["audits", "cheat", "strength", "share"]


def test_no_field_that_reaches_the_developer_or_the_adversary_is_named_after_what_they_must_not_see() -> None:
    reached = [
        at.field for travel in TRAVELLING if travel.party in ("developer", "adversary") for at in walk(travel.message)
    ]
    names = {field.name for field in reached}
    assert "labels_chunk" in names
    # That a game must give the developer the protected attribute is declared, not hidden.
    telling = {field for field in reached if "protected" in field.name or "exact" in field.name}
    declared = {field.containing_type.name for field in telling if field.name == "holds_protected"}
    assert {(field.containing_type.name, field.name) for field in telling if field.name != "holds_protected"} == {
        ("ModelDeal", "protected"),
        ("TakeModelDealResponse", "protected_chunk"),
        ("WashDeal", "protected"),
        ("TakeWashDealResponse", "protected_chunk"),
    }
    assert {"ModelDeal", "WashDeal"} <= declared


def test_the_numbers_of_a_refusal_reach_those_who_may_ask_for_audits_and_nobody_else() -> None:
    numbers = {"people", "queries_max", "epsilon_min", "epsilon_max", "epsilon_remaining", "epsilon_needed"}
    assert {travel.party for travel in TRAVELLING if travel.message.name == "AuditError"} == {"developer"}
    assert set(learns("developer")["DEVELOPMENT"]["AuditError"]) == numbers
    assert learns("adversary")["OUTSIDE"]["Error"] == ["reason"]
    found = above_clearance(AuditError.DESCRIPTOR, "adversary")
    assert {path.rpartition(".")[2] for path in found} == numbers


def test_the_walk_catches_a_message_sent_to_the_wrong_party() -> None:
    deal = "fairwall.game.v1.DeveloperDeal"
    found = above_clearance(METHODS["/fairwall.game.v1.RevealService/TakeDeveloperDeal"].output_type, "adversary")
    assert f"{deal}.labels" in found
    assert f"{deal}.release_model" not in found
    assert above_clearance(METHODS["/fairwall.game.v1.RefereeService/TakeComplianceDeal"].output_type, "developer")


@pytest.mark.parametrize("label", [VISIBILITY_PROTECTED, VISIBILITY_UNSPECIFIED])
def test_the_walk_catches_one_wrong_label_deep_in_a_deal(label: int) -> None:
    file = reveal_service_pb2.DESCRIPTOR
    pool = pool_of_imports(file)
    broken = descriptor_pb2.FileDescriptorProto.FromString(file.serialized_pb)
    deal = next(message for message in broken.message_type if message.name == "DeveloperDeal")
    labels = next(field for field in deal.field if field.name == "labels")
    labels.options.Extensions[visibility] = label
    pool.AddSerializedFile(broken.SerializeToString())
    response = pool.FindMessageTypeByName("fairwall.game.v1.TakeDeveloperDealResponse")
    header = "fairwall.wire.v1.ArrayHeader"
    found = above_clearance(response, "developer")
    assert found == [
        "fairwall.game.v1.DeveloperDeal.labels",
        f"{header}.element_type",
        f"{header}.shape",
    ]
    name = "UNSPECIFIED" if label == VISIBILITY_UNSPECIFIED else "PROTECTED"
    line = f"{header}.shape is {name}, and reaches developer in a method"
    assert str(violations([Travel("developer", "a method", response)])[-1]) == line
    assert above_clearance(response, "referee") == ([] if label == VISIBILITY_PROTECTED else found)


def test_what_a_method_is_for_is_told_by_its_name() -> None:
    """Whoever serves cards or takes what is submitted under another name is read by nobody: it is refused here."""
    served_by_the_referee = {name for name in METHODS if server_of(name) == "referee"}
    others = {f"/fairwall.game.v1.RefereeService/{name}" for name in ("Join", "ServeTrial", "AwaitEnd")}
    assert served_by_the_referee - others == DEALS | TABLES | SUBMISSIONS
    for name in DEALS:
        first = METHODS[name].output_type.oneofs_by_name["part"].fields[1]
        assert (first.name, first.message_type.fields_by_number[1].name) == ("deal", "deal_id")
    for name in SUBMISSIONS:
        assert METHODS[name].input_type.fields_by_number[1].name == "deal_id"
    for name in TABLES:
        assert len(METHODS[name].input_type.fields) == 1
