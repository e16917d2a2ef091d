"""The referee over mTLS: it deals each party its own cards and no other, and takes only what fits, in turn."""

from __future__ import annotations

import csv
import math
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from google.protobuf.message import Message
from numpy.typing import NDArray

from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.game.v1 import reveal_service_pb2 as reveal_pb2
from fairwall.game.v1.referee_service_pb2_grpc import RefereeServiceStub, add_RefereeServiceServicer_to_server
from fairwall.game.v1.reveal_service_pb2_grpc import RevealServiceStub
from fairwall.rpc.arrays import to_message
from fairwall.rpc.turns import PROTOCOL_VERSION, collect
from fairwall.wire.v1 import array_pb2
from fairwall.wire.v1 import error_pb2 as error
from fairwall.wire.v1.metric_pb2 import METRIC_SP
from sim.games import lay_out
from sim.games import table as games
from sim.games.referee import Referee
from sim.games.reveal.deal import RevealDeal, deal
from sim.games.reveal.trial import RevealDealer, RevealOutcome
from sim.games.table import TrialFailed
from tests.contract.received import contents, leaks
from tests.contract.refused import refusal

PEOPLE = 80
ADDRESSES = {"compliance": "127.0.0.1:1001", "developer": "127.0.0.1:1002", "adversary": ""}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """400 people: a group, a label, a decision that leans on the group, two numbers that tell every row apart."""
    rng = np.random.default_rng(11)
    path = tmp_path_factory.mktemp("data") / "people.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["group", "outcome", "decision", "income", "age"])
        for _ in range(400):
            group = rng.random() < 0.4
            decision = "yes" if rng.random() < (0.7 if group else 0.4) else "no"
            rows.writerow(["a" if group else "b", rng.integers(2), decision, rng.normal(), rng.normal() + group])
    return path


@pytest.fixture(scope="module")
def dealt(table: Path) -> RevealDeal:
    """A real deal that deals everybody in."""
    return draw(table, attack=["loss-test"], probes=20)


def draw(table: Path, *, hidden: bool = False, **adversary: Any) -> RevealDeal:
    values = {
        "scenario": {"name": "hand-played", "game": "reveal", "seed": 3},
        "data": {
            "source": str(table),
            "protected": "group",
            "advantaged": "a",
            "label": "outcome",
            "positive": "1",
            "test_size": PEOPLE,
            "hidden": hidden,
        },
        "compliance": {"metric": "sp", "mechanism": "laplace", "epsilon": 1.0},
        "developer": {"strategy": "sensing", "decoder": "l1", "queries": 5},
        "adversary": adversary,
    }
    return deal(lay_out(values, "test").cells[0], 0, "deal-1")


class Door:
    """A party's stubs of both services, as one."""

    def __init__(self, opened: grpc.Channel) -> None:
        self._stubs = RefereeServiceStub(opened), RevealServiceStub(opened)

    def __getattr__(self, method: str) -> Any:
        return next(getattr(stub, method) for stub in self._stubs if hasattr(stub, method))


@dataclass(frozen=True)
class Table:
    """A referee and a dealer that are served at one table, and each party's way in."""

    referee: Referee
    dealer: RevealDealer
    compliance: Door
    developer: Door
    adversary: Door


@pytest.fixture
def at(serve: Any, dial: Any, credentials: Any, monkeypatch: pytest.MonkeyPatch) -> Table:
    """A referee who has nothing to say is told to say so at once."""
    monkeypatch.setattr("sim.games.table._WAIT_SECONDS", 0.05)
    table = games.GameTable()
    referee, dealer = Referee("run-1", "digest", game.GAME_REVEAL, table), RevealDealer(table)

    def register(server: grpc.Server) -> None:
        add_RefereeServiceServicer_to_server(referee, server)
        dealer.register(server, lambda servicer: servicer)

    address = serve(register, credentials["referee"])
    parties = ("compliance", "developer", "adversary")
    return Table(referee, dealer, *(Door(dial(address, "referee", credentials[party])) for party in parties))


Play = Callable[..., Future[RevealOutcome]]


@pytest.fixture
def play(at: Table) -> Iterator[Play]:
    """Have the referee play a deal; what comes of it."""
    with ThreadPoolExecutor(1) as runner:

        def start(dealt: RevealDeal, seconds: float = 20.0) -> Future[RevealOutcome]:
            future = runner.submit(at.dealer.play, dealt, seconds)
            while take("compliance", at)[0].WhichOneof("part") == "turn":
                assert not future.done()
            return future

        yield start
        at.referee.table.abort("the test is over")


