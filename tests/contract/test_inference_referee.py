"""The inference game's referee over mTLS: each party gets its own cards, in turn, and the adversary nothing about b."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2
from numpy.typing import NDArray

from adversary.play import predict
from developer import inference as developer_inference
from developer.service import ModelService, Shelf
from fairwall.developer.v1.model_service_pb2_grpc import ModelServiceStub, add_ModelServiceServicer_to_server
from fairwall.game.v1 import inference_service_pb2 as inference
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.game.v1.inference_service_pb2_grpc import InferenceServiceStub
from fairwall.game.v1.referee_service_pb2_grpc import RefereeServiceStub, add_RefereeServiceServicer_to_server
from fairwall.rpc.access import CALLERS, SERVED_BY
from fairwall.rpc.arrays import to_message
from fairwall.rpc.turns import PROTOCOL_VERSION, Seat, collect
from fairwall.wire.v1 import array_pb2
from fairwall.wire.v1 import error_pb2 as error
from fairwall.wire.v1.metric_pb2 import METRIC_EODDS_MAX
from sim.games import lay_out
from sim.games import table as games
from sim.games.inference.deal import InferenceDeal, deal
from sim.games.inference.trial import InferenceDealer, InferenceOutcome, _attack_deal, _InferenceTrial
from sim.games.referee import Referee, deals
from sim.games.table import TrialFailed
from sim.transcripts.boundary import walk
from sim.transcripts.methods import METHODS
from tests.contract.descriptors import pool_of_imports
from tests.contract.received import contents, leaks
from tests.contract.refused import refusal

PEOPLE = 400
GROUPS = (np.random.default_rng(11).random(PEOPLE) < 0.4).astype(np.uint8)
LABELS = np.random.default_rng(12).integers(0, 2, PEOPLE).astype(np.uint8)
LAMBDAS = (0.1, 1.0)
VICTIMS = 100
ADDRESSES = {"compliance": "127.0.0.1:1001", "developer": "127.0.0.1:1002", "adversary": ""}

Array = NDArray[Any]


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A group, a label, and one feature that is the row's own number."""
    path = tmp_path_factory.mktemp("data") / "people.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["group", "outcome", "number"])
        rows.writerows(zip(np.where(GROUPS, "a", "b"), LABELS, range(PEOPLE), strict=True))
    return path


def numbers(features: Array) -> list[int]:
    """The row numbers that features tell: their column is standardised over the whole table."""
    every = np.arange(PEOPLE)
    return np.rint(features[:, 0] * every.std() + every.mean()).astype(int).tolist()  # type: ignore[no-any-return]


def draw(
    people: Path, deal_id: str = "deal-1", *, seed: int = 3, asks: bool = False, answers: str = "scores", **own: Any
) -> InferenceDeal:
    """A real deal; with ``asks`` lambda is to be chosen by compliance's answers."""
    developer: dict[str, Any] = {"defence": "fft", "victims": VICTIMS, **own}
    values: dict[str, Any] = {
        "scenario": {"name": "hand-played", "game": "inference", "seed": seed},
        "data": {"source": str(people), "protected": "group", "advantaged": "a", "label": "outcome", "positive": "1"},
        "developer": developer,
        "adversary": {"attack": ["loss-test", "label-meta"], "shadows": 4, "probes": 20, "answers": answers},
    }
    if asks:
        developer["lambdas"] = list(LAMBDAS)
        values["compliance"] = {"metric": "eodds_max", "mechanism": "laplace", "epsilon": 10.0}
    return deal(lay_out(values, "test").cells[0], 0, deal_id)


@dataclass(frozen=True)
class Table:
    """Both referees at one table, on one server, and every party's stubs of them."""

    dealer: InferenceDealer
    opened: grpc.Channel
    doors: dict[str, RefereeServiceStub]
    developer: InferenceServiceStub
    adversary: InferenceServiceStub


@pytest.fixture
def at(serve: Any, dial: Any, credentials: Any, monkeypatch: pytest.MonkeyPatch) -> Table:
    """A referee who has nothing to say is told to say so at once."""
    monkeypatch.setattr("sim.games.table._WAIT_SECONDS", 0.05)
    table = games.GameTable()
    referee, dealer = Referee("run-1", "digest", game.GAME_INFERENCE, table), InferenceDealer(table)
    referee.seat(ADDRESSES)

    def register(server: grpc.Server) -> None:
        add_RefereeServiceServicer_to_server(referee, server)
        dealer.register(server, lambda servicer: servicer)

    address = serve(register, credentials["referee"])
    dialled = {party: dial(address, "referee", credentials[party]) for party in ADDRESSES}
    doors = {party: RefereeServiceStub(channel) for party, channel in dialled.items()}
    return Table(
        dealer,
        dialled["developer"],
        doors,
        InferenceServiceStub(dialled["developer"]),
        InferenceServiceStub(dialled["adversary"]),
    )


