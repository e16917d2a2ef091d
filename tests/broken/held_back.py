"""Servers that were broken after the checks had been written."""

import contextlib
import hashlib
import hmac
import os
import sys
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import grpc
import numpy as np

from compliance import ledger
from compliance.answers import audit_service
from compliance.answers.audits import AuditCase
from compliance.ledger import accountant
from compliance.ledger.accountant import Rule
from compliance.mechanisms.mechanism import BatchQuestion
from compliance.mechanisms.noise_on_gaps import LaplaceMechanism
from compliance.noise.sampling import Seeded, System, step_for
from compliance.records.people import Records
from fairwall.compliance.v1.audit_service_pb2 import AuditRequest
from fairwall.rpc import arrays, identity, server
from fairwall.rpc.errors import Refusal
from fairwall.rpc.identity import identify
from fairwall.wire.v1 import error_pb2
from fairwall.wire.v1.array_pb2 import ELEMENT_TYPE_FLOAT32
from tests.broken import broken
from tests.broken.ledger import writes_later


@broken("C201", "Looks for NaN in float64 predictions alone.")
def trusts_float32():
    sound, checked = audit_service._receive, audit_service._checked

    def receive(header, metric, requests, case):
        trusted = header.predictions.element_type == ELEMENT_TYPE_FLOAT32
        audit_service._checked = (
            (lambda metric, found: checked(metric, np.nan_to_num(found, posinf=1))) if trusted else checked
        )
        return sound(header, metric, requests, case)

    audit_service._receive = receive


@broken("C116", "Decodes a URI before it reads it.")
def decodes_names():
    sound = identity._only_caller
    identity._only_caller = lambda names: sound(map(unquote, names))


@broken("C717", "Uses up the id of a call that was cancelled.")
def ids_used_by_broken_calls():
    sound = audit_service.AuditService.Audit
    used = {}

    def audit(self, request_iterator, context):
        header = arrays.first_header(request_iterator)

        def again():
            yield AuditRequest(header=header)
            yield from request_iterator

        if header.request_id in used:
            raise Refusal(error_pb2.REASON_REQUEST_ID_REUSED)
        try:
            return sound(self, again(), context)
        except grpc.RpcError:
            used[header.request_id] = 1
            raise

    audit_service.AuditService.Audit = audit


@broken("C721", "Gives the room of a call that broke off back twice.")
def gives_room_back_twice():
    sound, init = server._Gate._admitted, server._Gate.__init__

    def begin(self, *args, **kwargs):
        init(self, *args, **kwargs)
        self._places = {
            caller: replace(place, room=threading.Semaphore(server.CALLS_PER_CALLER))
            for caller, place in self._places.items()
        }

    @contextlib.contextmanager
    def admitted(self, context, check):
        try:
            with sound(self, context, check) as meter:
                yield meter
        except grpc.RpcError:
            self._places[identify(context)].room.release()
            raise

    server._Gate.__init__, server._Gate._admitted = begin, admitted


@broken("C404", "Answers first and writes the charge down a little later.")
def charges_later():
    writes_later(5)


@broken("C734", "Makes do with a ledger that lacks its last record.")
def takes_a_copy_of_yesterday():
    sound = ledger._check_seal

    def check(seal, books):
        sealed = seal.read()
        if sealed and sealed.sequence == books.head.sequence + 1:
            seal.begin(books.head)
        sound(seal, books)

    ledger._check_seal = check


