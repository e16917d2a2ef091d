"""What a deployment binds itself to before anybody asks: whom it answers about, by which noise, on which terms.

`fairwall.laws.commitment` says what a commitment binds and hides. Its keys follow from the ledger's: services of one
ledger commit to the same, also after a start.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from compliance.deployment.policy.schema import Policy
from compliance.ledger.entries import Request
from compliance.noise.keyed import KeyedBits
from compliance.noise.sampling import Noise, System
from compliance.records.people import Records
from fairwall.laws.commitment import Commitment, commit, digest_of_seed, noise_key, rows_of

Derive = Callable[[str], bytes]
"""Makes a key of the ledger's for a purpose."""


@dataclass(frozen=True)
class Committed:
    """What is committed to, and what opens it.

    Parameters
    ----------
    terms_digest : the SHA-256 of the terms: all that the policy says of data and audits, but for where the data lie.
    """

    commitment: Commitment
    terms_digest: bytes
    seed: bytes = field(repr=False)

    def noise_of(self, asked: Request) -> Noise:
        """Make the noise of a request.

        No two questions have one noise, whoever asks them and whatever they are called: it would be gone from the
        difference of their answers. So it follows from the developer, the id and the digest of all that is asked, the
        developer's nonce included: compliance can choose none of these, and not foresee the last.
        """
        name = f"{asked.developer}/{asked.request_id}"
        return System(KeyedBits(noise_key(self.seed, name, asked.digest)))


def committed(policy: Policy, records: Records, derive: Derive, begun: bytes) -> Committed:
    """Commit to the people of a data set: their numbers in the file and labels, and each one's group.

    `begun` is what the ledger's chain of the data set starts from, which no other ledger's does.
    """
    salt_key = derive(f"committed salts of {policy.data_name}")
    found = commit(rows_of(records.labels), records.protected.tolist(), b"", salt_key)
    told = policy.model_dump(mode="json", include={"data", "audit"}, exclude={"data": {"source"}})
    terms = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).digest()
    # Of other people, on other terms, and by another ledger the noise is another one: from the difference of two
    # answers to one question it would be gone, or be so many times as large, and what has changed would be left.
    bound = ": ".join(each.hex() for each in (found.root, terms, begun))
    seed = derive(f"committed noise of {policy.data_name}: {bound}")
    return Committed(replace(found, seed_digest=digest_of_seed(seed)), terms, seed)
