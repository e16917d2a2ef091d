"""Referees that are broken."""

import hashlib
import math
from dataclasses import replace

import numpy as np

from fairwall.game.v1.reveal_service_pb2 import TakeDeveloperDealResponse
from fairwall.rpc import access
from sim.conformance import reference_referee
from sim.games import referee
from sim.games.referee import Referee, deals
from sim.games.reveal import trial as reveal
from tests.broken import broken


def _deals(changed):
    """Let the referee deal what a function makes of each deal."""
    sound = reference_referee.GAME.deal
    reference_referee.GAME = replace(
        reference_referee.GAME, deal=lambda *given, **named: changed(sound(*given, **named))
    )


def _deals_developers(changed):
    """Let the referee deal developers what a function makes of their cards and of the groups."""
    _deals(lambda dealt: replace(dealt, developer=changed(dealt.developer, dealt.compliance.protected)))


def _deals_features(changed):
    """Let the referee deal developers the features that a function makes of them and of the groups."""
    _deals_developers(lambda cards, groups: replace(cards, features=changed(cards.features, groups)))


@broken("R101", "Lets in parties that speak a later version of the protocol.")
def any_version():
    sound = Referee.Join

    def join(self, request, context):
        request.protocol_version = 2
        return sound(self, request, context)

    Referee.Join = join


@broken("R102", "Deals the protected attributes to whoever asks for them.")
def deals_compliance_cards_to_all():
    access.CALLERS["/fairwall.game.v1.RefereeService/TakeComplianceDeal"] = access.PARTIES_OF_A_RUN


@broken("R104", "Takes a guess before compliance serves the trial.")
def any_turn():
    sound = reveal.RevealDealer.SubmitReveal

    def submit(self, request, context):
        with self.table.changing():
            self.table.playing(reveal._RevealTrial, request.deal_id).served = True
        return sound(self, request, context)

    reveal.RevealDealer.SubmitReveal = submit


@broken("R105", "Takes a guess that is none.")
def takes_any_guess():
    reveal.take_guess = lambda _, shape: np.ones(shape, np.uint8)


@broken("R108", "Takes another guess in place of the first.")
def takes_a_second_guess():
    sound = reveal.RevealDealer.SubmitReveal

    def submit(self, request, context):
        with self.table.changing():
            self.table.playing(reveal._RevealTrial, request.deal_id).request = None
        return sound(self, request, context)

    reveal.RevealDealer.SubmitReveal = submit


@broken("R108", "Takes a report that spent what is no number.")
def takes_any_report():
    sound = Referee.SubmitAuditReport

    def submit(self, request, context):
        if math.isnan(request.epsilon_spent):
            request.epsilon_spent = 0
        return sound(self, request, context)

    Referee.SubmitAuditReport = submit


@broken("R108", "Takes an accuracy that is no number.")
def takes_what_is_no_number():
    def accuracies(request, *, labelled):
        return request.accuracy_base, reveal.take_numbers(request.accuracy_models, request.queries, finite=False)

    reveal._accuracies = accuracies


@broken("R106", "Deals another order of the people to who asks again.")
def deals_anew_when_asked_again():
    sound = referee.chunks_of
    asked = []

    def chunks(array):
        asked.append(1)
        return sound(np.roll(array, len(asked) // 3, axis=0))

    referee.chunks_of = chunks


@broken("R107", "Deals the first trial's people in the second one too.")
def deals_the_same_again():
    sound = reference_referee.GAME.deal
    reference_referee.GAME = replace(
        reference_referee.GAME, deal=lambda cell, _, *rest, **named: sound(cell, 0, *rest, **named)
    )


@broken("R107", "Deals the second trial's compliance the first one's seed.")
def keeps_seeds_for_the_next_trial():
    first = {}

    def changed(dealt):
        seed = first.setdefault("seed", dealt.compliance.seed)
        return replace(dealt, compliance=replace(dealt.compliance, seed=seed))

    _deals(changed)


@broken("R106", "Deals every party the same seed.")
def one_seed_for_all():
    _deals(lambda dealt: replace(dealt, developer=replace(dealt.developer, seed=dealt.compliance.seed)))


@broken("R106", "Makes one seed of the other by a constant.")
def seed_xor():
    def changed(dealt):
        seed = bytes(b ^ 0x5A for b in dealt.compliance.seed)
        return replace(dealt, developer=replace(dealt.developer, seed=seed))

    _deals(changed)


@broken("R106", "Makes compliance's seed of the developer's.")
def seeds_from_one_another():
    def changed(dealt):
        seed = hashlib.sha256(dealt.developer.seed + b"compliance").digest()
        return replace(dealt, compliance=replace(dealt.compliance, seed=seed))

    _deals(changed)


@broken("R106", "Makes seeds of the deal's name.")
def seeds_from_the_deal():
    def changed(dealt):
        seed = hashlib.sha256(f"{dealt.deal_id}/compliance".encode()).digest()
        return replace(dealt, compliance=replace(dealt.compliance, seed=seed))

    _deals(changed)


@broken("R106", "Deals the groups for labels.")
def labels_are_groups():
    _deals_developers(lambda cards, groups: replace(cards, labels=groups))


@broken("R106", "Leaves the group among the features, scaled.")
def deals_the_group_as_a_feature():
    _deals_features(lambda features, groups: np.column_stack([features, (groups - groups.mean()) / groups.std()]))


@broken("R106", "Adds noise to the group, and deals the noise beside it.")
def deals_the_group_in_two_columns():
    def changed(features, groups):
        noise = np.random.default_rng().normal(size=len(groups)) * 10
        return np.column_stack([features, groups + noise, noise])

    _deals_features(changed)


@broken("R106", "Deals each group's indicator, times a random number.")
def group_one_hot():
    def changed(features, groups):
        r = np.random.default_rng().random(len(groups))
        return np.column_stack([features, groups * r, (1 - groups) * r])

    _deals_features(changed)


@broken("R106", "Hides the group in the last bit of a feature.")
def deals_the_group_in_the_last_bit():
    def changed(features, groups):
        features = np.ascontiguousarray(features)
        bits = features.view(np.uint64)
        bits[:, 0] = (bits[:, 0] & ~np.uint64(1)) | groups
        return features

    _deals_features(changed)


@broken("R106", "Deals people in the order of their groups.")
def deals_people_in_the_order_of_groups():
    def changed(dealt):
        cards, groups = dealt.developer, dealt.compliance.protected
        order = np.argsort(groups, kind="stable")
        developer = replace(cards, features=cards.features[order], labels=cards.labels[order])
        compliance = replace(dealt.compliance, labels=dealt.compliance.labels[order], protected=groups[order])
        return replace(dealt, developer=developer, compliance=compliance)

    _deals(changed)


@broken("R106", "Tells how many people are disadvantaged.")
def tells_how_many():
    _deals_developers(lambda cards, groups: replace(cards, disadvantaged=(int((groups == 0).sum()),)))


@broken("R106", "Tells how many people are disadvantaged in a number that means something else.")
def tells_how_many_in_a_perturbation():
    def deal(trial):
        told, arrays = reveal._developer_deal(trial)
        told.public_disadvantaged_rows = int((trial.deal.compliance.protected == 0).sum())
        return told, arrays

    reveal.RevealDealer.TakeDeveloperDeal = deals(TakeDeveloperDealResponse, deal, lambda trial: trial.served)
