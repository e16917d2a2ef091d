"""Hostile messages at every server, from callers with the right certificates: each is refused for a closed reason.

This file is also the servers: ``python test_fuzz.py`` serves all services in one process, which must not die, not
grow, and not charge for what it does not answer.
"""

from __future__ import annotations

import json
import random
import secrets
import struct
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import grpc
import numpy as np
import psutil
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compliance.answers.audit_service import AuditService
from compliance.answers.audits import game_case
from compliance.answers.black_box import QueriedModels
from compliance.answers.group_service import GroupService
from compliance.answers.groups import GroupCase
from compliance.answers.releases import HandedModel, ReleaseCase, ReleaseService, SanitisedColumn, game_release
from compliance.answers.statistics import StatisticsService, game_cohort
from compliance.answers.studies import Study, game_study
from compliance.ledger.accountant import Budget
from compliance.mechanisms import MECHANISMS
from compliance.records.groups import Attribute, Grouped
from compliance.records.people import Records
from developer.service import Audited, ModelService, ReleasedModel
from fairwall.compliance.v1 import audit_service_pb2 as audit
from fairwall.compliance.v1 import group_service_pb2 as groups
from fairwall.compliance.v1 import release_service_pb2 as release_pb2
from fairwall.compliance.v1 import statistics_service_pb2 as statistics
from fairwall.compliance.v1.audit_service_pb2_grpc import add_AuditServiceServicer_to_server
from fairwall.compliance.v1.group_service_pb2_grpc import add_GroupServiceServicer_to_server
from fairwall.compliance.v1.release_service_pb2_grpc import add_ReleaseServiceServicer_to_server
from fairwall.compliance.v1.statistics_service_pb2_grpc import add_StatisticsServiceServicer_to_server
from fairwall.developer.v1 import model_service_pb2 as model
from fairwall.developer.v1.model_service_pb2_grpc import ModelServiceStub, add_ModelServiceServicer_to_server
from fairwall.game.v1 import curator_service_pb2 as curator_pb2
from fairwall.game.v1 import disclosure_service_pb2 as disclosure_pb2
from fairwall.game.v1 import group_game_service_pb2 as group_game_pb2
from fairwall.game.v1 import inference_service_pb2 as inference
from fairwall.game.v1 import overfit_service_pb2 as overfit_pb2
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.game.v1 import release_game_service_pb2 as release_game_pb2
from fairwall.game.v1 import reveal_service_pb2 as reveal_pb2
from fairwall.game.v1 import training_service_pb2 as training_pb2
from fairwall.game.v1 import wash_service_pb2 as wash_pb2
from fairwall.game.v1.referee_service_pb2_grpc import add_RefereeServiceServicer_to_server
from fairwall.rpc import channel, server
from fairwall.rpc.access import CALLERS
from fairwall.rpc.arrays import header_of, to_message
from fairwall.rpc.errors import CATALOGUE, reason_of
from fairwall.rpc.identity import Credentials
from fairwall.wire.v1 import error_pb2 as error
from fairwall.wire.v1.metric_pb2 import METRIC_SP
from sim.games import lay_out, table
from sim.games.curator import deal as curator_deals
from sim.games.curator.trial import CuratorDealer
from sim.games.disclosure import deal as disclosure_deals
from sim.games.disclosure.trial import DisclosureDealer
from sim.games.groups import deal as groups_deals
from sim.games.groups.trial import GroupsDealer
from sim.games.inference import deal as inference_deal
from sim.games.inference.trial import InferenceDealer
from sim.games.overfit import deal as overfit_deals
from sim.games.overfit.trial import OverfitDealer
from sim.games.referee import Referee
from sim.games.release import deal as release_deals
from sim.games.release.trial import ReleaseDealer
from sim.games.reveal.deal import deal
from sim.games.reveal.trial import RevealDealer
from sim.games.table import TrialFailed
from sim.games.training import deal as training_deals
from sim.games.training.trial import TrainingDealer
from sim.games.wash import deal as wash_deals
from sim.games.wash.trial import WashDealer
from sim.play.keys import mint
from sim.transcripts.methods import METHODS