# What each party does in its turn.


def join(stub: Door, version: int = PROTOCOL_VERSION) -> Any:
    return stub.Join(game.JoinRequest(protocol_version=version), timeout=300)


def take(party: str, at: Table, after: str = "") -> list[Any]:
    """Everything that a party receives when it asks for its next deal."""
    name = f"Take{party.capitalize()}Deal"
    messages = game if party == "compliance" else reveal_pb2
    request = getattr(messages, f"{name}Request")(after_deal_id=after)
    return list(getattr(getattr(at, party), name)(request, timeout=300))


def serve_trial(at: Table, deal_id: str = "deal-1") -> bool:
    return bool(at.compliance.ServeTrial(game.ServeTrialRequest(deal_id=deal_id), timeout=300).ended)


def reveal(**changes: Any) -> reveal_pb2.SubmitRevealRequest:
    guess = to_message(np.ones(PEOPLE, np.uint8))
    submitted = {
        "deal_id": "deal-1",
        "baseline": guess,
        "guess": guess,
        "targeted": guess,
        "polarity_known": True,
        "queries": 2,
        "max_prediction_change": 0.1,
        "accuracy_base": 0.75,
        "accuracy_models": to_message(np.array([0.5, 0.75])),
    }
    return reveal_pb2.SubmitRevealRequest(**{**submitted, **changes})


def submit_reveal(at: Table, **changes: Any) -> None:
    at.developer.SubmitReveal(reveal(**changes), timeout=300)


def release(at: Table) -> None:
    at.developer.ReleaseModel(reveal_pb2.ReleaseModelRequest(deal_id="deal-1"), timeout=300)


def submit_loss_test(at: Table, advantaged: float = 0.75, disadvantaged: float = 0.5, deal_id: str = "deal-1") -> None:
    at.adversary.SubmitLossTest(
        reveal_pb2.SubmitLossTestRequest(
            deal_id=deal_id, accuracy_advantaged=advantaged, accuracy_disadvantaged=disadvantaged
        ),
        timeout=300,
    )


def audit(**changes: Any) -> game.AuditRecord:
    answered = {
        "request_id": "metric-1",
        "metric": METRIC_SP,
        "exact": to_message(np.array([0.25, 0.5])),
        "released": to_message(np.array([0.3, 0.4])),
        "epsilon": 1.0,
    }
    return game.AuditRecord(**{**answered, **changes})


def report(at: Table, *audits: game.AuditRecord, spent: float = 1.0, deal_id: str = "deal-1", **model: Any) -> None:
    at.compliance.SubmitAuditReport(
        game.SubmitAuditReportRequest(deal_id=deal_id, audits=audits or (audit(),), epsilon_spent=spent, **model),
        timeout=300,
    )


# The way in.


def test_nobody_gets_in_before_everybody_s_address_is_known(at: Table) -> None:
    for stub in (at.compliance, at.developer, at.adversary):
        assert join(stub) == game.JoinResponse(turn=game.TURN_WAIT)


def test_each_party_learns_its_counterpart_s_address_and_no_other(at: Table) -> None:
    at.referee.seat(ADDRESSES)
    answers = [join(stub) for stub in (at.compliance, at.developer, at.adversary)]
    assert [answer.counterpart_address for answer in answers] == ["127.0.0.1:1002", "127.0.0.1:1001", "127.0.0.1:1002"]
    assert all((answer.turn, answer.scenario_digest) == (game.TURN_UNSPECIFIED, "digest") for answer in answers)


