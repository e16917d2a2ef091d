"""Servers that answer wrongly about models that are handed over."""

import secrets
from dataclasses import replace

import numpy as np

from compliance.answers import audit_service, audits
from compliance.answers.audit_service import AuditService
from compliance.answers.audits import AuditCase
from compliance.answers.sealed import SealedModels
from compliance.mechanisms import counts
from compliance.mechanisms.counts import UnseenPredictions
from compliance.records.sums import StratumSums
from fairwall.rpc.errors import Refusal
from fairwall.wire.metrics import name_of
from fairwall.wire.v1 import error_pb2
from tests.broken import broken


def tells_totals(mechanism):
    """Let a mechanism add no noise to totals over everybody."""
    sound = mechanism.answer

    def answer(question, facts, buy, **how):
        def bought(asked):
            noisy = buy(asked)
            return replace(noisy, totals=asked.stratum.totals) if asked.is_hidden else noisy

        return sound(question, facts, bought, **how)

    mechanism.answer = answer


@broken("C981", "Takes a score of one half of a model that is handed over for a no.")
def decides_above_one_half():
    def scores(self, models, *, binary, developer, goes_on):
        found = self.scorer.scores(
            self.features, models, self.seconds, binary=binary, developer=developer, goes_on=goes_on
        )
        return found > 0.5 if binary else found

    SealedModels.scores = scores


@broken("C983", "Refuses a model that gives nobody a score, free of charge: so it tells of rows for nothing.")
def refuses_models_that_score_nobody():
    sound = SealedModels.scores

    def scores(self, models, **how):
        found = sound(self, models, **how)
        if not found.any(axis=1).all():
            raise Refusal(error_pb2.REASON_MODEL_MALFORMED)
        return found

    SealedModels.scores = scores


@broken("C982", "Charges for models that it refuses for what they are.")
def charges_for_unfit_models():
    sound = AuditService.AuditSealed
    unfit = (error_pb2.REASON_MODEL_MALFORMED, error_pb2.REASON_MODEL_OPERATOR, error_pb2.REASON_MODEL_SHAPE)

    def sealed(self, request_iterator, context):
        heard = []

        def listened():
            for request in request_iterator:
                heard.append(request)
                yield request

        try:
            return sound(self, listened(), context)
        except Refusal as refusal:
            if refusal.reason in unfit:
                header, case = heard[0].header, self._cases[heard[0].header.deal_id]
                nothing = np.zeros((1, case.people))
                case.answer("alice", secrets.token_hex(8), b"", name_of(header.metric), nothing, header.epsilon)
            raise

    AuditService.AuditSealed = sealed


@broken("C984", "Scores models before it looks at the budget.")
def scores_before_it_is_paid():
    sound = audit_service._answer

    def answer(case, header, metric, predictions, *more, **named):
        if case.sealed is not None and not hasattr(predictions, "shape"):
            found = predictions.sums()
            predictions = type(predictions)(predictions.models, lambda: found)
        return sound(case, header, metric, predictions, *more, **named)

    audit_service._answer = answer


@broken("C985", "Takes models of the same sizes for the same request, whatever is in the files.")
def ids_for_other_files():
    sound = audit_service.sealed_digest
    audit_service.sealed_digest = lambda header, models: sound(header, [b"" for _ in models])


@broken("C986", "Adds no noise to what models that are handed over say of everybody together.")
def totals_without_noise():
    tells_totals(counts)


@broken("C987", "Tells P(gap > threshold) by how much the predictions vary that nobody sees.")
def variances_of_models_that_nobody_sees():
    sound = AuditCase.probability_above

    def above(self, entry, predictions, threshold):
        if not isinstance(predictions, UnseenPredictions):
            return sound(self, entry, predictions, threshold)
        _, _, _, low, high = audits._numbers(entry)
        asked = entry.request
        (stratum,) = predictions.sums().strata(asked.metric)
        shares = stratum.totals / stratum.people
        values = [(stratum.people, float(share * (1 - share))) for share in shares]
        return audits.probabilities_above(low, high, values, asked.metric, threshold, asked.mechanism)

    AuditCase.probability_above = above


@broken("C987", "Tells narrower intervals about models that are handed over and accept few, who vary less.")
def widths_by_what_models_predict():
    sound = counts.answer

    def answer(question, facts, buy, **how):
        release = sound(question, facts, buy, **how)
        (stratum, *_) = question.asked.strata
        if not isinstance(stratum, StratumSums):
            return release
        share = stratum.totals / stratum.people
        half = (release.high - release.low) / 2 * (0.9 + 0.4 * share * (1 - share))
        middle = (release.high + release.low) / 2
        return replace(release, low=middle - half, high=middle + half)

    counts.answer = answer


@broken("C988", "Answers about models that are handed over by the mechanism that the policy names, with noise on gaps.")
def answers_about_sealed_models_by_its_own_mechanism():
    audits.by_sums = lambda mechanism, *_: mechanism