PEOPLE, COLUMNS, VICTIMS, TEST, MEMBERS = 20, 3, 4, 9, 5
EPSILON = 100.0
NODES = np.array([[0.0, 0.5, 1.0, 2.0], [-1.0, -1.0, -1.0, -1.0], [-1.0, 1.0, -1.0, -1.0]])
"""A model of one tree."""
GROWTH_BYTES = 32 << 20
"""What a process may grow by: it keeps every answer that was bought, of which there are at most some hundreds."""

SERVED_IN = {
    "AuditService": "compliance",
    "GroupService": "compliance",
    "ReleaseService": "compliance",
    "StatisticsService": "compliance",
    "ModelService": "developer",
    "RefereeService": "referee",
    "RevealService": "referee",
    "InferenceService": "referee",
    "ReleaseGameService": "referee",
    "DisclosureService": "referee",
    "TrainingService": "referee",
    "GroupGameService": "referee",
    "WashService": "referee",
    "OverfitService": "referee",
    "CuratorService": "referee",
}
SERVICES = tuple(SERVED_IN)


# The servers ----------------------------------------------------------------------------------------------------------


def reveal_deal() -> Any:
    values = {
        "scenario": {"name": "fuzz", "game": "reveal"},
        "data": {"source": "german", "test_size": PEOPLE},
        "compliance": {"mechanism": "laplace", "epsilon": 1.0},
        "developer": {"strategy": "sensing", "queries": 2},
        "adversary": {"attack": ["loss-test"], "probes": 10},
    }
    return deal(lay_out(values, "fuzz").cells[0], 0, "deal")


def attack_deal() -> Any:
    values = {
        "scenario": {"name": "fuzz", "game": "inference"},
        "data": {"source": "german", "protected": "sex"},
        "developer": {"victims": VICTIMS, "rows": 40},
        "adversary": {"attack": ["loss-test"], "shadows": 0, "probes": 10},
    }
    return inference_deal.deal(lay_out(values, "fuzz").cells[0], 0, "deal")


def release_deal() -> Any:
    values = {
        "scenario": {"name": "fuzz", "game": "release"},
        "data": {"source": "adult-coded"},
        "release": {"protocol": "grr", "epsilon": 1.0},
        "developer": {"trees": 1},
    }
    return release_deals.deal(lay_out(values, "fuzz").cells[0], 0, "deal")


def disclosure_deal() -> Any:
    values = {
        "scenario": {"name": "fuzz", "game": "disclosure"},
        "disclosure": {"mode": "identity", "people": PEOPLE, "epsilon": "inf"},
    }
    return disclosure_deals.deal(lay_out(values, "fuzz").cells[0], 0, "deal")


def groups_deal() -> Any:
    values = {
        "scenario": {"name": "fuzz", "game": "groups"},
        "groups": {"shares": [0.5, 0.25, 0.25], "people": PEOPLE, "epsilon": 1.0},
    }
    return groups_deals.deal(lay_out(values, "fuzz").cells[0], 0, "deal")


def wash_deal() -> Any:
    values = {
        "scenario": {"name": "fuzz", "game": "wash"},
        "data": {"source": "german", "protected": "sex", "test_size": PEOPLE, "training": 500, "sample": 300},
        "compliance": {"mechanism": "exact"},
        "wash": {"checks": VICTIMS, "committed": True, "knows": "given"},
    }
    return wash_deals.deal(lay_out(values, "fuzz").cells[0], 0, "deal")


def overfit_deal() -> Any:
    values = {
        "scenario": {"name": "fuzz", "game": "overfit"},
        "data": {"source": "german", "test_size": PEOPLE},
        "compliance": {"mechanism": "exact", "epsilon": "inf"},
        "overfit": {
            "rows": "committed",
            "attack": "majority",
            "public_sample": 100,
            "population": 100,
            "models": VICTIMS,
        },
    }
    return overfit_deals.deal(lay_out(values, "fuzz").cells[0], 0, "deal")


def curator_deal() -> Any:
    values = {
        "scenario": {"name": "fuzz", "game": "curator"},
        "data": {"source": "german", "people": PEOPLE},
        "compliance": {"mechanism": "laplace", "epsilon": 1.0},
        "curator": {"requests": 1, "openings": 1, "defence": "commitment", "minimum_group": 1},
    }
    return curator_deals.deal(lay_out(values, "fuzz").cells[0], 0, "deal")


