"""Servers that take predictions which they should refuse, or read other ones than were sent."""

import contextlib
import secrets

import grpc
import numpy as np

from compliance.answers import audit_service, group_service
from fairwall.rpc.arrays import ArrivingArray
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from tests.broken import broken


@broken("C201", "Takes NaN for 0.")
def accepts_nan():
    sound = audit_service._checked
    audit_service._checked = lambda metric, predictions: sound(metric, np.nan_to_num(predictions, nan=0.0))


@broken("C201", "Takes NaN for 0 where it counts by group.")
def counts_nan():
    sound = group_service.checked_predictions
    group_service.checked_predictions = lambda predictions, *, binary: sound(np.nan_to_num(predictions), binary=binary)


@broken("C201", "Looks at the first model alone when it looks for NaN.")
def checks_the_first_model():
    sound = audit_service._checked

    def checked(metric, predictions):
        sound(metric, predictions[:1])
        return np.clip(np.nan_to_num(predictions), 0, 1)

    audit_service._checked = checked


@broken("C201", "Charges for predictions that it refuses.")
def charges_what_it_refuses():
    sound = audit_service._receive

    def receive(header, metric, requests, case):
        try:
            return sound(header, metric, requests, case)
        except Refusal as refusal:
            if refusal.reason == error_pb2.REASON_PREDICTIONS_NOT_FINITE:
                nothing = np.zeros((1, case.records.people))
                case.answer("alice", secrets.token_hex(8), b"", metric, nothing, header.epsilon)
            raise

    audit_service._receive = receive


@broken("C202", "Lets predictions be a little outside [0, 1].")
def checks_the_range_roughly():
    sound = audit_service._checked

    def checked(metric, predictions):
        near = (predictions > -1e-9) & (predictions < 1 + 1e-9)
        return sound(metric, np.where(near, np.clip(predictions, 0, 1), predictions))

    audit_service._checked = checked


@broken("C202", "Moves predictions outside [0, 1] to its ends.")
def clips_predictions():
    sound = audit_service._checked
    audit_service._checked = lambda metric, predictions: sound(
        metric, np.where(np.isfinite(predictions), np.clip(predictions, 0, 1), predictions)
    )


@broken("C203", "Rounds scores where a metric needs decisions.")
def rounds_scores_to_decisions():
    sound = audit_service._checked

    def checked(metric, predictions):
        return sound(metric, np.rint(predictions) if metric == "ppv" else predictions)

    audit_service._checked = checked


@broken("C205", "Takes one model more than its terms allow.")
def large_batches():
    sound = audit_service._check_size
    audit_service._check_size = lambda models, case: sound(models - 1 if models > case.queries_max else models, case)


@broken("C206", "Ignores bytes beyond what the header says.")
def ignores_surplus_bytes():
    sound = ArrivingArray.append

    def append(self, chunk):
        sound(self, chunk[: len(self._buffer) - self._filled])

    ArrivingArray.append = append


@broken("C702", "Takes predictions that did not arrive for 0: also of a stream that broke off.")
def fills_up_missing_bytes():
    sound, finish = audit_service._receive, ArrivingArray.finish

    def patient(requests):
        with contextlib.suppress(grpc.RpcError):
            yield from requests

    def filled(self):
        missing = len(self._buffer) - self._filled
        self._buffer[self._filled :] = 0  # which may be anything otherwise, and no prediction
        self._filled += missing
        return finish(self)

    ArrivingArray.finish = filled
    audit_service._receive = lambda header, metric, requests, case: sound(header, metric, patient(requests), case)


@broken("C503", "Never looks at the last person of the test set.")
def skips_the_last_person():
    sound = audit_service._receive

    def receive(header, metric, requests, case):
        predictions = sound(header, metric, requests, case).copy()
        predictions[:, -1] = predictions[:, 0]
        return predictions

    audit_service._receive = receive


@broken("C505", "Takes rows for columns where there are as many models as people.")
def transposes_squares():
    sound = audit_service._receive

    def receive(header, metric, requests, case):
        predictions = sound(header, metric, requests, case)
        return predictions.T.copy() if predictions.shape[0] == predictions.shape[1] else predictions

    audit_service._receive = receive
