"""Servers that confuse gaps by several protected columns."""

import copy
import secrets
from dataclasses import replace

import numpy as np

from compliance import ledger
from compliance.answers import audit_service, audits
from compliance.answers.audits import AuditCase
from compliance.deployment.policy import loading
from compliance.mechanisms import cells
from compliance.mechanisms.mechanism import MechanismAnswer
from compliance.mechanisms.noise_on_gaps import LaplaceMechanism
from compliance.noise.sampling import System, noise_for
from compliance.records.people import Records
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from tests.broken import broken


@broken("C225", "Answers by its own column whatever column gaps are asked for by.")
def answers_by_any_column():
    AuditCase.by = lambda self, _: self


@broken("C961", "Answers by the first protected column, whichever of its own is asked for.")
def answers_by_the_first_column():
    sound = AuditCase.by

    def by(case, column):
        sound(case, column)
        return case

    AuditCase.by = by


@broken("C961", "Answers by the last protected column where a request names none.")
def takes_the_last_column_for_the_first():
    sound = AuditCase.by
    AuditCase.by = lambda case, column: sound(case, column or [case.protected, *case.others][-1])


@broken("C965", "Takes a protected column's name with a blank behind it, or in capitals, for the name.")
def reads_columns_loosely():
    sound = AuditCase.by
    AuditCase.by = lambda case, column: sound(case, column.strip().lower())


@broken("C961", "Leaves out of an answer by which protected column it is.")
def tells_no_column():
    sound = audit_service._answer

    def answer(*asked, **named):
        response = sound(*asked, **named)
        response.ClearField("by")
        return response

    audit_service._answer = answer


@broken("C962", "Charges gaps by each protected column to an account of its own.")
def an_account_for_each_column():
    sound = AuditCase.answer

    def settle(case, developer, *asked, **named):
        if case.bought_under:
            share = case.ledger.standing(case.dataset, developer).budget.epsilon
            developer = f"{developer}-{case.protected}"
            case.ledger.allocate(case.dataset, developer, share)
        return sound(case, developer, *asked, **named)

    AuditCase.answer = settle


@broken("C965", "Charges a request that it refuses for its column.")
def charges_for_unknown_columns():
    sound = AuditCase.by

    def by(case, column):
        try:
            return sound(case, column)
        except Refusal:
            nothing = np.zeros((1, case.records.people))
            case.answer("alice", secrets.token_hex(8), b"", "sp", nothing, 1.0)
            raise

    AuditCase.by = by


@broken("C963", "Answers gaps by another protected column under a used id.")
def ids_for_other_columns():
    sound = audit_service.audit_digest

    def digest(header, predictions):
        plain = copy.deepcopy(header)
        plain.ClearField("by")
        return sound(plain, predictions)

    audit_service.audit_digest = digest


@broken(
    "C964",
    "Keeps in memory alone by which protected column a request was, and takes another for a repeat after a restart.",
)
def keeps_columns_of_ids_in_memory():
    sound, asked = audit_service.audit_digest, {}

    def digest(header, predictions):
        if asked.setdefault(header.request_id, header.by) != header.by:
            raise Refusal(error_pb2.REASON_REQUEST_ID_REUSED)
        plain = copy.deepcopy(header)
        plain.ClearField("by")
        return sound(plain, predictions)

    audit_service.audit_digest = digest


@broken("C968", "Goes on from a ledger whose first protected column is another one.")
def any_first_column():
    sound = ledger._check_account
    ledger._check_account = lambda account, held: sound(replace(account, data=b""), held)


@broken("C967", "Serves groups that are smaller than the policy says, by any protected column but the first.")
def checks_groups_of_the_first_column():
    sound = loading._records

    def records(policy, table, split):
        if split == policy.data.splits[0]:
            return sound(policy, table, split)
        loose = policy.model_copy(update={"data": policy.data.model_copy(update={"minimum_group": 1})})
        found = sound(loose, table, split)
        return Records.imagined(found.labels, found.protected, found.metrics, policy.data.minimum_group)

    loading._records = records


@broken("C966", "Answers by one protected column from the cells that were bought by another.")
def cells_of_one_column_for_all():
    write, read = audits._encode, audits.facts_of

    audits._encode = lambda facts, *_, **__: write(facts)
    audits.facts_of = lambda purchases, *_, **__: read(purchases)


@broken(
    "C970",
    "Puts the opposite of the noise on an account's cells on those that it buys next, by another protected column.",
)
def cells_of_opposite_noise():
    sound, drawn = cells._buy, {}

    def buy(question, facts, epsilon, noise, limit, besides):
        bought = sound(question, facts, epsilon, noise, limit, besides)
        if not isinstance(noise, System) or "cells.0.of" not in bought:
            return bought
        of, counted = bought["cells.0.of"], bought["cells.0.counts"]
        exact = np.bincount(of[question.records.protected == 0], minlength=len(counted))
        before = drawn.pop(len(counted), None)
        if before is None:
            drawn[len(counted)] = counted[:, 0] - exact
        else:
            counted[:, 0] = exact - before
        return bought

    cells._buy = buy


@broken("C969", "Gives a batch by another protected column the opposite of the noise that it had by the first.")
def opposite_noise_by_another_column():
    sound, drawn = LaplaceMechanism.release, {}

    def release(self, question, facts, epsilon, delta, noise):
        found = sound(self, question, facts, epsilon, delta, noise)
        key, gaps = (question.metric, epsilon, question.predictions.tobytes()), question.gaps()
        if key not in drawn:
            drawn[key] = found.values - gaps
            return found
        values, reach = np.rint((gaps - drawn.pop(key)) * 2.0**20) / 2.0**20, (found.high - found.low) / 2
        return MechanismAnswer(values, low=values - reach, high=values + reach)

    LaplaceMechanism.release = release


@broken("C970", "Makes the noise a function of a key and of the request id, whichever developer has chosen it.")
def noise_of_an_id_for_all_developers():
    key = secrets.token_bytes(32)
    AuditCase._noise = lambda self, request: noise_for(key, f"{self.protected} {request.request_id}")