def training_deal() -> Any:
    values = {
        "scenario": {"name": "fuzz", "game": "training"},
        "data": {"source": "german", "protected": "sex"},
        "training": {"model": "lr", "holds_protected": True, "canaries": VICTIMS},
    }
    return training_deals.deal(lay_out(values, "fuzz").cells[0], 0, "deal")


def study() -> Study:
    cells, answers = np.arange(PEOPLE) % 3, np.arange(PEOPLE, dtype=np.uint8) % 2
    return game_study("deal", cells, answers, 3, EPSILON, None, records=False)


def release_case() -> ReleaseCase:
    columns, bits = [SanitisedColumn(0, 2, 1.0)], np.arange(PEOPLE, dtype=np.uint8)[:, np.newaxis] % 2
    model = HandedModel(np.ones(PEOPLE, np.uint8), bits.astype(np.int64), bits, columns, [2])
    return ReleaseCase(game_release("deal", "grr", columns, bits, EPSILON, None), model, tells_utilities=True)


def serve_all() -> None:
    """Serve every service until stdin closes; say where, and what a submission must look like."""
    credentials = {party: Credentials(**values) for party, values in json.loads(sys.stdin.readline()).items()}
    table._WAIT_SECONDS = 0.0
    released = {"deal": ReleasedModel(lambda features: 1 / (1 + np.exp(-features.sum(axis=1))), COLUMNS)}
    audited = {("deal", "r"): Audited(1, COLUMNS, lambda number, features: np.full(len(features), number / 2))}
    models = server.serve(
        lambda grpc_server: add_ModelServiceServicer_to_server(ModelService(released, audited), grpc_server),
        credentials["developer"],
    )
    asked = ModelServiceStub(channel.connect(models.address, "developer", credentials["compliance"]))
    case = game_case(
        "deal",
        Records(np.ones(PEOPLE, np.uint8), np.arange(PEOPLE, dtype=np.uint8) % 2, ("sp", "eo")),
        MECHANISMS["laplace"],
        Budget(EPSILON),
        0.0,
        3,
        None,
        models=QueriedModels(asked, "deal", np.zeros((PEOPLE, COLUMNS))),
    )
    audits = server.serve(
        lambda grpc_server: add_AuditServiceServicer_to_server(AuditService({"deal": case}), grpc_server),
        credentials["compliance"],
    )
    grouped = GroupCase(case, people_in_groups(), 0.02)
    by_group = server.serve(
        lambda grpc_server: add_GroupServiceServicer_to_server(GroupService({"deal": grouped}), grpc_server),
        credentials["compliance"],
    )
    releases = server.serve(
        lambda grpc_server: add_ReleaseServiceServicer_to_server(
            ReleaseService({"deal": release_case()}, {"deal": study()}), grpc_server
        ),
        credentials["compliance"],
    )
    cohort = game_cohort("deal", np.arange(PEOPLE, dtype=np.uint8) % 2, 1.0, 1e-5, None)
    statisticians = server.serve(
        lambda grpc_server: add_StatisticsServiceServicer_to_server(StatisticsService({"deal": cohort}), grpc_server),
        credentials["compliance"],
    )
    laid = table.GameTable()
    referee, revealer = Referee("run-1", "digest", game.GAME_REVEAL, laid), RevealDealer(laid)
    inferrer, releaser = InferenceDealer(table.GameTable()), ReleaseDealer(table.GameTable())
    discloser, trainer = DisclosureDealer(table.GameTable()), TrainingDealer(table.GameTable())
    counter, washer = GroupsDealer(table.GameTable()), WashDealer(table.GameTable())
    overfitter, regulator = OverfitDealer(table.GameTable()), CuratorDealer(table.GameTable())
    referee.seat({"compliance": "127.0.0.1:1", "developer": "127.0.0.1:2", "adversary": ""})
    referees = server.serve(
        lambda grpc_server: add_RefereeServiceServicer_to_server(referee, grpc_server), credentials["referee"]
    )
    dealing = [
        server.serve(partial(dealer.register, watch=lambda servicer: servicer), credentials["referee"])
        for dealer in (revealer, inferrer, releaser, discloser, trainer, counter, washer, overfitter, regulator)
    ]
    split = attack_deal()
    handed, trained = release_deal(), training_deal()
    games: list[tuple[Callable[..., Any], Any]] = [
        (revealer.play, reveal_deal()),
        (inferrer.play, split),
        (releaser.play, handed),
        (discloser.play, disclosure_deal()),
        (trainer.play, trained),
        (counter.play, groups_deal()),
        (washer.play, wash_deal()),
        (overfitter.play, overfit_deal()),
        (regulator.play, curator_deal()),
    ]
    for play, dealt in games:
        threading.Thread(target=again_and_again, args=(play, dealt), daemon=True).start()
    served = (
        audits,
        by_group,
        releases,
        statisticians,
        models,
        referees,
        *dealing,
    )
    shape = {"test": len(split.test.labels), "members": split.member_rows, "trained": len(handed.labels)}
    shape["decided"] = len(trained.test.labels)
    addresses = {name: each.address for name, each in zip(SERVICES, served, strict=True)}
    print(json.dumps({"addresses": addresses, "shape": shape}), flush=True)  # noqa: T201
    sys.stdin.readline()