Play = Callable[..., Future[InferenceOutcome]]


@pytest.fixture
def play(at: Table) -> Iterator[Play]:
    """Have the referee play a deal; what comes of it."""
    with ThreadPoolExecutor(1) as runner:

        def start(dealt: InferenceDeal, seconds: float = 20.0) -> Future[InferenceOutcome]:
            future = runner.submit(at.dealer.play, dealt, seconds)
            first = take_compliance if dealt.compliance is not None else take_training
            # The last trial stays on the table until the next one is laid there, perhaps under the same name.
            while turn(parts := first(at)) is not None or not is_of(parts, dealt):
                assert not future.done()
            return future

        yield start
        at.dealer.table.abort("the test is over")


def is_of(parts: list[Any], dealt: InferenceDeal) -> bool:
    """Whether these are the cards of a deal, by its name and, for the developer, by its bits."""
    bits = collect(parts[0].deal, parts[1:]).get("bits", dealt.bits)
    return bool(parts[0].deal.deal_id == dealt.deal_id and np.array_equal(bits, dealt.bits))


# What each party does in its turn.


def take_compliance(at: Table, after: str = "") -> list[Any]:
    request = game.TakeComplianceDealRequest(after_deal_id=after)
    return list(at.doors["compliance"].TakeComplianceDeal(request, timeout=300))


def take_training(at: Table, after: str = "") -> list[Any]:
    request = inference.TakeTrainingDealRequest(after_deal_id=after)
    return list(at.developer.TakeTrainingDeal(request, timeout=300))


def take_attack(at: Table, after: str = "") -> list[Any]:
    request = inference.TakeAttackDealRequest(after_deal_id=after)
    return list(at.adversary.TakeAttackDeal(request, timeout=300))


def turn(parts: list[Any]) -> game.Turn | None:
    """What is said in place of a deal."""
    return parts[0].turn if parts[0].WhichOneof("part") == "turn" else None


def serve_trial(at: Table, deal_id: str = "deal-1") -> bool:
    return bool(at.doors["compliance"].ServeTrial(game.ServeTrialRequest(deal_id=deal_id), timeout=300).ended)


def models(dealt: InferenceDeal, **changes: Any) -> inference.SubmitModelsRequest:
    victims = len(dealt.bits)
    test = to_message(np.full((victims, len(dealt.test.labels)), 0.5, np.float32))
    members = to_message(np.full((victims, dealt.member_rows), 0.75, np.float32))
    submitted: dict[str, Any] = {
        "deal_id": dealt.deal_id,
        "scores": test,
        "base_scores": test,
        "member_scores": members,
        "base_member_scores": members,
        "strength": 1.0,
    }
    return inference.SubmitModelsRequest(**{**submitted, **changes})


def submit_models(at: Table, dealt: InferenceDeal, **changes: Any) -> None:
    at.developer.SubmitModels(models(dealt, **changes), timeout=300)


def guesses(dealt: InferenceDeal, value: int = 0, kind: Any = np.uint8) -> Array:
    return np.full((len(dealt.scenario.adversary.attack), len(dealt.bits)), value, kind)


def submit_guesses(at: Table, dealt: InferenceDeal, submitted: Any = None, deal_id: str = "") -> Any:
    message = submitted if isinstance(submitted, array_pb2.Array) else to_message(guesses(dealt))
    request = inference.SubmitGuessesRequest(deal_id=deal_id or dealt.deal_id, guesses=message)
    return at.adversary.SubmitGuesses(request, timeout=300)


def report(at: Table, answered: int) -> None:
    gaps = to_message(np.full(answered, 0.25))
    audit = game.AuditRecord(request_id="r", metric=METRIC_EODDS_MAX, exact=gaps, released=gaps, epsilon=10.0)
    request = game.SubmitAuditReportRequest(deal_id="deal-1", audits=[audit], epsilon_spent=10.0)
    at.doors["compliance"].SubmitAuditReport(request, timeout=300)


# A trial, in turn.


def test_a_trial_played_by_hand_ends_with_what_was_submitted(at: Table, play: Play, people: Path) -> None:
    dealt = draw(people)
    outcome = play(dealt)
    assert turn(take_attack(at)) == game.TURN_WAIT
    scores = np.linspace(0, 1, VICTIMS * len(dealt.test.labels), dtype=np.float32).reshape(VICTIMS, -1)
    submit_models(at, dealt, scores=to_message(scores))
    assert take_attack(at)[0].deal.deal_id == "deal-1"
    guessed = guesses(dealt)
    guessed[1] = np.arange(VICTIMS) % 2
    submit_guesses(at, dealt, to_message(guessed))
    result = outcome.result(5)
    assert result.models.scores.tolist() == scores.astype(float).tolist()
    assert result.models.member_scores.tolist() == np.full((VICTIMS, dealt.member_rows), 0.75).tolist()
    assert (result.models.strength, result.models.queries, result.report) == (1.0, 0, None)
    assert result.guesses.tolist() == guessed.tolist()


