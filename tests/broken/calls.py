"""Servers with wrong deadlines, with wrong room for calls, or that mistake how a call ends."""

import contextlib
import itertools
import math
import threading
from collections import defaultdict
from dataclasses import replace

import grpc

from compliance.answers import audit_service
from fairwall.rpc import arrays, server
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from tests.broken import broken


def _with_rooms(gate, room):
    """Return a gate like another one, whose callers have the room that a function says."""
    other = server._Gate.__new__(server._Gate)
    places = {key: replace(place, room=room(key)) for key, place in gate._places.items()}
    other.__dict__.update(gate.__dict__, _places=places)
    return other


@broken("C701", "Takes calls without a deadline, or with one of days.")
def ignores_deadlines():
    server.DEADLINE_SECONDS_MAX = math.inf
    sound = server._Gate._admitted

    class Endless:
        def __init__(self, context):
            self._context = context

        def __getattr__(self, name):
            return getattr(self._context, name)

        def time_remaining(self):
            return 1.0

    server._Gate._admitted = lambda self, context, check: sound(self, Endless(context), check)


@broken("C715", "Tells strangers what is wrong with their deadlines.")
def asks_for_deadlines_first():
    sound = server._Gate._admitted

    @contextlib.contextmanager
    def admitted(self, context, check):
        remaining = context.time_remaining()
        if remaining is None or remaining > 3630:
            raise Refusal(error_pb2.REASON_DEADLINE_MISSING)
        with sound(self, context, check) as meter:
            yield meter

    server._Gate._admitted = admitted


@broken("C705", "Runs as many calls of a party as there are.")
def any_number_of_calls():
    server.CALLS_PER_CALLER = 1000


@broken("C705", "Runs eight calls at a time, whoever makes them.")
def one_room_for_all():
    def init(self, *args, sound=server._Gate.__init__, **kwargs):
        sound(self, *args, **kwargs)
        room = threading.BoundedSemaphore(server.CALLS_PER_CALLER)
        self._places = {caller: replace(place, room=room) for caller, place in self._places.items()}

    server._Gate.__init__ = init


@broken("C712", "Counts audits under way, and no other calls.")
def room_for_audits_alone():
    sound = server._Gate._admitted

    def admitted(self, context, check):
        if context._rpc_event.call_details.method.endswith(b"/Audit"):
            return sound(self, context, check)
        room = threading.BoundedSemaphore(100)
        return sound(_with_rooms(self, lambda _: room), context, check)

    server._Gate._admitted = admitted


@broken("C716", "Gives each certificate room of its own.")
def room_of_each_certificate():
    sound = server._Gate._admitted
    rooms = defaultdict(lambda: threading.BoundedSemaphore(server.CALLS_PER_CALLER))

    def admitted(self, context, check):
        shown = context.auth_context()["x509_pem_cert"][0]
        return sound(_with_rooms(self, lambda key: rooms[key, shown]), context, check)

    server._Gate._admitted = admitted


@broken("C707", "Never frees the place of a call that broke off.")
def keeps_the_room_of_broken_calls():
    sound = audit_service._receive

    def receive(header, metric, requests, case):
        try:
            return sound(header, metric, requests, case)
        except grpc.RpcError:
            threading.Event().wait(60)
            raise

    audit_service._receive = receive


@broken("C710", "Reads a lone message before it looks at who sends it.")
def reads_before_it_looks():
    sound = server._Gate.intercept_service

    def intercept(self, continuation, handler_call_details):
        handler, inner = continuation(handler_call_details), sound(self, continuation, handler_call_details)
        if handler is None or handler.request_streaming or handler.response_streaming:
            return inner
        call = inner.stream_unary
        return grpc.unary_unary_rpc_method_handler(lambda data, context: call(iter([data]), context))

    server._Gate.intercept_service = intercept
    server._Gate._prompt = lambda _, arriving: arriving


@broken("C711", "Looks at who calls once something has come.")
def looks_after_the_first_message():
    sound = server._Gate._unary

    def unary(self, handler, method):
        call = sound(self, handler, method)

        def late(arriving, context):
            first = list(itertools.islice(arriving, 1))
            return call(itertools.chain(first, arriving), context)

        return late

    server._Gate._unary = unary
    server._Gate._prompt = lambda _, arriving: arriving


@broken("C717", "Charges as soon as the last byte is there, whoever may still give the call up.")
def charges_with_the_last_byte():
    sound = arrays.array_after

    def after(header, requests, part, *rest, **named):
        size = 1
        for length in header.shape:
            size *= length
        size *= {1: 8, 2: 4, 3: 1}.get(header.element_type, 0)

        def enough():
            came = 0
            for request in requests:
                came += len(getattr(request, part))
                yield request
                if came == size:
                    return

        return sound(header, enough(), part, *rest, **named)

    arrays.array_after = after


@broken("C717", "Answers, and charges, a call that was cancelled after its last byte.")
def takes_a_lost_stream_for_a_whole_one():
    server._to_the_end = lambda arriving: iter(arriving)


@broken("C723", "Takes the first of two messages where one is due.")
def takes_the_first_of_two_messages():
    server.itertools = type("tools", (), {"islice": staticmethod(lambda stream, _: list(stream)[:1])})