def people_in_groups() -> Grouped:
    codes = np.arange(PEOPLE, dtype=np.uint8).reshape(1, -1) % 3
    return Grouped((Attribute("kind", ("a", "b", "c")),), codes, np.ones(PEOPLE, np.uint8))


def again_and_again(play: Callable[..., Any], dealt: Any) -> None:
    while True:
        try:
            play(dealt, 3600.0)
        except TrialFailed:  # who submitted contradicts who reported
            continue


@dataclass
class Target:
    """The servers' process, and a channel to each service for each party."""

    process: psutil.Process
    channels: dict[tuple[str, str], grpc.Channel]
    shape: dict[str, int]
    charged: float = 0.0
    outcomes: Counter[str] = field(default_factory=Counter)

    def send(self, method: str, party: str, parts: Sequence[bytes]) -> None:
        """Send a request in bytes; it is answered, or refused for a reason that is not the server's failure."""
        service = method.split("/")[1].rpartition(".")[2]
        streams, is_streamed = method in STREAMING, method in STREAMED
        opened = self.channels[service, party]
        make = getattr(opened, f"{'stream' if streams else 'unary'}_{'stream' if is_streamed else 'unary'}")
        request: Any = iter(parts) if streams else parts[0]
        try:
            answer = make(method)(request, timeout=300)
            answers = list(answer) if is_streamed else [answer]
        except grpc.RpcError as refused:
            self.outcomes[reason_for(refused, (method, party, parts))] += 1
            return
        self.outcomes["answered"] += 1
        for data in answers:
            self.count(method, parts, data)

    def count(self, method: str, parts: Sequence[bytes], data: bytes) -> None:
        """Add up what the answers say was charged, once for each request."""
        if not method.endswith(("Audit", "AuditModels", "/ByGroup")):
            return
        said = METHODS_OF[method][1].FromString(data)
        told = said.answer if method.endswith("AuditModels") else said
        first = METHODS_OF[method][0].FromString(parts[0])
        name = first.request_id if method.endswith("AuditModels") else first.header.request_id
        if name not in self.bought:
            self.bought.add(name)
            self.charged += told.epsilon_charged

    bought: set[str] = field(default_factory=set)

    def remaining(self) -> float:
        """Ask what is left of the budget."""
        call: Any = self.channels["AuditService", "developer"].unary_unary(
            "/fairwall.compliance.v1.AuditService/GetTerms"
        )
        answer = call(audit.GetTermsRequest(deal_id="deal").SerializeToString(), timeout=300)
        return float(audit.GetTermsResponse.FromString(answer).epsilon_remaining)


def reason_for(refused: Any, sent: object) -> str:
    """Name the reason of a refusal, which is of the catalogue, and not that the service failed."""
    reason = reason_of(refused)
    told = (refused.code(), refused.details())
    assert reason not in (error.REASON_UNSPECIFIED, error.REASON_INTERNAL), (told, sent)
    assert told == CATALOGUE[reason], (told, sent)
    return error.Reason.Name(reason)