def test_where_lambda_is_asked_for_compliance_is_dealt_in_first_and_the_developer_once_it_serves(
    at: Table, play: Play, people: Path
) -> None:
    dealt = draw(people, asks=True)
    outcome = play(dealt)
    (cards,) = [part.deal for part in take_compliance(at) if part.WhichOneof("part") == "deal"]
    audits = cards.audits
    assert (audits.mechanism, audits.epsilon, list(audits.metrics)) == ("laplace", 10.0, [METRIC_EODDS_MAX])
    assert turn(take_training(at)) == turn(take_attack(at)) == game.TURN_WAIT
    assert refusal(lambda: submit_models(at, dealt)) == error.REASON_OUT_OF_TURN
    assert not serve_trial(at)
    training = take_training(at)[0].deal
    assert (tuple(training.strengths), training.metric, training.audit_epsilon) == (LAMBDAS, METRIC_EODDS_MAX, 10.0)
    assert turn(take_attack(at)) == game.TURN_WAIT
    assert refusal(lambda: report(at, 2 * VICTIMS)) == error.REASON_OUT_OF_TURN
    submit_models(at, dealt, strength=0.1, queries=2 * VICTIMS)
    # The lambda that was chosen is public, the choice's cost is not the adversary's.
    assert take_attack(at)[0].deal.training.strength == 0.1
    submit_guesses(at, dealt)
    assert serve_trial(at)
    report(at, 2 * VICTIMS)
    result = outcome.result(5)
    assert (result.models.strength, result.models.queries) == (0.1, 2 * VICTIMS)
    assert result.report is not None
    assert (result.report.answered, result.report.epsilon_spent) == (2 * VICTIMS, 10.0)


@pytest.mark.parametrize("asked", [0, 2 * VICTIMS - 1, 2 * VICTIMS + 1])
def test_a_developer_that_asked_other_than_compliance_answered_is_found_out(
    at: Table, play: Play, people: Path, asked: int
) -> None:
    dealt = draw(people, asks=True)
    outcome = play(dealt)
    serve_trial(at)
    submit_models(at, dealt, strength=0.1, queries=asked)
    submit_guesses(at, dealt)
    report(at, 2 * VICTIMS)
    told = f"developer says that it asked {asked} queries, compliance that it answered {2 * VICTIMS}"
    with pytest.raises(TrialFailed, match=told):
        outcome.result(5)


def test_without_lambdas_compliance_is_not_dealt_in(at: Table, play: Play, people: Path) -> None:
    play(draw(people))
    assert turn(take_compliance(at)) == game.TURN_WAIT
    assert refusal(lambda: serve_trial(at)) == error.REASON_OUT_OF_TURN
    assert refusal(lambda: report(at, 0)) == error.REASON_OUT_OF_TURN


def test_a_deal_is_not_dealt_to_the_same_party_twice_unless_it_missed_it(at: Table, play: Play, people: Path) -> None:
    dealt = draw(people)
    play(dealt)
    submit_models(at, dealt)
    for take in (take_training, take_attack):
        assert take(at) == take(at)
        assert turn(take(at, after="deal-1")) == game.TURN_WAIT


def test_who_waits_when_the_run_is_over_is_told_to_leave(at: Table) -> None:
    at.dealer.table.finish()
    assert [turn(take(at)) for take in (take_compliance, take_training, take_attack)] == [game.TURN_OVER] * 3


def test_an_aborted_trial_fails_for_the_first_reason_given(at: Table, play: Play, people: Path) -> None:
    outcome = play(draw(people))
    at.dealer.table.abort("developer was killed")
    at.dealer.table.abort("adversary was killed")
    with pytest.raises(TrialFailed, match=r"^developer was killed$"):
        outcome.result(5)


SERVED = lambda at, _: serve_trial(at)  # noqa: E731


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("asks", "done", "missing"),
    [
        (False, (), "developer"),
        (False, (submit_models,), "adversary"),
        (True, (), "compliance"),
        (True, (SERVED,), "developer"),
        (True, (SERVED, submit_models), "adversary"),
        (True, (SERVED, submit_models, submit_guesses), "compliance"),
    ],
    ids=["nobody moved", "models", "compliance is asked", "served", "served and models", "no report"],
)
def test_a_trial_that_is_not_finished_in_time_names_who_is_missing(
    at: Table, play: Play, people: Path, asks: bool, done: tuple[Callable[..., object], ...], missing: str
) -> None:
    dealt = draw(people, asks=asks, victims=3)
    outcome = play(dealt, 0.5)
    for submit in done:
        submit(at, dealt)
    with pytest.raises(TrialFailed) as failed:
        outcome.result(5)
    assert str(failed.value) == f"{missing} did not finish the trial within 0.5 s"