@broken("C434", "Charges a series of Gaussian noises what the largest of them costs.")
def tight_is_the_largest():
    sound = accountant._RULES[Rule.TIGHT]

    def tight(losses, delta, limit):
        return sound({loss: (count + 1) // 2 for loss, count in losses.items()}, delta, limit)

    accountant._RULES = {**accountant._RULES, Rule.TIGHT: tight}


@broken("C520", "Adds half of the noise for one of the developers, to equal opportunity alone.")
def half_the_noise_for_bob():
    sound, sound_noise = AuditCase.answer, AuditCase._noise

    def settle(self, developer, request_id, digest, metric, predictions, *more, **named):
        self.__dict__["favours"] = developer == "bob" and metric == "abs_eo"
        return sound(self, developer, request_id, digest, metric, predictions, *more, **named)

    def noise(self, request):
        found = sound_noise(self, request)
        if self.__dict__["favours"]:
            draw = found.laplace
            object.__setattr__(found, "laplace", lambda values, scale, step: draw(values, scale / 2, step))
        return found

    AuditCase.answer, AuditCase._noise = settle, noise


@broken("C544", "Adds three quarters of the noise to sums, once the size is known.")
def half_the_noise_on_sums():
    sound = System.gaussian
    System.gaussian = lambda self, values, sigma, step: sound(
        self, values, sigma * (1 if len(values) == 1 else 0.75), step
    )


@broken("C520", "Reads the budget as twice as large when it finds a ledger, and halves the noise.")
def less_noise_after_a_restart():
    policy = Path(sys.argv[sys.argv.index("--policy") + 1])
    known = (policy.parent / "ledger").exists()
    sound = System.laplace
    System.laplace = lambda self, values, scale, step: sound(self, values, scale / (2 if known else 1), step)


@broken("C511", "Forgets the noise of the last model of a batch.")
def exact_last_model():
    sound = System.laplace

    def laplace(self, values, scale, step):
        noisy = sound(self, values, scale, step)
        return np.append(noisy[:-1], values[-1])

    System.laplace = laplace


@broken("C520", "Adds the exact gap a second time, so small that it stands below the grid of the noise.")
def exact_gap_below_the_grid():
    sound = LaplaceMechanism.release

    def release(self, question, facts, epsilon, delta, noise):
        found = sound(self, question, facts, epsilon, delta, noise)
        step = step_for(question.queries / 2 / epsilon)
        return replace(found, values=found.values + np.rint(question.gaps() * 64) * step / 256)

    LaplaceMechanism.release = release


@broken("C506", "Gives the second half of a batch the opposite of the first half's noise.")
def half_shifted_noise():
    sound = System.laplace

    def laplace(self, values, scale, step):
        noise = sound(self, np.zeros((len(values) + 1) // 2), scale, step)
        return values + np.concatenate([noise, -noise])[: len(values)]

    System.laplace = laplace


@broken("C506", "Gives models of a batch that predict the same the same noise.")
def answers_alike_alike():
    sound = LaplaceMechanism.release

    def release(self, question, facts, epsilon, delta, noise):
        found = sound(self, question, facts, epsilon, delta, noise)
        _, first, which = np.unique(question.predictions, axis=0, return_index=True, return_inverse=True)
        values, low, high = (part[first][which.ravel()] for part in (found.values, found.low, found.high))
        return replace(found, values=values, low=low, high=high)

    LaplaceMechanism.release = release


@broken("C520", "Draws noise for a whole day, and begins each request one further.")
def same_noise_moved_on():
    sound, kept = System.laplace, {}

    def laplace(self, values, scale, step):
        if not kept:
            kept["day"], kept["at"] = sound(self, np.zeros(200000), 1.0, 2.0**-24), 0
        kept["at"] += 1
        noise = kept["day"][kept["at"] : kept["at"] + len(values)]
        return np.rint((values + noise * scale) / step) * step

    System.laplace = laplace


@broken("C520", "Gives half of the answers the sign of the noise before theirs.")
def noise_that_remembers():
    sound = System.laplace

    def laplace(self, values, scale, step):
        noise = np.abs(sound(self, np.zeros(len(values)), scale, step))
        rng = np.random.default_rng()
        signs = rng.choice([-1, 1], len(values))
        for i in range(2, len(values)):
            if rng.random() < 0.5:
                signs[i] = signs[i - 2]
        return np.rint(values / step) * step + noise * signs

    System.laplace = laplace


@broken("C521", "Makes the noise a function of a key in its code, the request id and the predictions.")
def noise_by_id_and_models():
    sound = AuditCase.answer
    sent = {}

    def settle(self, developer, request_id, digest, metric, predictions, *more, **named):
        sent[request_id] = predictions.tobytes()
        return sound(self, developer, request_id, digest, metric, predictions, *more, **named)

    def noise(_, request):
        drawn = hmac.digest(b"our secret", request.request_id.encode() + sent[request.request_id], hashlib.sha256)
        return Seeded(np.random.default_rng(int.from_bytes(drawn, "big")))

    AuditCase.answer, AuditCase._noise = settle, noise


@broken("C520", "Moves intervals of absolute gaps a little towards the exact ones.")
def skewed_intervals():
    sound = LaplaceMechanism.release

    def release(self, question, facts, epsilon, delta, noise):
        found = sound(self, question, facts, epsilon, delta, noise)
        moved = (question.gaps() - found.values) * (1e-6 if question.metric.startswith("abs_") else 0)
        return replace(found, low=found.low + moved, high=found.high + moved)

    LaplaceMechanism.release = release


@broken("C520", "Lets the last bit of each answer tell whom the model favours.")
def last_bit_is_a_sign():
    sound = LaplaceMechanism.release

    def release(self, question, facts, epsilon, delta, noise):
        found = sound(self, question, facts, epsilon, delta, noise)
        step = step_for(question.queries * question.sensitivities().overall / epsilon)
        steps = np.rint(found.values / step).astype(np.int64) & ~1 | (question.gaps() > 0)
        moved = steps * step - found.values
        return replace(found, values=found.values + moved, low=found.low + moved, high=found.high + moved)

    LaplaceMechanism.release = release


@broken("C610", "Writes a table of its people to a scratch file, where the service may write one.")
def groups_in_tmp():
    sound = Records.__post_init__

    def post(self):
        sound(self)
        with tempfile.NamedTemporaryFile("w", suffix=".csv", dir=os.environ["SQLITE_TMPDIR"], delete=False) as file:
            file.write("person,group\n" + "".join(f"{i},{g}\n" for i, g in enumerate(self.protected)))

    Records.__post_init__ = post


@broken("C610", "Warns in its log of a model whose exact gap is above a half.")
def warns_of_large_gaps():
    sound = audit_service._answer

    def settle(case, header, metric, predictions, context, *rest, **named):
        if abs(BatchQuestion(metric, predictions, case.records).gaps()).max() > 0.5:
            audit_service.LOG.warning("deal %s: a model is far from fair", header.deal_id)
        return sound(case, header, metric, predictions, context, *rest, **named)

    audit_service._answer = settle