OWN = {name: method for name, method in METHODS.items() if not name.startswith("/grpc.")}
METHODS_OF: dict[str, tuple[Any, Any]] = {
    name: (GetMessageClass(method.input_type), GetMessageClass(method.output_type)) for name, method in OWN.items()
}
STREAMING = {name for name, method in OWN.items() if method.client_streaming}
STREAMED = {name for name, method in OWN.items() if method.server_streaming}
CALLS = [(name, party) for name in OWN for party in sorted(CALLERS[name])]


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    credentials = mint("run-1")
    with subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        said: list[str] = []
        threading.Thread(target=lambda: said.extend(process.stderr or ()), daemon=True).start()
        process.stdin.write(json.dumps({party: asdict(own) for party, own in credentials.items()}) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        assert line, "".join(said)
        told = json.loads(line)
        channels = {
            (service, party): channel.connect(told["addresses"][service], SERVED_IN[service], credentials[party])
            for service in SERVICES
            for party in ("compliance", "developer", "adversary")
        }
        yield Target(psutil.Process(process.pid), channels, told["shape"])
        assert process.poll() is None
        for opened in channels.values():
            opened.close()
        process.stdin.close()
    assert not [text for text in said if "Traceback" in text or "ERROR" in text], said[-20:]


# What is sent ---------------------------------------------------------------------------------------------------------


def sound(shape: dict[str, int]) -> dict[str, list[Message]]:
    """One request that is in order, of each method; it may come out of turn."""
    predictions = np.linspace(0, 1, PEOPLE).reshape(1, -1)
    features, rows = np.zeros((2, COLUMNS)), np.full((PEOPLE, 1), 0.5)
    guess = to_message(np.ones(PEOPLE, np.uint8))
    gaps = to_message(np.array([0.25]))
    test = to_message(np.full((VICTIMS, shape["test"]), 0.5, np.float32))
    members = to_message(np.full((VICTIMS, shape["members"]), 0.5, np.float32))
    header = audit.AuditHeader(
        request_id="r", deal_id="deal", metric=METRIC_SP, epsilon=1.0, predictions=header_of(predictions)
    )
    asked: dict[str, list[Message]] = {
        "GetTerms": [audit.GetTermsRequest(deal_id="deal")],
        "Audit": [audit.AuditRequest(header=header), audit.AuditRequest(predictions_chunk=predictions.tobytes())],
        "AuditModels": [
            audit.AuditModelsRequest(request_id="r", deal_id="deal", metric=METRIC_SP, epsilon=1.0, models=1)
        ],
        "AuditSealed": [
            audit.AuditSealedRequest(
                header=audit.AuditSealedHeader(request_id="r", deal_id="deal", metric=METRIC_SP, epsilon=1.0, sizes=[4])
            ),
            audit.AuditSealedRequest(models_chunk=b"ONNX"),
        ],
        "GetGroupTerms": [groups.GetGroupTermsRequest(deal_id="deal")],
        "ByGroup": [
            groups.ByGroupRequest(
                header=groups.ByGroupHeader(
                    request_id="r",
                    deal_id="deal",
                    by=["kind"],
                    measures=["MEASURE_MEAN_SCORE", "MEASURE_SCORING_RATE"],
                    epsilon=1.0,
                    predictions=header_of(predictions),
                )
            ),
            groups.ByGroupRequest(predictions_chunk=predictions.tobytes()),
        ],
        "Sanitise": [release_pb2.SanitiseRequest(request_id="r", deal_id="deal", epsilon=1.0)],
        "Tabulate": [release_pb2.TabulateRequest(request_id="r", deal_id="deal", epsilon=1.0)],
        "SubmitPosterior": [
            disclosure_pb2.SubmitPosteriorRequest(deal_id="deal", posterior=0.5, candidates=1, record=1)
        ],
        "SubmitGroups": [
            group_game_pb2.SubmitGroupsRequest(deal_id="deal", guess=to_message(np.zeros(PEOPLE, np.uint8)))
        ],
        "SubmitCommitment": [wash_pb2.SubmitCommitmentRequest(deal_id="deal", commitment=bytes(32))],
        "SubmitSighting": [wash_pb2.SubmitSightingRequest(deal_id="deal", seen=to_message(np.ones(VICTIMS, np.uint8)))],
        "SubmitWash": [
            wash_pb2.SubmitWashRequest(
                deal_id="deal",
                shown=to_message(np.ones(PEOPLE, np.uint8)),
                deployed=to_message(np.ones(PEOPLE, np.uint8)),
                belief=to_message(np.full(PEOPLE, 0.5)),
                salt=bytes(32),
            )
        ],
        "SubmitVerdict": [wash_pb2.SubmitVerdictRequest(deal_id="deal", contradictions=1, accused=True)],
        "SubmitSealed": [overfit_pb2.SubmitSealedRequest(deal_id="deal", key=bytes(32))],
        "SubmitPatches": [
            overfit_pb2.SubmitPatchesRequest(deal_id="deal", enough=1, favours=to_message(np.ones(VICTIMS, np.uint8)))
        ],
        "ReleaseCommitment": [
            curator_pb2.ReleaseCommitmentRequest(deal_id="deal", commitment=curator_pb2.Commitment())
        ],
        "SubmitAnswers": [
            curator_pb2.SubmitAnswersRequest(
                deal_id="deal", request_ids=["a"], predictions=to_message(np.ones((1, PEOPLE), np.bool_)), answers=gaps
            )
        ],
        "SubmitOpening": [
            curator_pb2.SubmitOpeningRequest(
                deal_id="deal", attributes=guess, seed=b"s", salt_key=b"k", sample=to_message(np.empty(0))
            )
        ],
        "SumByGroup": [
            statistics.SumByGroupRequest(
                header=statistics.SumsHeader(request_id="r", deal_id="deal", multiplier=10.0, rows=header_of(rows))
            ),
            statistics.SumByGroupRequest(rows_chunk=rows.tobytes()),
        ],
        "SubmitModel": [
            training_pb2.SubmitModelRequest(
                deal_id="deal",
                scores=to_message(np.full(shape["decided"], 0.5, np.float32)),
                decisions=to_message(np.ones((1, shape["decided"]), np.uint8)),
                epsilon=1.0,
                steps=[training_pb2.PrivateStep(what="a step", epsilon=1.0, of="everybody")],
            )
        ],
        "SubmitCanaries": [
            training_pb2.SubmitCanariesRequest(deal_id="deal", guesses=to_message(np.ones(VICTIMS, np.uint8)))
        ],
        "HandModel": [
            release_pb2.HandModelRequest(header=release_pb2.ModelHeader(deal_id="deal", nodes=header_of(NODES))),
            release_pb2.HandModelRequest(nodes_chunk=NODES.tobytes()),
        ],
        "SubmitBeliefs": [
            release_game_pb2.SubmitBeliefsRequest(
                deal_id="deal",
                from_release=to_message(np.ones(shape["trained"], np.uint8)),
                from_everything=to_message(np.ones(shape["trained"], np.uint8)),
                consistent=0.5,
                queries=1,
            )
        ],
        "Predict": [
            model.PredictRequest(header=model.PredictHeader(deal_id="deal", features=header_of(features))),
            model.PredictRequest(features_chunk=features.tobytes()),
        ],
        "Join": [game.JoinRequest(protocol_version=1)],
        "SubmitAuditReport": [
            game.SubmitAuditReportRequest(
                deal_id="deal",
                audits=[
                    game.AuditRecord(request_id="metric-1", metric=METRIC_SP, exact=gaps, released=gaps, epsilon=1.0)
                ],
                epsilon_spent=1.0,
            )
        ],
        "SubmitReveal": [
            reveal_pb2.SubmitRevealRequest(
                deal_id="deal",
                baseline=guess,
                guess=guess,
                targeted=guess,
                queries=1,
                max_prediction_change=0.5,
                accuracy_base=0.5,
                accuracy_models=gaps,
            )
        ],
        "SubmitLossTest": [
            reveal_pb2.SubmitLossTestRequest(deal_id="deal", accuracy_advantaged=0.5, accuracy_disadvantaged=0.5)
        ],
        "SubmitModels": [
            inference.SubmitModelsRequest(
                deal_id="deal",
                scores=test,
                base_scores=test,
                member_scores=members,
                base_member_scores=members,
                strength=1.0,
            )
        ],
        "SubmitGuesses": [
            inference.SubmitGuessesRequest(deal_id="deal", guesses=to_message(np.ones((1, VICTIMS), np.uint8)))
        ],
    }
    for name, (request, _) in METHODS_OF.items():
        fields = request.DESCRIPTOR.fields_by_name
        key = next(iter(set(fields.keys()) & {"deal_id", "after_deal_id", "training_digest"}), None)
        plain = request(**{key: "deal" if key == "deal_id" else ""}) if key else request()
        asked.setdefault(name.rpartition("/")[2], [plain])
    return {name: asked[name.rpartition("/")[2]] for name in METHODS_OF}


HOSTILE = (b"\xff" * 10, b"\x80" * 20, b"", b"\x00", b"\x0a\xff\xff\xff\xff\x0f", b"\x0b" * 200, b"\x0a" * 400)
"""Numbers too long, fields that end before they begin, groups that never end."""


def spoil(parts: list[bytes], others: Sequence[bytes], chance: random.Random) -> list[bytes]:
    """Change a request's bytes in one to four places: within a message, or in the order of messages."""
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        which = chance.randrange(len(parts)) if parts else 0
        data = bytearray(parts[which]) if parts else bytearray()
        at = chance.randrange(len(data) + 1)
        end = min(at + int(2 ** chance.uniform(0, 8)), len(data))
        match chance.randrange(11):
            case 0 if at < len(data):
                data[at] ^= 1 << chance.randrange(8)
            case 1 if at < len(data):
                data[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
            case 2:
                del data[at:end]
            case 3:
                data[at:at] = data[at:end]
            case 4:
                data[at:at] = chance.randbytes(chance.randint(1, 20))
            case 5:
                del data[at:]
            case 6:
                data[at:at] = chance.choice(HOSTILE)
            case 7:
                data[at:] = chance.choice(others)[at:]
            case 8:
                number = chance.choice((float("nan"), float("inf"), -1.0, 1e308, 5e-324, 1e-12))
                data[at : at + 8] = struct.pack("<d", number)
            case 9 if len(parts) > 1:
                parts.pop(which)
                continue
            case 10:
                parts.insert(which, bytes(data))
                continue
        if parts:
            parts[which] = bytes(data)
        else:
            parts = [bytes(data)]
    return parts


NUMBERS = st.sampled_from((0, 1, 2, 3, PEOPLE, 255, 2**31 - 1)) | st.integers(0, 2**31 - 1)
TEXTS = st.sampled_from(("deal", "r", "", "s" * 64, "s" * 65, "\x00", "é")) | st.text(max_size=20)
FLOATS = st.sampled_from((0.5, 1.0, 1e-12)) | st.floats()
CHUNKS = st.sampled_from((np.full(PEOPLE, 0.5).tobytes(), np.ones(PEOPLE, np.uint8).tobytes())) | st.binary(
    max_size=200
)


def values_of(about: FieldDescriptor) -> st.SearchStrategy[Any]:
    match about.type:
        case FieldDescriptor.TYPE_MESSAGE:
            assert about.message_type is not None
            return requests(about.message_type)
        case FieldDescriptor.TYPE_STRING:
            return TEXTS
        case FieldDescriptor.TYPE_BYTES:
            return CHUNKS
        case FieldDescriptor.TYPE_DOUBLE | FieldDescriptor.TYPE_FLOAT:
            return FLOATS
        case FieldDescriptor.TYPE_BOOL:
            return st.booleans()
        case FieldDescriptor.TYPE_ENUM:
            return st.integers(0, 5) | st.integers(-(2**31), 2**31 - 1)
        case _:
            return NUMBERS


@st.composite
def requests(draw: Callable[..., Any], about: Any, like: Message | None = None) -> Message:
    """A message of a type, whose fields have values of their types, and some no value; most those of a sound one."""
    made = GetMessageClass(about)()
    if like is not None:
        made.CopyFrom(like)
    for each in about.fields:
        change = draw(st.integers(0, 9))
        if like is not None and change < 7:
            if each.type == FieldDescriptor.TYPE_MESSAGE and not each.is_repeated and like.HasField(each.name):
                getattr(made, each.name).CopyFrom(draw(requests(each.message_type, getattr(like, each.name))))
            continue
        made.ClearField(each.name)
        if change == 9:
            continue
        if each.is_repeated:
            drawn = draw(st.lists(values_of(each), max_size=3))
            getattr(made, each.name).extend(drawn)
        elif each.type == FieldDescriptor.TYPE_MESSAGE:
            getattr(made, each.name).CopyFrom(draw(values_of(each)))
        else:
            setattr(made, each.name, draw(values_of(each)))
    return made


# That nothing comes of it ---------------------------------------------------------------------------------------------


def calls_of(service: str) -> list[tuple[str, str]]:
    return [(name, party) for name, party in CALLS if f".{service}/" in name]


def check_bytes(target: Target, service: str, count: int, seed: int) -> None:
    """Send spoilt requests; then look at the process, and at the budget."""
    chance = random.Random(f"{seed} {service}")  # noqa: S311
    seeds = {
        name: [message.SerializeToString() for message in messages] for name, messages in sound(target.shape).items()
    }
    others = [data for messages in seeds.values() for data in messages]
    calls, before = calls_of(service), 0
    for sent in range(count):
        name, party = chance.choice(calls)
        parts = spoil(list(seeds[name]), others, chance) if chance.random() < 0.95 else list(seeds[name])
        target.send(name, party, parts if name in STREAMING else parts[:1] or [b""])
        if sent == count // 4:
            before = target.process.memory_info().rss
    check_health(target, before)


def check_messages(target: Target, service: str, count: int) -> None:
    """Send messages that are well-formed and make no sense; likewise."""
    calls, orderly = calls_of(service), sound(target.shape)

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.data())
    def send(data: st.DataObject) -> None:
        name, party = data.draw(st.sampled_from(calls))
        about, asked = METHODS_OF[name][0].DESCRIPTOR, orderly[name]
        parts = [data.draw(requests(about, data.draw(st.sampled_from((each, each, None))))) for each in asked]
        if name in STREAMING and data.draw(st.integers(0, 4)) == 0:
            parts = data.draw(st.lists(st.sampled_from(parts), max_size=4))
        target.send(name, party, [part.SerializeToString() for part in parts])

    before = target.process.memory_info().rss
    send()
    check_health(target, before)


def check_health(target: Target, before: int) -> None:
    assert target.process.is_running()
    assert target.process.memory_info().rss - before < GROWTH_BYTES
    assert target.remaining() == pytest.approx(EPSILON - target.charged, abs=1e-9)
    assert not {"REASON_CALLER_NOT_ALLOWED", "REASON_CALLER_UNKNOWN"} & target.outcomes.keys()
    print(dict(target.outcomes))  # noqa: T201


def test_every_method_is_attacked() -> None:
    assert {name for service in SERVICES for name, _ in calls_of(service)} == OWN.keys()


@pytest.mark.few(1)
@pytest.mark.parametrize("service", SERVICES)
def test_spoilt_bytes_are_refused_and_cost_nothing(target: Target, service: str) -> None:
    check_bytes(target, service, 160, 1)


@pytest.mark.few(1)
@pytest.mark.parametrize("service", SERVICES)
def test_messages_that_make_no_sense_are_refused_and_cost_nothing(target: Target, service: str) -> None:
    check_messages(target, service, 20)


@pytest.mark.slow(seconds=8)
@pytest.mark.parametrize("service", SERVICES)
def test_2500_messages_are_refused_and_cost_nothing(target: Target, service: str) -> None:
    check_bytes(target, service, 2_250, secrets.randbits(40))
    check_messages(target, service, 250)


class Careless(AuditService):
    """It looks for a deal before it looks whether there is one."""

    def GetTerms(self, request: audit.GetTermsRequest, _: grpc.ServicerContext) -> audit.GetTermsResponse:  # noqa: N802
        return audit.GetTermsResponse(people=self._cases[request.deal_id].queries_max)


@pytest.mark.check
def test_a_careless_server_is_found_out(serve: Any, dial: Any, credentials: Any) -> None:
    address = serve(
        lambda grpc_server: add_AuditServiceServicer_to_server(Careless({}), grpc_server), credentials["compliance"]
    )
    opened = dial(address, "compliance", credentials["developer"])
    hit = Target(
        psutil.Process(),
        {("AuditService", "developer"): opened},
        {"test": TEST, "members": MEMBERS, "trained": PEOPLE, "decided": TEST},
    )
    with pytest.raises(AssertionError, match="the service failed"):
        check_bytes(hit, "AuditService", 200, 1)


if __name__ == "__main__":
    serve_all()
