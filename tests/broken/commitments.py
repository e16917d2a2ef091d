"""Servers that are not bound by what they commit to: groups, and the seed of noise."""

import secrets
from dataclasses import replace

from compliance.answers import audit_service
from compliance.deployment import accounts
from compliance.deployment.committed import Committed
from compliance.noise.sampling import System
from compliance.noise.uniform_bits import KeyedBits
from fairwall.laws.studies import commitment
from fairwall.laws.studies.commitment import digest_of_seed, noise_key
from tests.broken import broken


@broken("C831", "Commits anew whenever it is started.")
def commits_anew_at_each_start():
    sound = accounts.committed
    run = secrets.token_bytes(8)
    accounts.committed = lambda policy, records, derive, begun: sound(policy, records, derive, begun + run)


@broken("C831", "Commits to groups without salts: whoever has the commitment can try out who is in which.")
def commits_without_salts():
    commitment.salt = lambda *_: bytes(32)


@broken("C831", "Makes the seed of committed noise of its key alone: terms may change, and noise is the same.")
def one_committed_seed_for_all_terms():
    sound = accounts.committed

    def committed(policy, records, derive, begun):
        found, seed = sound(policy, records, derive, begun), derive("committed noise")
        return replace(found, commitment=replace(found.commitment, seed_digest=digest_of_seed(seed)), seed=seed)

    accounts.committed = committed


@broken("C832", "Makes committed noise of the request's name alone: who commits knows it beforehand.")
def committed_noise_without_the_nonce():
    Committed.noise_of = lambda self, request: System(
        KeyedBits(noise_key(self.seed, f"{request.developer}/{request.request_id}", b""))
    )


@broken("C832", "Commits to noise, and draws other noise of its system's generator.")
def noise_that_it_did_not_commit_to():
    Committed.noise_of = lambda *_: System()


@broken("C833", "Makes committed noise of what is asked, whoever asks it and under whichever id.")
def one_committed_noise_for_all_who_ask():
    Committed.noise_of = lambda self, request: System(
        KeyedBits(noise_key(self.seed, request.dataset, request.metric.encode()))
    )


@broken("C833", "Does not say whether it counted a request's nonce in.")
def tells_no_nonce():
    sound = audit_service._answer

    def answer(*asked, **named):
        response = sound(*asked, **named)
        response.ClearField("nonce")
        return response

    audit_service._answer = answer