# What does not fit, or comes out of turn.


BadScores = Callable[[InferenceDeal, str], array_pb2.Array]


def rows_of(dealt: InferenceDeal, field: str) -> int:
    return dealt.member_rows if "member" in field else len(dealt.test.labels)


def shaped(models_less: int = 0, rows_less: int = 0, kind: Any = np.float32) -> BadScores:
    """Scores of fewer models or rows, or of another type."""
    return lambda dealt, field: to_message(
        np.zeros((len(dealt.bits) - models_less, rows_of(dealt, field) - rows_less), kind)
    )


def holding(value: Any, model: int = -1, row: int = -1) -> BadScores:
    """Right scores, but for one number."""

    def scores(dealt: InferenceDeal, field: str) -> array_pb2.Array:
        values = np.full((len(dealt.bits), rows_of(dealt, field)), 0.5, np.float32)
        values[model, row] = value
        return to_message(values)

    return scores


def cut(dealt: InferenceDeal, field: str) -> array_pb2.Array:
    """Fewer bytes than the header says."""
    whole = shaped()(dealt, field)
    return array_pb2.Array(header=whole.header, data=whole.data[:-1])


BAD_SCORES: dict[str, BadScores] = {
    "nothing": lambda *_: array_pb2.Array(),
    "a model too few": shaped(models_less=1),
    "a model too many": shaped(models_less=-1),
    "a row too few": shaped(rows_less=1),
    "a row too many": shaped(rows_less=-1),
    "one axis": lambda dealt, _: to_message(np.zeros(len(dealt.bits), np.float32)),
    "other axes": lambda dealt, field: to_message(np.zeros((rows_of(dealt, field), len(dealt.bits)), np.float32)),
    "of doubles": shaped(kind=np.float64),
    "of bytes": shaped(kind=np.uint8),
    "a NaN": holding(math.nan),
    "an infinity": holding(math.inf, 0, 0),
    "above 1": holding(np.nextafter(np.float32(1), np.float32(2)), -1, 0),
    "below 0": holding(-1e-30, 0, -1),
    "bytes missing": cut,
}
SCORES = ("scores", "base_scores", "member_scores", "base_member_scores")


def test_what_are_no_scores_is_refused_and_right_ones_are_taken(at: Table, play: Play, people: Path) -> None:
    dealt = draw(people, victims=3)
    outcome = play(dealt)
    for (what, bad), field in product(BAD_SCORES.items(), SCORES):
        wrong = {field: bad(dealt, field)}
        reason = refusal(lambda wrong=wrong: submit_models(at, dealt, **wrong))  # type: ignore[misc]
        assert reason == error.REASON_SUBMISSION_INVALID, (what, field)
    assert turn(take_attack(at)) == game.TURN_WAIT
    submit_models(at, dealt)
    submit_guesses(at, dealt)
    assert (outcome.result(5).models.scores == 0.5).all()


@pytest.mark.parametrize("asks", [False, True])
def test_a_lambda_that_is_no_choice_is_refused(at: Table, play: Play, people: Path, asks: bool) -> None:
    dealt = draw(people, asks=asks, victims=3)
    play(dealt)
    if asks:
        serve_trial(at)
    wrong = [0.0, 0.5, float(np.nextafter(1.0, 0)), -1.0, math.inf, math.nan] + ([] if asks else [0.1])
    for each in wrong:
        reason = refusal(lambda: submit_models(at, dealt, strength=each))  # noqa: B023
        assert reason == error.REASON_SUBMISSION_INVALID
    submit_models(at, dealt, strength=0.1 if asks else 1.0)


BAD_GUESSES: dict[str, Callable[[InferenceDeal], array_pb2.Array]] = {
    "nothing": lambda _: array_pb2.Array(),
    "a 2": lambda dealt: to_message(guesses(dealt, 2)),
    "a 255": lambda dealt: to_message(guesses(dealt, 255)),
    "of floats": lambda dealt: to_message(guesses(dealt, 1, np.float32)),
    "an attack too few": lambda dealt: to_message(guesses(dealt)[1:]),
    "an attack too many": lambda dealt: to_message(np.vstack([guesses(dealt), guesses(dealt)[:1]])),
    "a model too few": lambda dealt: to_message(guesses(dealt)[:, 1:]),
    "other axes": lambda dealt: to_message(guesses(dealt).T.copy()),
    "one axis": lambda dealt: to_message(guesses(dealt).ravel()),
}


def test_what_are_no_guesses_is_refused_and_right_ones_are_taken(at: Table, play: Play, people: Path) -> None:
    dealt = draw(people, victims=3)
    outcome = play(dealt)
    submit_models(at, dealt)
    for what, bad in BAD_GUESSES.items():
        reason = refusal(lambda bad=bad: submit_guesses(at, dealt, bad(dealt)))  # type: ignore[misc]
        assert reason == error.REASON_SUBMISSION_INVALID, what
    assert not outcome.done()
    submit_guesses(at, dealt)
    assert outcome.result(5).guesses.shape == (2, 3)


