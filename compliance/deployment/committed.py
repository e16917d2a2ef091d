"""A deployment's commitment, before any request, to the people, the noise and the terms of its answers.

`fairwall.laws.studies.commitment` defines what a commitment binds and hides. Its keys are derived from the ledger's:
services of one ledger make the same commitment, also after a restart.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from compliance.deployment.policy.schema import Policy
from compliance.ledger.entries import Request
from compliance.noise.sampling import Noise, System
from compliance.noise.uniform_bits import KeyedBits
from compliance.records.people import Records
from fairwall.laws.studies.commitment import Commitment, commit, digest_of_seed, noise_key, rows_of

Derive = Callable[[str], bytes]
"""Derives a key of the ledger for a purpose."""


@dataclass(frozen=True)
class Committed:
    """A commitment, and the secrets that open it.

    `terms_digest`: SHA-256 of the terms: the policy's sections on data and audits, without the data's location.
    """

    commitment: Commitment
    terms_digest: bytes
    seed: bytes = field(repr=False)

    def noise_of(self, request: Request) -> Noise:
        """Return the noise of a request.

        No two requests share noise, whoever sends them under whatever id: it would cancel in the difference of their
        answers. So it is derived from the developer, the request id and the digest of the whole request, the
        developer's nonce included: compliance can choose none of these, nor foresee the last.
        """
        name = f"{request.developer}/{request.request_id}"
        return System(KeyedBits(noise_key(self.seed, name, request.digest)))


def committed(policy: Policy, records: Records, derive: Derive, begun: bytes) -> Committed:
    """Commit to a data set's people: their row numbers, labels and groups.

    `begun` is the start value of the ledger's chain for the data set, unique to this ledger.
    """
    salt_key = derive(f"committed salts of {policy.data_name}")
    found = commit(rows_of(records.labels), records.protected.tolist(), b"", salt_key)
    told = policy.model_dump(mode="json", include={"data", "audit"}, exclude={"data": {"source"}})
    terms = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).digest()
    # Other people, other terms or another ledger get other noise: otherwise it would cancel in the difference of two
    # answers to one question, or appear scaled, and leave what has changed.
    bound = ": ".join(each.hex() for each in (found.root, terms, begun))
    seed = derive(f"committed noise of {policy.data_name}: {bound}")
    return Committed(replace(found, seed_digest=digest_of_seed(seed)), terms, seed)
