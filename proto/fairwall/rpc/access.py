"""The callers allowed to call each method: one table. A method that is not in it is refused."""

from __future__ import annotations

from google.protobuf.descriptor import ServiceDescriptor

from fairwall.compliance.v1 import (
    audit_service_pb2,
    group_service_pb2,
    release_service_pb2,
    statistics_service_pb2,
)
from fairwall.developer.v1 import model_service_pb2
from fairwall.game.v1 import (
    curator_service_pb2,
    disclosure_service_pb2,
    group_game_service_pb2,
    inference_service_pb2,
    overfit_service_pb2,
    referee_service_pb2,
    release_game_service_pb2,
    reveal_service_pb2,
    training_service_pb2,
    wash_service_pb2,
)

_AUDIT = "/fairwall.compliance.v1.AuditService/"
_GROUP = "/fairwall.compliance.v1.GroupService/"
_RELEASE = "/fairwall.compliance.v1.ReleaseService/"
_STATISTICS = "/fairwall.compliance.v1.StatisticsService/"
_MODEL = "/fairwall.developer.v1.ModelService/"
_REFEREE = "/fairwall.game.v1.RefereeService/"
_REVEAL = "/fairwall.game.v1.RevealService/"
_INFERENCE = "/fairwall.game.v1.InferenceService/"
_RELEASE_GAME = "/fairwall.game.v1.ReleaseGameService/"
_DISCLOSURE = "/fairwall.game.v1.DisclosureService/"
_TRAINING = "/fairwall.game.v1.TrainingService/"
_GROUP_GAME = "/fairwall.game.v1.GroupGameService/"
_WASH = "/fairwall.game.v1.WashService/"
_OVERFIT = "/fairwall.game.v1.OverfitService/"
_CURATOR = "/fairwall.game.v1.CuratorService/"
HEALTH = "/grpc.health.v1.Health/"

SERVICES: tuple[ServiceDescriptor, ...] = tuple(
    service
    for module in (
        audit_service_pb2,
        group_service_pb2,
        release_service_pb2,
        statistics_service_pb2,
        model_service_pb2,
        referee_service_pb2,
        reveal_service_pb2,
        inference_service_pb2,
        release_game_service_pb2,
        disclosure_service_pb2,
        training_service_pb2,
        group_game_service_pb2,
        wash_service_pb2,
        overfit_service_pb2,
        curator_service_pb2,
    )
    for service in module.DESCRIPTOR.services_by_name.values()
)
"""Every service of ours. Importing these modules registers their messages: only registered ones can be decoded."""

PARTIES_OF_A_RUN = frozenset({"compliance", "developer", "adversary", "referee"})

_SERVERS = {"fairwall.compliance.v1": "compliance", "fairwall.developer.v1": "developer", "fairwall.game.v1": "referee"}

SERVED_BY: dict[str, str] = {f"/{service.full_name}/": _SERVERS[service.file.package] for service in SERVICES}
"""The party that serves a service, by the prefix of its methods. Every server serves Health."""

CALLERS: dict[str, frozenset[str]] = {
    _AUDIT + "GetTerms": frozenset({"developer"}),
    _AUDIT + "GetExpectedError": frozenset({"developer"}),
    _AUDIT + "Audit": frozenset({"developer"}),
    _AUDIT + "AuditModels": frozenset({"developer"}),
    _AUDIT + "AuditSealed": frozenset({"developer"}),
    _AUDIT + "AuditTable": frozenset({"developer"}),
    _GROUP + "GetGroupTerms": frozenset({"developer"}),
    _GROUP + "ByGroup": frozenset({"developer"}),
    _RELEASE + "GetReleaseTerms": frozenset({"developer"}),
    _RELEASE + "Sanitise": frozenset({"developer"}),
    _RELEASE + "HandModel": frozenset({"developer"}),
    _RELEASE + "Tabulate": frozenset({"developer"}),
    _STATISTICS + "SumByGroup": frozenset({"developer"}),
    _MODEL + "Predict": frozenset({"adversary", "compliance"}),
    _REFEREE + "Join": frozenset({"compliance", "developer", "adversary"}),
    _REFEREE + "AwaitEnd": frozenset({"compliance", "developer", "adversary"}),
    _REFEREE + "TakeComplianceDeal": frozenset({"compliance"}),
    _REFEREE + "ServeTrial": frozenset({"compliance"}),
    _REFEREE + "SubmitAuditReport": frozenset({"compliance"}),
    _REVEAL + "TakeDeveloperDeal": frozenset({"developer"}),
    _REVEAL + "GetTrainingTable": frozenset({"developer"}),
    _REVEAL + "SubmitReveal": frozenset({"developer"}),
    _REVEAL + "ReleaseModel": frozenset({"developer"}),
    _REVEAL + "TakeAdversaryDeal": frozenset({"adversary"}),
    _REVEAL + "SubmitLossTest": frozenset({"adversary"}),
    _INFERENCE + "TakeTrainingDeal": frozenset({"developer"}),
    _INFERENCE + "SubmitModels": frozenset({"developer"}),
    _INFERENCE + "TakeAttackDeal": frozenset({"adversary"}),
    _INFERENCE + "SubmitGuesses": frozenset({"adversary"}),
    _RELEASE_GAME + "TakeReleaseDeal": frozenset({"developer"}),
    _RELEASE_GAME + "SubmitBeliefs": frozenset({"developer"}),
    _DISCLOSURE + "TakeDisclosureDeal": frozenset({"developer"}),
    _DISCLOSURE + "SubmitPosterior": frozenset({"developer"}),
    _TRAINING + "TakeModelDeal": frozenset({"developer"}),
    _TRAINING + "SubmitModel": frozenset({"developer"}),
    _TRAINING + "TakeCanaryDeal": frozenset({"adversary"}),
    _TRAINING + "SubmitCanaries": frozenset({"adversary"}),
    _GROUP_GAME + "TakeGroupDeal": frozenset({"developer"}),
    _GROUP_GAME + "SubmitGroups": frozenset({"developer"}),
    _WASH + "TakeWashDeal": frozenset({"developer"}),
    _WASH + "SubmitCommitment": frozenset({"developer"}),
    _WASH + "TakeCheckDeal": frozenset({"adversary"}),
    _WASH + "SubmitSighting": frozenset({"adversary"}),
    _WASH + "TakeAuditDeal": frozenset({"developer"}),
    _WASH + "SubmitWash": frozenset({"developer"}),
    _WASH + "TakeSightingDeal": frozenset({"compliance"}),
    _WASH + "SubmitVerdict": frozenset({"compliance"}),
    _OVERFIT + "TakeOverfitDeal": frozenset({"developer"}),
    _OVERFIT + "SubmitSealed": frozenset({"developer"}),
    _OVERFIT + "SubmitPatches": frozenset({"developer"}),
    _CURATOR + "ReleaseCommitment": frozenset({"compliance"}),
    _CURATOR + "TakeCuratorDeal": frozenset({"developer"}),
    _CURATOR + "SubmitAnswers": frozenset({"developer"}),
    _CURATOR + "SubmitOpening": frozenset({"compliance"}),
    HEALTH + "Check": PARTIES_OF_A_RUN,
}