def test_what_is_about_another_deal_is_out_of_turn(at: Table, play: Play, people: Path) -> None:
    dealt = draw(people, asks=True)
    submissions = (
        lambda: serve_trial(at, "deal-2"),
        lambda: submit_models(at, dealt, deal_id="deal-2"),
        lambda: submit_guesses(at, dealt, deal_id="deal-2"),
    )
    assert [refusal(submit) for submit in submissions] == [error.REASON_OUT_OF_TURN] * 3
    play(dealt)
    serve_trial(at)
    submit_models(at, dealt)
    assert [refusal(submit) for submit in submissions] == [error.REASON_OUT_OF_TURN] * 3


def test_guesses_before_the_models_are_out_of_turn(at: Table, play: Play, people: Path) -> None:
    dealt = draw(people)
    play(dealt)
    assert refusal(lambda: submit_guesses(at, dealt)) == error.REASON_OUT_OF_TURN


def test_what_was_submitted_may_be_sent_again_but_not_changed(at: Table, play: Play, people: Path) -> None:
    """Or a developer could tell the adversary one lambda and the referee another, or score other models afterwards."""
    dealt = draw(people, asks=True)
    outcome = play(dealt)
    serve_trial(at)
    for _ in range(2):
        submit_models(at, dealt, strength=0.1)
    assert refusal(lambda: submit_models(at, dealt, strength=1.0)) == error.REASON_OUT_OF_TURN
    assert refusal(lambda: submit_models(at, dealt, strength=0.1, queries=7)) == error.REASON_OUT_OF_TURN
    assert take_attack(at)[0].deal.training.strength == 0.1
    for _ in range(2):
        submit_guesses(at, dealt)
    assert refusal(lambda: submit_guesses(at, dealt, to_message(guesses(dealt, 1)))) == error.REASON_OUT_OF_TURN
    report(at, 0)
    result = outcome.result(5)
    assert (result.models.strength, result.guesses.any()) == (0.1, False)


# Whose rows are whose, by what was received.


@dataclass(frozen=True)
class Hands:
    """Every message that each party received in one trial, and the arrays in it."""

    compliance: list[Message]
    developer: list[Message]
    adversary: list[Message]

    def arrays(self, party: str) -> dict[str, Array]:
        received: list[Any] = getattr(self, party)
        (first,) = (n for n, part in enumerate(received) if "Take" in part.DESCRIPTOR.name and part.HasField("deal"))
        kind = type(received[first])
        return collect(received[first].deal, [part for part in received[first + 1 :] if isinstance(part, kind)])


def hands_of(at: Table, play: Play, dealt: InferenceDeal) -> Hands:
    """Play a deal to its end."""
    outcome = play(dealt)
    received: dict[str, list[Any]] = {
        party: [door.Join(game.JoinRequest(protocol_version=PROTOCOL_VERSION), timeout=300)]
        for party, door in at.doors.items()
    }
    before = dealt.deal_id + " was not taken"
    if dealt.compliance is not None:
        received["compliance"] += take_compliance(at, before)
        serve_trial(at, dealt.deal_id)
    received["developer"] += take_training(at, before)
    # What the adversary is told while it waits counts too.
    received["adversary"] += take_attack(at, before)
    submit_models(at, dealt, queries=2 * len(dealt.bits))
    received["adversary"] += take_attack(at, before)
    # So does a refusal, and whether its guess was right must not show in how it was taken.
    refused = refusal(lambda: submit_guesses(at, dealt, array_pb2.Array()))
    received["adversary"] += [error.Error(reason=refused), submit_guesses(at, dealt)]
    if dealt.compliance is None:
        outcome.result(5)
    return Hands(**received)


def rows_received(hands: Hands, *, asks: bool) -> dict[str, list[int]]:
    developer, adversary = hands.arrays("developer"), hands.arrays("adversary")
    rows = {
        "the developer": numbers(developer["features"]),
        "the test": numbers(developer["test_features"]),
        "the adversary": numbers(adversary["features"]),
    }
    return rows | ({"compliance": numbers(developer["audited_features"])} if asks else {})


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("asks", [False, True], ids=["lambda given", "lambda asked for"])
def test_no_row_is_received_in_two_hands_and_every_row_with_its_own_label_and_group(
    at: Table, play: Play, people: Path, seed: int, asks: bool
) -> None:
    hands = hands_of(at, play, draw(people, seed=seed, asks=asks, purity=1.0 if seed % 2 else 0.7))
    rows = rows_received(hands, asks=asks)
    assert all(len(rows[one]) == len(set(rows[one])) > 0 for one in rows)
    assert [(one, other) for one, other in combinations(rows, 2) if set(rows[one]) & set(rows[other])] == []
    assert set().union(*rows.values()) == set(range(PEOPLE))
    for party in ("developer", "adversary"):
        cards, own = hands.arrays(party), rows[f"the {party}"]
        assert cards["labels"].tolist() == LABELS[own].tolist()
        assert cards["groups"].tolist() == [GROUPS[own].tolist()]
    if asks:
        cards = hands.arrays("compliance")
        assert cards.keys() == {"labels", "protected"}
        assert cards["labels"].tolist() == LABELS[rows["compliance"]].tolist()
        assert cards["protected"].tolist() == GROUPS[rows["compliance"]].tolist()


