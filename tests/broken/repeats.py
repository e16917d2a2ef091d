"""Servers that answer a repeated request anew, charge it again, or refuse it."""

import secrets
import sys
import time
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np

from compliance.answers import audit_service, audits
from compliance.answers.audits import AuditCase
from compliance.answers.groups import GroupCase, released
from compliance.ledger import Ledger
from compliance.ledger.entries import Reply
from compliance.noise.sampling import System
from fairwall.rpc import fair_use
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from tests.broken import broken


def _counted(grouped, header, predictions):
    """Count people by group anew."""
    return Reply(released(grouped.people, header, predictions, System()).SerializeToString(deterministic=True))


@broken("C301", "Draws new noise when a request is sent again.")
def fresh_noise_on_repeat():
    def settle(self, request, answer, *how, sound=Ledger.settle, **room):
        entry = sound(self, request, answer, *how, **room)
        return replace(entry, reply=answer(()))

    Ledger.settle = settle


@broken("C301", "Charges a request again when it is sent again.")
def charges_repeats():
    sound = Ledger.settle

    def settle(self, request, answer, *how, **room):
        with self._held(request.dataset) as held:
            repeated = self._find(held, request) is not None
        entry = sound(self, request, answer, *how, **room)
        if repeated:
            other = replace(request, request_id=f"{request.request_id[:40]}~{secrets.token_hex(4)}")
            sound(self, other, answer, *how, **room)
        return entry

    Ledger.settle = settle


@broken("C301", "Charges a release again when it is asked for again.")
def charges_repeats_of_releases():
    def settle(self, request, answer, *how, sound=Ledger.settle, **room):
        with self._held(request.dataset) as held:
            is_known = self._find(held, request) is not None
        entry = sound(self, request, answer, *how, **room)
        if is_known and request.metric == "release":
            other = replace(request, request_id=f"{request.request_id}~{secrets.token_hex(4)}")
            sound(self, other, answer, *how, **room)
        return entry

    Ledger.settle = settle


@broken("C952", "Counts people by group anew when it is asked again.")
def counts_by_group_anew():
    settle = GroupCase.answer

    def anew(grouped, developer, request_id, digest, header, predictions):
        entry = settle(grouped, developer, request_id, digest, header, predictions)
        return replace(entry, reply=_counted(grouped, header, predictions))

    GroupCase.answer = anew


@broken("C305", "Draws counts by group twice where they are asked for twice at the same time.")
def counts_twice_at_once():
    sound, kept = GroupCase.answer, {}

    def settle(grouped, developer, request_id, digest, header, predictions):
        known = kept.get((developer, request_id))
        with fair_use.waiting():
            time.sleep(0.05)
        entry = sound(grouped, developer, request_id, digest, header, predictions)
        if known is None:
            kept[developer, request_id] = known = _counted(grouped, header, predictions)
        return replace(entry, reply=known)

    GroupCase.answer = settle


@broken("C308", "Keeps counts by group in memory, and draws them anew once it was started again.")
def forgets_counts_at_a_restart():
    sound, kept = GroupCase.answer, {}

    def settle(grouped, developer, request_id, digest, header, predictions):
        entry = sound(grouped, developer, request_id, digest, header, predictions)
        if (developer, request_id) not in kept:
            kept[developer, request_id] = _counted(grouped, header, predictions)
        return replace(entry, reply=kept[developer, request_id])

    GroupCase.answer = settle


@broken("C306", "Remembers the last hundred answers, and sells the others again.")
def forgets_answers():
    sound, remembered, numbers = AuditCase.answer, {}, count()

    def settle(self, developer, request_id, *rest, **named):
        key = (developer, request_id)
        if key not in remembered:
            remembered[key] = f"{request_id[:50]}~{next(numbers)}"
            while len(remembered) > 100:
                remembered.pop(next(iter(remembered)))
        return sound(self, developer, remembered[key], *rest, **named)

    AuditCase.answer = settle


@broken("C739", "Remembers for a minute what it has answered.")
def forgets_answers_after_a_minute():
    sound = Ledger.settle
    first = {}

    def settle(self, request, answer, *how, **room):
        age = time.monotonic() - first.setdefault((request.developer, request.digest), time.monotonic())
        if age > 60:
            request = replace(request, request_id=request.request_id + "'")
        return sound(self, request, answer, *how, **room)

    Ledger.settle = settle


@broken("C750", "Takes a request of another day for another request.")
def forgets_answers_of_yesterday():
    sound = Ledger.settle

    def settle(self, request, answer, *how, **room):
        with self._held(request.dataset) as held:
            found = self._find(held, request)
        if found and found.time < time.time() - 86400:
            request = replace(request, request_id=f"{request.request_id}, {time.time() // 86400}")
        return sound(self, request, answer, *how, **room)

    Ledger.settle = settle


@broken("C307", "Looks at the budget before it looks for the stored answer.")
def refuses_repeats_when_spent():
    sound = Ledger.settle

    def settle(self, request, answer, *how, **room):
        with self._held(request.dataset) as held:
            if not held.books.affords(request):
                raise Refusal(error_pb2.REASON_BUDGET_EXHAUSTED)
        return sound(self, request, answer, *how, **room)

    Ledger.settle = settle


@broken("C322", "Keeps answers in float32, and repeats what it kept once it was started again.")
def stores_answers_in_float32():
    policy = Path(sys.argv[sys.argv.index("--policy") + 1])
    known = (policy.parent / "ledger").exists()
    sound = audits._numbers
    audits._numbers = lambda entry: sound(entry).astype(np.float32).astype(float) if known else sound(entry)


@broken("C309", "Tells with a repeat what was left when it was first answered, and not what is left now.")
def tells_old_remainders():
    sound = audit_service._answer

    def settle(*asked, **named):
        answer = sound(*asked, **named)
        answer.ClearField("epsilon_remaining_now")
        return answer

    audit_service._answer = settle
