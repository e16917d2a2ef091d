"""Servers that sanitise, charge or repeat a release of attributes wrongly."""

import secrets
from dataclasses import replace

import numpy as np

from compliance.answers import releases
from compliance.answers.releases import AttributeRelease
from compliance.deployment.policy import loading
from compliance.ledger import Ledger
from compliance.ledger.accountant import Neighbours
from compliance.mechanisms.local_protocols import PROTOCOLS, seeded, system
from fairwall.learning.design import one_hot
from tests.broken import broken


@broken("C114", "Makes a release a function of the request id alone.")
def draws_releases_by_request():
    def sanitised(self, request_id, epsilon, sound=AttributeRelease.sanitised):
        object.__setattr__(self, "seed", bytes(32))
        return sound(self, request_id, epsilon)

    AttributeRelease.sanitised = sanitised


@broken("C512", "Starts its releases' generator from the same seed whenever it is started.")
def draws_releases_from_one_seed():
    draw = seeded(bytes(32))
    releases.system = lambda: draw


@broken("C301", "Draws a release anew when it is asked for again.")
def resamples_release_on_repeat():
    def encoded(self, entry):
        return self.sanitised(entry.request.request_id, entry.request.loss.epsilon)

    AttributeRelease.encoded = encoded


@broken("C904", "Gives the release that an id stands for, whatever epsilon is offered.")
def one_release_for_every_epsilon():
    def settle(self, developer, request_id, digest, epsilon, sound=AttributeRelease.answer):
        return sound(self, developer, request_id, b"the same", epsilon)

    AttributeRelease.answer = settle


@broken("C908", "Charges releases to the budget of audits, too.")
def releases_out_of_the_budget_of_audits():
    def settle(self, request, answer, *how, sound=Ledger.settle, **room):
        entry = sound(self, request, answer, *how, **room)
        if request.metric == "release":
            name, dataset = f"{request.request_id[-40:]}~audits", request.dataset.removesuffix("-release")
            other = replace(request, request_id=name, dataset=dataset, neighbours=Neighbours.A_FLIP)
            sound(self, other, answer, *how, **room)
        return entry

    Ledger.settle = settle


@broken("C912", "Takes for a column's domain the values that somebody has.")
def tells_the_domain_that_occurs():
    sound = loading.load_release

    def load_release(policy):
        columns, codes = sound(policy)
        found = [np.unique(own, return_inverse=True) for own in codes.T]
        kept = [
            replace(column, domain=len(values), values=tuple(column.values[value] for value in values))
            for column, (values, _) in zip(columns, found, strict=True)
        ]
        return tuple(kept), np.stack([own for _, own in found], axis=1).astype(np.uint8)

    loading.load_release = load_release


@broken("C914", "Forgets to sanitise the last column.")
def releases_a_column_as_it_is():
    def sanitised(self, request_id, epsilon, sound=AttributeRelease.sanitised):
        released = sound(self, request_id, epsilon)
        last = self.columns[-1].domain
        released[:, -last:] = one_hot(self.values[:, -1], last)
        return released

    AttributeRelease.sanitised = sanitised


@broken("C914", "Releases columns in another order than its terms say.")
def releases_columns_in_another_order():
    def encoded(self, entry, sound=AttributeRelease.encoded):
        ends = np.cumsum([column.domain for column in self.columns])
        return np.hstack(np.split(sound(self, entry), ends[:-1], axis=1)[::-1])

    AttributeRelease.encoded = encoded


@broken("C914", "Draws all columns of a release from the same random numbers.")
def shares_draws_between_columns():
    def sanitised(self, request_id, epsilon):
        seed = secrets.token_bytes(32)
        parts = [
            PROTOCOLS[self.protocol].sanitise(values, column.domain, column.share * epsilon, seeded(seed))
            for column, values in self._by_column()
        ]
        return np.concatenate(parts, axis=1)

    AttributeRelease.sanitised = sanitised


@broken("C914", "Sanitises each column with all of epsilon, not with its share.")
def spends_all_on_each_column():
    def sanitised(self, request_id, epsilon):
        parts = [
            PROTOCOLS[self.protocol].sanitise(values, column.domain, epsilon, system())
            for column, values in self._by_column()
        ]
        return np.concatenate(parts, axis=1)

    AttributeRelease.sanitised = sanitised


@broken("C917", "Turns no bit over where RAPPOR releases.")
def rappor_as_it_is():
    sound = PROTOCOLS["rappor"]
    PROTOCOLS["rappor"] = replace(
        sound,
        sample=lambda law, values, draw: sound.sample(replace(law, missing=1e-9, extra=1e-9), values, draw),
    )