def test_a_dealer_that_deals_a_victim_s_row_to_the_adversary_is_caught(at: Table, play: Play, people: Path) -> None:
    """The broken twin of the test above: one row in two hands."""
    dealt = draw(people)
    features = np.vstack([dealt.developer.features[:1], dealt.adversary.features[1:]])
    rows = rows_received(
        hands_of(at, play, replace(dealt, adversary=replace(dealt.adversary, features=features))), asks=False
    )
    assert set(rows["the adversary"]) & set(rows["the developer"]) == {int(dealt.developer.numbers[0])}


# What the adversary learns about b from the referee: nothing.


@pytest.mark.parametrize("asks", [False, True], ids=["lambda given", "lambda asked for"])
def test_neither_the_bits_nor_the_developer_s_cards_reach_the_adversary_or_compliance(
    at: Table, play: Play, people: Path, asks: bool
) -> None:
    dealt = draw(people, asks=asks)
    hands = hands_of(at, play, dealt)
    seeds = dict(dealt.seeds)
    if dealt.compliance is not None:
        seeds["compliance"] = dealt.compliance.seed
    for party in ("compliance", "adversary"):
        received = getattr(hands, party)
        assert leaks(received, dealt.bits) == []
        # The developer's rows, and the referee's: their numbers, labels and groups.
        whole = b"".join(contents(received))
        for rows in (dealt.developer, dealt.test):
            assert [row for row in rows.features if row.tobytes() in whole] == []
            assert leaks(received, rows.labels) == []
            assert leaks(received, rows.groups[0]) == []
        assert [name for name, seed in seeds.items() if seed in whole] == ([party] if party in seeds else [])
    if dealt.audited is not None:
        assert leaks(hands.adversary, dealt.audited.groups[0]) == leaks(hands.developer, dealt.audited.groups[0]) == []
    # The control: the same look finds all of it where it is.
    assert "u1" in leaks(hands.developer, dealt.bits)
    assert "u1" in leaks(hands.developer, dealt.developer.groups[0])
    assert all(row.tobytes() in b"".join(contents(hands.developer)) for row in dealt.test.features)


def received_by_the_adversary(at: Table, play: Play, dealt: InferenceDeal, bits: Array) -> list[bytes]:
    return [part.SerializeToString() for part in hands_of(at, play, replace(dealt, bits=bits)).adversary]


EVERY_BITS = [np.array(bits, np.uint8) for bits in product((0, 1), repeat=4)]


def test_whatever_the_bits_are_the_adversary_receives_the_same_bytes(at: Table, play: Play, people: Path) -> None:
    """All sixteen vectors of four bits: the same deal otherwise, and the same submissions."""
    dealt = draw(people, victims=4)
    first, *others = (received_by_the_adversary(at, play, dealt, bits) for bits in EVERY_BITS)
    assert len(first) > 6
    assert all(other == first for other in others)


def leaks_in_the_seed(message: inference.AttackDeal, bits: Array) -> None:
    message.seed = message.seed[:-1] + bytes([message.seed[-1] ^ int(bits[0])])


def leaks_in_a_byte_more(message: inference.AttackDeal, bits: Array) -> None:
    message.seed += np.packbits(bits).tobytes()


def leaks_in_an_order(message: inference.AttackDeal, bits: Array) -> None:
    message.attacks[:] = sorted(message.attacks, reverse=bool(bits[0]))


def leaks_in_a_number(message: inference.AttackDeal, bits: Array) -> None:
    message.probes += int(bits[0])


def leaks_in_an_unknown_field(message: inference.AttackDeal, bits: Array) -> None:
    message.MergeFromString(bytes([15 << 3 | 2, 1, int(bits[0])]))


def leaks_everything(message: inference.AttackDeal, bits: Array) -> None:
    leaks_in_a_byte_more(message, 1 - bits[::-1])


