"""Servers whose noise can be computed, or is drawn once for several answers."""

import hashlib
import os
import time
from dataclasses import replace

import numpy as np

from compliance.answers import audits
from compliance.answers.audits import AuditCase
from compliance.mechanisms.noise_on_gaps import LaplaceMechanism
from compliance.noise.sampling import Seeded, System
from tests.broken import broken


@broken("C510", "Makes the noise a function of what is asked: the same models always get the same.")
def noise_from_predictions():
    sound = LaplaceMechanism.release

    def release(self, question, facts, epsilon, delta, noise):
        seed = int.from_bytes(hashlib.sha256(question.predictions.tobytes()).digest()[:8], "big")
        return sound(self, question, facts, epsilon, delta, Seeded(np.random.default_rng(seed)))

    LaplaceMechanism.release = release


@broken("C114", "Makes the noise a function of the request id alone.")
def seeds_noise_by_request():
    def noise(self, request):
        return Seeded(np.random.default_rng(list(request.request_id.split("-")[-1].encode())))

    AuditCase._noise = noise


@broken("C512", "Makes the noise a function of how many records the ledger has.")
def noise_by_a_counter():
    def noise(self, _):
        with self.ledger._held(self.dataset) as held:
            return Seeded(np.random.default_rng(held.books.head.sequence))

    AuditCase._noise = noise


@broken("C512", "Starts its generator from the same seed whenever it is started.")
def seeds_noise_at_start():
    generator = Seeded(np.random.default_rng(7))
    AuditCase._noise = lambda *_: generator


@broken("C754", "Seeds its generator with the time and the number of its process.")
def seeds_noise_by_the_clock():
    generator = Seeded(np.random.default_rng([int(time.time()), os.getpid()]))
    AuditCase._noise = lambda *_: generator


@broken("C521", "Starts its generator from the clock, to the second, when it is started.")
def noise_of_the_start():
    generator = Seeded(np.random.default_rng(int(time.time())))
    AuditCase._noise = lambda *_: generator


@broken("C521", "Starts its generator anew from the clock in every second.")
def noise_of_the_second():
    AuditCase._noise = lambda *_: Seeded(np.random.default_rng(int(time.time())))


@broken("C523", "Draws twenty thousand noises when it is first asked, and takes all noise from these.")
def noise_from_a_pool():
    sound, pool, random = System.laplace, [], np.random.default_rng()

    def laplace(self, values, scale, step):
        if not pool:
            pool.append(sound(self, np.zeros(20_000), 1.0, 2.0**-30))
        noise = random.choice(pool[0], values.shape)
        return np.rint((values + noise * scale) / step) * step if step else values

    System.laplace = laplace


@broken("C520", "Draws noise ahead, and gives every draw to two requests.")
def one_draw_for_two_requests():
    sound, drawn = System.laplace, {}

    def laplace(self, values, scale, step):
        if (kept := drawn.pop(len(values), None)) is None:
            drawn[len(values)] = kept = sound(self, np.zeros(len(values)), 1.0, 2.0**-24)
        return np.rint((values + kept * scale) / step) * step

    System.laplace = laplace


@broken("C841", "Answers a request that another service has answered with noise of its own.")
def draws_for_each_service():
    sound, replied, own = AuditCase.answer, AuditCase._replied, set()

    def reply(self, question, request, *more):
        own.add((request.developer, request.request_id))
        return replied(self, question, request, *more)

    def answer(self, developer, request_id, digest, metric, predictions, *more, **named):
        entry = sound(self, developer, request_id, digest, metric, predictions, *more, **named)
        if (developer, request_id) in own:
            return entry
        numbers = audits._numbers(entry) + np.rint(np.random.default_rng().normal() * 2.0**20) / 2.0**20
        return replace(entry, reply=replace(entry.reply, answer=audits._ROWS + numbers.astype("<f8").tobytes()))

    AuditCase.answer, AuditCase._replied = answer, reply