def test_a_waiting_party_is_let_in_the_moment_the_addresses_are_known(
    at: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sim.games.table._WAIT_SECONDS", 30.0)
    waiting = at.developer.Join.future(game.JoinRequest(protocol_version=PROTOCOL_VERSION), timeout=300)
    at.referee.seat(ADDRESSES)
    assert waiting.result().counterpart_address == "127.0.0.1:1001"


@pytest.mark.parametrize("version", [0, PROTOCOL_VERSION + 1])
def test_a_party_that_speaks_another_version_stays_outside(at: Table, version: int) -> None:
    at.referee.seat(ADDRESSES)
    assert refusal(lambda: join(at.developer, version)) == error.REASON_PROTOCOL_VERSION


def test_who_asks_for_a_deal_is_told_to_wait_and_in_the_end_to_leave(at: Table) -> None:
    parties = ("compliance", "developer", "adversary")
    assert [[part.turn for part in take(party, at)] for party in parties] == [[game.TURN_WAIT]] * 3
    at.referee.table.finish()
    assert [[part.turn for part in take(party, at)] for party in parties] == [[game.TURN_OVER]] * 3


# A trial.


def test_a_trial_played_by_hand_ends_with_what_was_submitted(at: Table, play: Play, dealt: RevealDeal) -> None:
    outcome = play(dealt)
    take("compliance", at)
    assert not serve_trial(at)
    take("developer", at)
    guess = np.arange(PEOPLE) % 2
    submit_reveal(
        at,
        guess=to_message(guess.astype(np.uint8)),
        reconstruction=to_message(guess / 7),
        confidence=to_message(guess / 2),
        queries=1,
        size_queries=1,
        accuracy_models=to_message(np.array([0.5])),
        guess_from_answers=to_message(np.zeros(PEOPLE, np.uint8)),
    )
    assert not serve_trial(at)
    release(at)
    take("adversary", at)
    submit_loss_test(at, 0.75, 0.5)
    assert serve_trial(at)
    size = audit(request_id="size-1", exact=to_message(np.array([0.125])), released=to_message(np.array([0.25])))
    metric = audit(request_id="metric-2", exact=to_message(np.array([0.5])), released=to_message(np.array([0.4])))
    report(at, size, metric)
    result = outcome.result(5)
    assert result.reveal.guess.tolist() == guess.tolist()
    assert result.reveal.baseline.tolist() == [1] * PEOPLE
    assert result.reveal.targeted.tolist() == [True] * PEOPLE
    assert result.reveal.accuracy_models.tolist() == [0.5]
    assert result.reveal.guess_from_answers is not None
    assert result.reveal.guess_from_answers.tolist() == [0] * PEOPLE
    assert result.reveal.reconstruction is not None
    assert result.reveal.reconstruction.tolist() == (guess / 7).tolist()
    assert result.reveal.confidence is not None
    assert result.reveal.confidence.tolist() == (guess / 2).tolist()
    assert (result.reveal.queries, result.reveal.size_queries, result.reveal.polarity_known) == (1, 1, True)
    audits = [(each.request_id, each.metric, each.exact.tolist(), each.released.tolist()) for each in result.audits]
    assert audits == [("size-1", "sp", [0.125], [0.25]), ("metric-2", "sp", [0.5], [0.4])]
    assert result.epsilon_spent == 1.0
    assert result.loss_test is not None
    assert (result.loss_test.accuracy_advantaged, result.loss_test.accuracy_disadvantaged) == (0.75, 0.5)


def test_a_trial_without_an_adversary_ends_with_the_reveal(at: Table, play: Play, table: Path) -> None:
    outcome = play(draw(table))
    assert not serve_trial(at)
    assert not take("developer", at)[0].deal.release_model
    submit_reveal(at)
    assert [part.turn for part in take("adversary", at)] == [game.TURN_WAIT]
    assert serve_trial(at)
    report(at, spent=math.inf)
    assert outcome.result(5).loss_test is None
    assert outcome.result(5).epsilon_spent == math.inf
    assert outcome.result(5).reveal.reconstruction is None


def test_the_developer_is_dealt_in_once_compliance_serves_and_the_adversary_once_the_model_is_out(
    at: Table, play: Play, dealt: RevealDeal
) -> None:
    play(dealt)
    assert [part.turn for part in take("developer", at)] == [game.TURN_WAIT]
    serve_trial(at)
    assert take("developer", at)[0].deal.release_model
    submit_reveal(at)
    assert [part.turn for part in take("adversary", at)] == [game.TURN_WAIT]
    release(at)
    assert take("adversary", at)[0].deal.attack == "loss-test"


def test_a_deal_is_not_dealt_to_the_same_party_twice_unless_it_missed_it(
    at: Table, play: Play, dealt: RevealDeal
) -> None:
    play(dealt)
    first = take("compliance", at)
    assert take("compliance", at) == first
    assert [part.turn for part in take("compliance", at, after="deal-1")] == [game.TURN_WAIT]


def test_an_aborted_trial_fails_for_the_first_reason_given(at: Table, play: Play, dealt: RevealDeal) -> None:
    outcome = play(dealt)
    at.referee.table.abort("developer was killed")
    at.referee.table.abort("compliance was killed")
    with pytest.raises(TrialFailed, match=r"^developer was killed$"):
        outcome.result(5)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("done", "missing"),
    [
        ((), "compliance and developer and adversary"),
        ((serve_trial,), "developer and adversary"),
        # The adversary is waiting for a model that the developer has not released.
        ((serve_trial, submit_reveal), "developer"),
        ((serve_trial, submit_reveal, release), "adversary"),
        ((serve_trial, submit_reveal, release, submit_loss_test), "compliance"),
    ],
    ids=["nobody moved", "served", "revealed", "released", "tested"],
)
def test_a_trial_that_is_not_finished_in_time_names_who_is_missing(
    at: Table,
    play: Play,
    dealt: RevealDeal,
    done: tuple[Callable[[Table], object], ...],
    missing: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The trial's half second is over when the test says so, however long the parties' calls take.
    table, is_late = at.referee.table, threading.Event()
    wait_for = table._changed.wait_for

    def wait(ready: Callable[[], object], seconds: float) -> object:
        if seconds != 0.5:
            return wait_for(ready, seconds)
        wait_for(lambda: ready() or is_late.is_set(), 300)
        return ready()

    monkeypatch.setattr(table._changed, "wait_for", wait)
    outcome = play(dealt, 0.5)
    for submit in done:
        submit(at)
    with table.changing():
        is_late.set()
    with pytest.raises(TrialFailed) as failed:
        outcome.result(300)
    assert str(failed.value) == f"{missing} did not finish the trial within 0.5 s"


# What does not fit, or comes out of turn.


def test_what_is_about_another_deal_is_out_of_turn(at: Table, play: Play, dealt: RevealDeal) -> None:
    submissions: tuple[Callable[[], object], ...] = (
        lambda: serve_trial(at, "deal-2"),
        lambda: submit_reveal(at, deal_id="deal-2"),
        lambda: at.developer.ReleaseModel(reveal_pb2.ReleaseModelRequest(deal_id="deal-2"), timeout=300),
        lambda: submit_loss_test(at, deal_id="deal-2"),
        lambda: report(at, deal_id="deal-2"),
    )
    assert [refusal(submit) for submit in submissions] == [error.REASON_OUT_OF_TURN] * 5
    play(dealt)
    assert [refusal(submit) for submit in submissions] == [error.REASON_OUT_OF_TURN] * 5


def test_what_comes_before_its_turn_is_out_of_turn(at: Table, play: Play, dealt: RevealDeal) -> None:
    """A reveal before compliance serves, a model before the guess, a loss test before the model, a report before it."""
    play(dealt)
    assert refusal(lambda: submit_reveal(at)) == error.REASON_OUT_OF_TURN
    serve_trial(at)
    assert refusal(lambda: release(at)) == error.REASON_OUT_OF_TURN
    assert refusal(lambda: report(at)) == error.REASON_OUT_OF_TURN
    submit_reveal(at)
    assert refusal(lambda: submit_loss_test(at)) == error.REASON_OUT_OF_TURN
    assert refusal(lambda: report(at)) == error.REASON_OUT_OF_TURN


def test_who_is_not_dealt_in_is_out_of_turn(at: Table, play: Play, table: Path) -> None:
    play(draw(table))
    serve_trial(at)
    assert refusal(lambda: submit_loss_test(at)) == error.REASON_OUT_OF_TURN
    submit_reveal(at)
    assert refusal(lambda: release(at)) == error.REASON_OUT_OF_TURN


def test_a_guess_once_submitted_may_be_sent_again_but_not_changed(at: Table, play: Play, dealt: RevealDeal) -> None:
    play(dealt)
    serve_trial(at)
    submit_reveal(at)
    submit_reveal(at)
    other = to_message(np.zeros(PEOPLE, np.uint8))
    assert refusal(lambda: submit_reveal(at, guess=other)) == error.REASON_OUT_OF_TURN


def guesses(values: Any, kind: str = "u1") -> array_pb2.Array:
    return to_message(np.asarray(values, kind))


def claiming(*shape: int) -> array_pb2.Array:
    """An array whose header says more than its bytes hold."""
    header = array_pb2.ArrayHeader(element_type=array_pb2.ELEMENT_TYPE_UINT8, shape=shape)
    return array_pb2.Array(header=header, data=b"\1" * PEOPLE)


BAD_GUESSES = {
    "nobody": guesses([]),
    "nothing": array_pb2.Array(),
    "one too few": guesses([1] * (PEOPLE - 1)),
    "one too many": guesses([1] * (PEOPLE + 1)),
    "two axes": guesses([[1] * PEOPLE]),
    "a 2": guesses([2] + [0] * (PEOPLE - 1)),
    "a 255": guesses([255] * PEOPLE),
    "of floats": guesses([1] * PEOPLE, "f8"),
    "bytes missing": claiming(2 * PEOPLE),
    "bytes left over": claiming(PEOPLE // 2),
    "an empty axis beside an endless one": array_pb2.Array(
        header=array_pb2.ArrayHeader(element_type=array_pb2.ELEMENT_TYPE_UINT8, shape=(0, 2**63))
    ),
}


@pytest.mark.parametrize("field", ["baseline", "guess", "targeted"])
def test_what_is_no_guess_is_refused_and_a_right_one_taken(
    at: Table, play: Play, dealt: RevealDeal, field: str
) -> None:
    play(dealt)
    serve_trial(at)
    for what, guess in BAD_GUESSES.items():
        submit = lambda guess=guess: submit_reveal(at, **{field: guess})  # noqa: E731
        assert refusal(submit) == error.REASON_SUBMISSION_INVALID, what
    submit_reveal(at)


def test_numbers_that_cannot_be_are_refused(at: Table, play: Play, dealt: RevealDeal) -> None:
    play(dealt)
    serve_trial(at)
    impossible: tuple[dict[str, Any], ...] = (
        {"reconstruction": guesses([0.0] * (PEOPLE - 1), "f8")},
        {"reconstruction": guesses([0.0] * PEOPLE, "f4")},
        {"reconstruction": guesses([math.nan] * PEOPLE, "f8")},
        {"confidence": guesses([math.nan] * PEOPLE, "f8")},
        {"accuracy_base": math.nan},
        {"accuracy_base": 1.5},
        {"accuracy_models": to_message(np.array([0.5, -0.1]))},
        {"accuracy_models": to_message(np.array([0.5, math.nan]))},
        {"accuracy_models": to_message(np.array([0.5]))},
        {"max_prediction_change": math.inf},
        {"max_prediction_change": -0.1},
    )
    for changes in impossible:
        submit = lambda changes=changes: submit_reveal(at, **changes)  # noqa: E731
        assert refusal(submit) == error.REASON_SUBMISSION_INVALID, changes


def test_a_share_outside_0_and_1_is_refused(at: Table, play: Play, dealt: RevealDeal) -> None:
    play(dealt)
    serve_trial(at)
    submit_reveal(at)
    release(at)
    for share in (math.nan, -0.1, 1.1, math.inf):
        for shares in ((share, 0.5), (0.5, share)):
            submit = lambda shares=shares: submit_loss_test(at, *shares)  # noqa: E731
            assert refusal(submit) == error.REASON_SUBMISSION_INVALID, shares
    submit_loss_test(at)


def test_a_report_that_does_not_fit_is_refused_and_a_right_one_taken(at: Table, play: Play, dealt: RevealDeal) -> None:
    outcome = play(dealt)
    serve_trial(at)
    submit_reveal(at)
    release(at)
    submit_loss_test(at)
    unfit = (
        (audit(exact=guesses([0, 1])), 1.0),
        (audit(released=guesses([[0.0, 1.0]], "f8")), 1.0),
        (audit(exact=array_pb2.Array()), 1.0),
        (audit(released=guesses([0.0], "f8")), 1.0),
        (audit(exact=guesses([math.nan, 0.0], "f8")), 1.0),
        (audit(metric=999), 1.0),
        (audit(metric=0), 1.0),
        (audit(), math.nan),
        (audit(), -1.0),
    )
    for record, spent in unfit:
        send = lambda record=record, spent=spent: report(at, record, spent=spent)  # noqa: E731
        assert refusal(send) == error.REASON_SUBMISSION_INVALID, (record, spent)
    for figure in (math.nan, -0.1, 1.1):
        for name in ("utilities", "group_rates"):
            shares = {name: [0.5, figure]}
            assert refusal(lambda shares=shares: report(at, **shares)) == error.REASON_SUBMISSION_INVALID
    report(at)
    assert outcome.result(5).epsilon_spent == 1.0


def test_a_training_table_of_another_name_is_unknown(at: Table, play: Play, dealt: RevealDeal) -> None:
    play(dealt)
    call = lambda: list(  # noqa: E731
        at.developer.GetTrainingTable(reveal_pb2.GetTrainingTableRequest(training_digest="0" * 64), timeout=300)
    )
    assert refusal(call) == error.REASON_DEAL_UNKNOWN


# What each party was dealt, by everything that it received.


@dataclass(frozen=True)
class Hands:
    """Every message that each party received in one trial."""

    compliance: list[Message]
    developer: list[Message]
    adversary: list[Message]
    table: dict[str, NDArray[Any]]


@pytest.fixture
def hands(at: Table, play: Play, dealt: RevealDeal) -> Hands:
    at.referee.seat(ADDRESSES)
    play(dealt)
    compliance = [join(at.compliance), *take("compliance", at)]
    serve_trial(at)
    developer = [join(at.developer), *take("developer", at)]
    request = reveal_pb2.GetTrainingTableRequest(training_digest=developer[1].deal.training_digest)
    training = list(at.developer.GetTrainingTable(request, timeout=300))
    submit_reveal(at)
    release(at)
    adversary = [join(at.adversary), *take("adversary", at)]
    return Hands(compliance, [*developer, *training], adversary, collect(training[0].table, training[1:]))


def test_the_developer_and_the_adversary_receive_no_protected_attribute_in_any_encoding(
    hands: Hands, dealt: RevealDeal
) -> None:
    protected = dealt.compliance.protected
    assert leaks(hands.developer, protected) == []
    assert leaks(hands.adversary, protected) == []
    # The control: the same look finds it where it is.
    assert "u1" in leaks(hands.compliance, protected)
    assert "u1" in leaks(hands.developer, dealt.developer.labels)


def test_no_feature_or_label_that_the_developer_receives_tells_the_groups_apart(
    hands: Hands, dealt: RevealDeal
) -> None:
    deal_message = next(part for part in hands.developer if isinstance(part, reveal_pb2.TakeDeveloperDealResponse))
    cards = collect(
        deal_message.deal,
        [part for part in hands.developer[2:] if isinstance(part, reveal_pb2.TakeDeveloperDealResponse)],
    )
    columns = [*cards["features"].T, cards["labels"]]
    assert len(columns) > 2
    assert [tells_apart(column, dealt.compliance.protected) for column in columns] == [False] * len(columns)
    assert tells_apart(7.0 - dealt.compliance.protected, dealt.compliance.protected)


def tells_apart(column: NDArray[Any], protected: NDArray[np.uint8]) -> bool:
    return not set(column[protected == 0].tolist()) & set(column[protected == 1].tolist()) and len(set(column)) == 2


def test_no_row_is_in_two_hands_but_the_test_set_s(hands: Hands, dealt: RevealDeal) -> None:
    sample = collect(hands.adversary[1].deal, hands.adversary[2:])  # type: ignore[attr-defined]
    parts = [dealt.developer.features, hands.table["features"], sample["features"]]
    rows = [row.tobytes() for part in parts for row in part]
    assert len(rows) == PEOPLE + 200 + 20
    assert len(set(rows)) == len(rows)


def test_no_party_receives_another_s_seed(hands: Hands, dealt: RevealDeal) -> None:
    seeds = {"compliance": dealt.compliance.seed, "developer": dealt.developer.seed}
    for party in ("compliance", "developer", "adversary"):
        held = [name for name, seed in seeds.items() if any(seed in each for each in contents(getattr(hands, party)))]
        assert held == [name for name in seeds if name == party]


def test_the_developer_trains_on_the_table_that_its_deal_names(hands: Hands, dealt: RevealDeal) -> None:
    training = dealt.developer.training
    assert training is not None
    assert hands.table["features"].tobytes() == training.features.tobytes()
    assert hands.table["labels"].tobytes() == training.labels.tobytes()


def test_compliance_receives_labels_and_attributes_but_no_features(hands: Hands, dealt: RevealDeal) -> None:
    deal_message: Any = hands.compliance[1]
    cards = collect(deal_message.deal, hands.compliance[2:])  # type: ignore[arg-type]
    assert cards.keys() == {"labels", "protected"}
    assert cards["labels"].tolist() == dealt.developer.labels.tolist()
    assert cards["protected"].tolist() == dealt.compliance.protected.tolist()


def test_a_developer_that_hides_a_query_is_found_out(at: Table, play: Play, table: Path) -> None:
    outcome = play(draw(table))
    assert not serve_trial(at)
    submit_reveal(at, queries=1, accuracy_models=to_message(np.array([0.5])))
    report(at)
    with pytest.raises(TrialFailed, match="developer says that it asked 1 queries, compliance that it answered 2"):
        outcome.result(5)


@pytest.mark.parametrize(
    ("request_id", "said"),
    [
        ("metric-1", "developer says that it asked 1 size queries, by the requests' ids it was 0"),
        ("size-1", "developer says that it asked 1 size queries, by the requests' ids it was 2"),
        ("request-1", "request id 'request-1' does not name its kind, as size-1 does: one of look, metric"),
    ],
)
def test_a_developer_that_miscounts_its_size_queries_is_found_out(
    at: Table, play: Play, table: Path, request_id: str, said: str
) -> None:
    outcome = play(draw(table))
    assert not serve_trial(at)
    submit_reveal(at, queries=1, size_queries=1, accuracy_models=to_message(np.array([0.5])))
    report(at, audit(request_id=request_id))
    with pytest.raises(TrialFailed, match=said):
        outcome.result(5)


# A test set that the developer is not given.


def hands_of_hidden(at: Table, play: Play, dealt: RevealDeal) -> tuple[list[Any], list[Any]]:
    """What compliance and the developer are dealt, the developer's training table included."""
    play(dealt)
    compliance = take("compliance", at)
    serve_trial(at)
    developer = take("developer", at)
    request = reveal_pb2.GetTrainingTableRequest(training_digest=developer[0].deal.training_digest)
    return compliance, [*developer, *at.developer.GetTrainingTable(request, timeout=300)]


def test_a_hidden_test_set_is_dealt_to_compliance_and_nothing_of_it_to_the_developer(
    at: Table, play: Play, table: Path
) -> None:
    open_deal, hidden = draw(table), draw(table, hidden=True)
    compliance, developer = hands_of_hidden(at, play, hidden)
    cards = collect(compliance[0].deal, compliance[1:])
    # The same people as without the key.
    assert cards["features"].tobytes() == open_deal.developer.features.tobytes()
    assert cards["labels"].tobytes() == open_deal.developer.labels.tobytes()
    assert (hidden.developer.features, hidden.developer.labels) == (None, None)
    deal_message = developer[0].deal
    assert not deal_message.HasField("features")
    assert not deal_message.HasField("labels")
    received = b"".join(contents(developer))
    rows = [row.tobytes() for row in cards["features"]]
    assert [row for row in rows if row in received] == []
    assert leaks(developer, cards["labels"]) == []
    # The control: the same look finds both where they are.
    held = b"".join(contents(compliance))
    assert all(row in held for row in rows)
    assert "u1" in leaks(compliance, cards["labels"])


def test_accuracies_are_told_by_whoever_has_labels_and_by_nobody_else(at: Table, play: Play, table: Path) -> None:
    outcome = play(draw(table, hidden=True))
    serve_trial(at)
    assert refusal(lambda: submit_reveal(at)) == error.REASON_SUBMISSION_INVALID
    assert refusal(lambda: submit_reveal(at, accuracy_base=None)) == error.REASON_SUBMISSION_INVALID
    assert refusal(lambda: submit_reveal(at, accuracy_models=None)) == error.REASON_SUBMISSION_INVALID
    submit_reveal(at, accuracy_base=None, accuracy_models=None)
    assert serve_trial(at)
    report(at)
    revealed = outcome.result(5).reveal
    assert (revealed.accuracy_base, revealed.accuracy_models) == (None, None)


def test_a_developer_with_labels_has_to_tell_its_accuracies(at: Table, play: Play, dealt: RevealDeal) -> None:
    play(dealt)
    serve_trial(at)
    assert refusal(lambda: submit_reveal(at, accuracy_base=None)) == error.REASON_SUBMISSION_INVALID
    assert refusal(lambda: submit_reveal(at, accuracy_models=None)) == error.REASON_SUBMISSION_INVALID
