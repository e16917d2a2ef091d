"""Servers of a developer's models that are broken."""

import itertools
from dataclasses import replace

import numpy as np

from developer import service
from developer.service import ModelService
from fairwall.rpc import access, arrays, identity, server
from fairwall.rpc.errors import Refusal
from fairwall.rpc.identity import Caller
from fairwall.wire.v1 import error_pb2
from sim.conformance import reference_developer
from tests.broken import broken


@broken("D108", "Lets every party ask its models.")
def asks_nobody_who_they_are():
    access.CALLERS["/fairwall.developer.v1.ModelService/Predict"] = access.PARTIES_OF_A_RUN


@broken("D112", "Takes the party that the metadata name for the one that calls.")
def trusts_metadata():
    sound = service.identify

    def identify(context):
        named = dict(context.invocation_metadata()).get("x-party", "").rpartition("/")[2]
        return replace(sound(context), party=named) if named else sound(context)

    service.identify = identify


@broken("D114", "Takes a party's name with a slash behind it for the name.")
def reads_names_loosely():
    sound = identity._only_caller
    identity._only_caller = lambda names: sound(name.rstrip("/") for name in names)


@broken("D103", "Answers compliance for requests that it has never sent.")
def answers_any_request():
    ModelService._under_way = lambda self, _: next(iter(self._audited.values()))


@broken("D113", "Takes a request id that begins like the one under way.")
def prefix_requests():
    sound = ModelService._under_way

    def under_way(self, header):
        for _, request in self._audited:
            if header.request_id.startswith(request):
                header.request_id = request
        return sound(self, header)

    ModelService._under_way = under_way


@broken("D113", "Leaves blanks and capitals out of a request id.")
def trims_request_ids():
    sound = ModelService._under_way

    def under_way(self, header):
        header.request_id = header.request_id.strip().lower()
        return sound(self, header)

    ModelService._under_way = under_way


@broken("D104", "Answers the adversary for the models that are under audit.")
def audited_models_for_all():
    sound = ModelService.Predict

    def predict(self, request_iterator, context):
        messages = list(request_iterator)
        asks = bool(messages) and bool(messages[0].header.request_id)
        service.identify = lambda _: Caller("kit", "compliance" if asks else "adversary")
        return sound(self, iter(messages), context)

    ModelService.Predict = predict


@broken("D102", "Answers with the first model whichever is asked for.")
def one_model_for_all():
    def audited(models, features, answer, sound=service.Audited):
        return sound(models, features, lambda _, rows: answer(0, rows))

    reference_developer.Audited = audited


@broken("D106", "Scores features that are no numbers.")
def scores_of_nan():
    service.np = type("np", (), {**vars(np), "isfinite": staticmethod(lambda values: np.full(np.shape(values), True))})


@broken("D109", "Scores features of single precision in single precision.")
def scores_in_single_precision():
    sound, message = service._receive, arrays.to_message
    kinds = []

    def receive(header, *rest):
        kinds.append(header.element_type)
        return sound(header, *rest)

    service._receive = receive
    arrays.to_message = lambda array: message(array.astype(np.float32).astype(array.dtype) if kinds[-1] == 2 else array)


@broken("D109", "Takes no features but of double precision.")
def wants_double_precision():
    sound = arrays.array_after

    def after(header, *rest, **named):
        if header.element_type != 1:
            raise Refusal(error_pb2.REASON_REQUEST_MALFORMED)
        return sound(header, *rest, **named)

    arrays.array_after = after


@broken("D110", "Runs as many calls of a party as there are.")
def any_number_of_calls():
    server.CALLS_PER_CALLER = 80


@broken("D111", "Looks at who calls once something has come.")
def reads_before_it_looks():
    sound = server._Gate._unary

    def unary(self, handler, method):
        call = sound(self, handler, method)

        def late(arriving, context):
            first = list(itertools.islice(arriving, 1))
            return call(itertools.chain(first, arriving), context)

        return late

    server._Gate._unary = unary