@pytest.fixture
def leak(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Break the referee, before it is asked to serve: it changes the adversary's cards by the bits."""

    def leaking(trial: _InferenceTrial) -> Any:
        message, arrays = _attack_deal(trial)
        request.param(message, trial.deal.bits)
        return message, arrays

    told = deals(inference.TakeAttackDealResponse, leaking, lambda trial: trial.models is not None)
    monkeypatch.setattr(InferenceDealer, "TakeAttackDeal", told)


@pytest.mark.parametrize(
    "leak",
    [leaks_in_the_seed, leaks_in_a_byte_more, leaks_in_an_order, leaks_in_a_number, leaks_in_an_unknown_field],
    indirect=True,
)
def test_a_referee_that_tells_one_bit_is_caught(leak: None, at: Table, play: Play, people: Path) -> None:
    """The broken twins of the test above."""
    dealt = draw(people, victims=4)
    one, other = (received_by_the_adversary(at, play, dealt, bits) for bits in (EVERY_BITS[1], EVERY_BITS[9]))
    assert one != other


@pytest.mark.parametrize("leak", [leaks_everything], indirect=True)
def test_a_referee_that_writes_all_bits_down_is_caught_by_the_look_too(
    leak: None, at: Table, play: Play, people: Path
) -> None:
    dealt = draw(people)
    assert leaks(hands_of(at, play, dealt).adversary, dealt.bits) == ["bits big reversed complement"]


# What the adversary learns about b from the models: what they were trained to tell.


@pytest.mark.parametrize(
    ("defence", "answers", "tells"),
    [
        pytest.param("constant", "scores", False, marks=pytest.mark.check),
        pytest.param("pooled", "scores", False, marks=pytest.mark.check),
        ("pooled", "labels", False),
        ("none", "scores", True),
    ],
)
def test_models_that_do_not_depend_on_the_bits_answer_the_same_bytes(
    at: Table,
    play: Play,
    people: Path,
    serve: Any,
    dial: Any,
    credentials: Any,
    defence: str,
    answers: str,
    tells: bool,
) -> None:
    """The real developer plays deals that differ in the bits alone; ``none`` is the control, whose models differ."""
    pytest.importorskip("torch", reason="the training extra is not installed")
    dealt = draw(people, victims=2, defence=defence, answers=answers, steps=5)
    shelf = Shelf()
    address = serve(
        lambda server: add_ModelServiceServicer_to_server(ModelService(shelf.released, shelf.audited), server),
        credentials["developer"],
    )
    black_boxes = ModelServiceStub(dial(address, "developer", credentials["adversary"]))
    received = []
    with ThreadPoolExecutor(1) as developer:
        playing = developer.submit(
            developer_inference.play, Seat(at.opened, "127.0.0.1:1", credentials["developer"]), shelf
        )
        try:
            for number, bits in enumerate(([0, 1], [1, 0])):
                deal_id = f"deal-{number}"
                outcome = play(replace(dealt, deal_id=deal_id, bits=np.array(bits, np.uint8)))
                while turn(parts := take_attack(at)) is not None or parts[0].deal.deal_id != deal_id:
                    assert not playing.done(), playing.result()
                probes = collect(parts[0].deal, parts[1:])["features"]
                received.append([predict(black_boxes, deal_id, probes, k).tobytes() for k in range(2)])
                if answers == "labels":
                    assert {value for each in received[-1] for value in np.frombuffer(each)} <= {0.0, 1.0}
                submit_guesses(at, replace(dealt, deal_id=deal_id))
                outcome.result(5)
        finally:
            at.dealer.table.finish()
        playing.result(10)
    assert (received[0] != received[1]) is tells


# That no message can carry weights: every field that reaches the adversary and could hold more than a flag or a name.

CARRIERS = {
    "fairwall.developer.v1.PredictResponse.scores": "a score for each row that was asked about",
    "fairwall.game.v1.JoinResponse.scenario_digest": "SHA-256 of the scenario, in every party's hands",
    "fairwall.game.v1.JoinResponse.counterpart_address": "where the models answer",
    "fairwall.game.v1.TakeAdversaryDealResponse.features_chunk": "of the adversary's own rows",
    "fairwall.game.v1.TakeAdversaryDealResponse.labels_chunk": "of the adversary's own rows",
    "fairwall.game.v1.AdversaryDeal.deal_id": "a name",
    "fairwall.game.v1.AdversaryDeal.attack": "a name out of the scenario",
    "fairwall.game.v1.TakeAttackDealResponse.features_chunk": "of the adversary's own rows",
    "fairwall.game.v1.TakeAttackDealResponse.labels_chunk": "of the adversary's own rows",
    "fairwall.game.v1.TakeAttackDealResponse.groups_chunk": "of the adversary's own rows",
    "fairwall.game.v1.AttackDeal.deal_id": "a name",
    "fairwall.game.v1.AttackDeal.seed": "32 bytes of the adversary's own",
    "fairwall.game.v1.AttackDeal.attacks": "names out of the scenario",
    "fairwall.game.v1.Training.defence": "a name out of the scenario",
    "fairwall.game.v1.Training.strength": "one of the scenario's lambdas",
    "fairwall.game.v1.Training.rehearsal": "out of the scenario",
    "fairwall.game.v1.Training.purity": "out of the scenario",
    "fairwall.game.v1.Training.epsilon": "out of the scenario",
    "fairwall.game.v1.Training.delta": "out of the scenario",
    "fairwall.game.v1.TakeCanaryDealResponse.features_chunk": "of rows that the adversary guesses about",
    "fairwall.game.v1.TakeCanaryDealResponse.labels_chunk": "of rows that the adversary guesses about",
    "fairwall.game.v1.CanaryDeal.deal_id": "a name",
    "fairwall.game.v1.ModelTerms.model": "a name out of the scenario",
    "fairwall.game.v1.ModelTerms.practice": "a name out of the scenario",
    "fairwall.game.v1.ModelTerms.epsilon": "out of the scenario",
    "fairwall.game.v1.ModelTerms.delta": "out of the scenario",
    "fairwall.game.v1.ModelTerms.statistics_share": "out of the scenario",
    "fairwall.game.v1.ModelTerms.strength": "out of the scenario",
    "fairwall.game.v1.TakeCheckDealResponse.features_chunk": "of rows that the adversary asks the deployed model about",
    "fairwall.game.v1.CheckDeal.deal_id": "a name",
    "fairwall.game.v1.CheckDeal.seed": "32 bytes of the adversary's own",
    "fairwall.game.v1.CheckDeal.wrong": "out of the scenario",
}
_WIDE = {
    *(FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_STRING),
    *(FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT),
}
_ARRAY, _HEADER = array_pb2.Array.DESCRIPTOR.full_name, array_pb2.ArrayHeader.DESCRIPTOR.full_name


def carriers(message: Any) -> set[str]:
    """The fields that a message reaches which hold bytes, text, real numbers or an array, or repeat anything.

    An array is one thing, named by the field that holds it; its header is a type and at most two lengths.
    """
    found = set()
    for at in walk(message):
        within = at.path.rpartition(".")[0]
        if within in (_ARRAY, _HEADER):
            continue
        holds_array = at.field.message_type is not None and at.field.message_type.full_name == _ARRAY
        if holds_array or at.field.type in _WIDE or at.field.is_repeated:
            found.add(at.path)
    return found


def messages_to_the_adversary() -> list[Any]:
    """The answers of all methods that the adversary may call."""
    health = {"/grpc.health.v1.Health/Check": health_pb2.DESCRIPTOR.services_by_name["Health"].methods_by_name["Check"]}
    may_call = [name for name, callers in CALLERS.items() if "adversary" in callers]
    return [({**METHODS, **health})[name].output_type for name in may_call] + [error.Error.DESCRIPTOR]


def test_no_message_that_reaches_the_adversary_can_carry_weights() -> None:
    """What can carry much is on a list, with what it carries; a new field belongs on it or is caught here."""
    found = set().union(*map(carriers, messages_to_the_adversary()))
    assert found == CARRIERS.keys()
    names = {path.rpartition(".")[2] for path in found - {"fairwall.game.v1.ModelTerms.model"}}
    assert not any(word in name for name in names for word in ("weight", "bias", "gradient", "parameter", "model"))


def test_the_adversary_is_sent_nothing_but_answers_to_its_calls() -> None:
    """It serves no method, so requests never travel to it; above are all the answers."""
    assert "adversary" not in SERVED_BY.values()


def test_a_field_that_could_carry_weights_is_caught() -> None:
    """The broken twin: an attack deal with one field of bytes more, and one with an array."""
    file = inference.DESCRIPTOR
    pool = pool_of_imports(file)
    broken = descriptor_pb2.FileDescriptorProto.FromString(file.serialized_pb)
    attack_deal = next(message for message in broken.message_type if message.name == "AttackDeal")
    field = descriptor_pb2.FieldDescriptorProto
    attack_deal.field.add(name="extra", number=101, type=field.TYPE_BYTES, label=field.LABEL_OPTIONAL)
    attack_deal.field.add(
        name="more", number=102, type=field.TYPE_MESSAGE, type_name=f".{_ARRAY}", label=field.LABEL_OPTIONAL
    )
    attack_deal.field.add(name="many", number=103, type=field.TYPE_INT32, label=field.LABEL_REPEATED)
    pool.AddSerializedFile(broken.SerializeToString())
    found = carriers(pool.FindMessageTypeByName("fairwall.game.v1.TakeAttackDealResponse"))
    assert found - CARRIERS.keys() == {f"fairwall.game.v1.AttackDeal.{name}" for name in ("extra", "more", "many")}
    # And the developer's deal would be caught for what it holds.
    reached = carriers(METHODS["/fairwall.game.v1.InferenceService/TakeTrainingDeal"].output_type)
    assert "fairwall.game.v1.TakeTrainingDealResponse.bits_chunk" in reached - CARRIERS.keys()
