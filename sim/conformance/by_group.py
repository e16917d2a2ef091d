"""The kind of step that asks for counts by group. A step's keys are the fields of its class."""

from __future__ import annotations

import math
from typing import Literal

import grpc
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fairwall.compliance.v1 import group_service_pb2 as wire
from fairwall.laws.groups import marginal
from fairwall.rpc import arrays
from fairwall.wire.rows import digest_of, order_of
from sim.conformance import calls
from sim.conformance.calls import Seen, Violation
from sim.conformance.vocabulary import ExpectLaw, Words
from sim.conformance.world import NotRun, World

BY_GROUP = "/fairwall.compliance.v1.GroupService/ByGroup"

_P = 1e-10
"""How likely a sound server is accused by one look at its noise."""

_SLACK = 2.0**-13
"""By what part a rate may be below what epsilon allows, which is rounded down."""

Array = NDArray[np.float64]


class ByGroup(Words):
    """Asks for selection rates by group of random decisions, of the seed `seed`.

    `id` stands for a request id that no other case uses; of several `draws`, one after the other, each has its number
    behind it. `rows` says whose ids go along, as a digest: nobody's, the test set's, or those of other rows.
    """

    do: Literal["by_group"]
    caller: str = "developer"
    id: str = "a"
    epsilon: float = 1.0
    seed: int = 1
    models: int = Field(default=1, ge=1)
    rows: Literal["", "ids", "others"] = ""
    draws: int = Field(default=1, ge=1)
    expect: ExpectLaw = ExpectLaw()

    def run(self, world: World) -> None:
        """Ask, and look at what comes, and at what it has cost."""
        about, found = world.about(), world.subject.target.groups(world.deployment)
        if found is None:
            raise NotRun("needs a deployment that counts by group")
        ids, cells = found
        order = order_of(ids)
        decisions = np.random.default_rng(self.seed).integers(0, 2, (self.models, len(ids))).astype(np.uint8)
        sent = np.ascontiguousarray(decisions[:, order]) if self.rows == "ids" else decisions
        others = [*ids[:-1], b"somebody else"]
        digest = {"": b"", "ids": digest_of(ids, order), "others": digest_of(others, order_of(others))}[self.rows]
        world.open_account(self.caller)
        noises = []
        for number in range(self.draws):
            request_id = world.request_id(f"{self.id}-{number}" if self.draws > 1 else self.id)
            header = wire.ByGroupHeader(
                request_id=request_id,
                deal_id=about.deal,
                by=list(about.groups),
                measures=[wire.MEASURE_SELECTION_RATE],
                epsilon=self.epsilon,
                predictions=arrays.header_of(sent),
                rows_digest=digest,
            )
            parts = wire.ByGroupRequest(header=header), wire.ByGroupRequest(predictions_chunk=sent.tobytes())
            seen = world.call(BY_GROUP, [part.SerializeToString() for part in parts], self.caller)
            if seen.status is grpc.StatusCode.UNIMPLEMENTED:
                raise NotRun("needs a server that counts by group")
            self.expect.check_end(seen)
            if not seen.answered:
                continue
            world.enter(self.caller, "", request_id, self.epsilon, seen.messages[0])
            if seen.messages[0].rows_compared != (self.rows == "ids"):
                raise Violation("the answer does not say whether rows were compared")
            noises += self._noises(seen, decisions, cells)
        if self.expect.law:
            _require_law(noises)

    def _noises(self, seen: Seen, decisions: NDArray[np.uint8], cells: NDArray[np.intp]) -> list[tuple[float, Array]]:
        """Check an answer's form, and return each table's rate and noise, shape (strata, groups)."""
        release, told = seen.messages[0].release, []
        groups = release.groups
        if sorted(model for table in release.tables for model in table.models) != list(range(self.models)):
            raise Violation("not every model is in one table")
        for table in release.tables:
            counts, hits = (calls.array(each, "a table").astype(np.float64) for each in (table.counts, table.hits))
            own = decisions[list(table.models)]
            if hits.shape != (len(own), len(counts)) or counts.shape[1:] != (groups,):
                raise Violation(f"a table of {counts.shape} counts does not fit hits of {hits.shape}")
            strata = (own[np.newaxis] == hits.T[:, :, np.newaxis]).all(axis=1)
            if not (strata.sum(axis=0) == 1).all():
                raise Violation("not everybody is in one stratum")
            if not np.array_equal(counts.sum(axis=1), strata.sum(axis=1)):
                raise Violation("the counts of a stratum do not sum up to its people")
            allowed = self.epsilon * len(own) / self.models / 2
            if not allowed * (1 - _SLACK) <= table.rate <= allowed:
                raise Violation(f"noise has the rate {table.rate!r}; epsilon buys one of {allowed!r} or a little less")
            exact = np.stack([np.bincount(cells[inside], minlength=groups) for inside in strata])
            told.append((table.rate, counts - exact))
        return told


def _require_law(noises: list[tuple[float, Array]]) -> None:
    """Demand that noise of one rate has its law: how far each number's is from it at most, by Massart's inequality.

    Rows are independent of one another; of a row's numbers each is looked at alone, its size and its sign.
    """
    (rate,) = {rate for rate, _ in noises}
    drawn = np.concatenate([noise for _, noise in noises])
    if (drawn != np.rint(drawn)).any():
        raise Violation("counts are no whole numbers")
    values, law = marginal(rate, drawn.shape[1])
    below = np.cumsum(law)
    far = math.sqrt(math.log(4 * drawn.shape[1] / _P) / (2 * len(drawn)))
    sizes = np.cumsum(np.bincount(np.abs(values), law))
    for group, noise in enumerate(drawn.T):
        seen = np.searchsorted(np.sort(noise), values, side="right") / len(noise)
        small = np.searchsorted(np.sort(np.abs(noise)), np.arange(len(sizes)), side="right") / len(noise)
        if max(np.abs(seen - below).max(), np.abs(small - sizes).max()) > far:
            raise Violation(f"the noise on the counts of group {group} has not the law of its rate")
