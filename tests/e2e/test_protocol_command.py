"""The command that lists the protocol's methods, and writes the protocol for those who do not have our files."""

from __future__ import annotations

import base64
import math
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from google.protobuf import json_format
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from fairwall.rpc.access import CALLERS, SERVED_BY
from fairwall.wire.v1.error_pb2 import REASON_BUDGET_EXHAUSTED, AuditError
from sim.transcripts.boundary import travelling, walk
from tests.e2e.test_serve import deployment, serving

Fairwall = Callable[..., subprocess.CompletedProcess[str]]

PAGE = Path(__file__).parents[2] / "docs" / "tools.md"
OPTION = "fairwall.wire.v1.visibility"


@pytest.fixture
def written(fairwall: Fairwall, tmp_path: Path) -> FileDescriptorSet:
    """What the command writes, read back."""
    told = fairwall("test", "protocol", "--descriptors", "protocol.binpb")
    assert (told.returncode, told.stdout, told.stderr) == (0, "protocol.binpb\n", "")
    return FileDescriptorSet.FromString((tmp_path / "protocol.binpb").read_bytes())


def pool_of(described: FileDescriptorSet) -> DescriptorPool:
    """A pool that knows these files alone; it takes no file before those that it imports."""
    pool = DescriptorPool()
    for file in described.file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


def test_a_pool_that_knows_nothing_else_has_every_service_and_method(written: FileDescriptorSet) -> None:
    pool = pool_of(written)
    found = {
        f"/{service.full_name}/{method.name}"
        for file in written.file
        for service in pool.FindFileByName(file.name).services_by_name.values()
        for method in service.methods
    }
    assert found == {*CALLERS, "/grpc.health.v1.Health/Watch"}, "health has a method that nobody may call"


def test_every_field_keeps_its_visibility(written: FileDescriptorSet) -> None:
    pool = pool_of(written)
    option = pool.FindExtensionByName(OPTION)
    options = GetMessageClass(pool.FindMessageTypeByName("google.protobuf.FieldOptions"))
    GetMessageClass(option.containing_type)
    for reached in {at.path: at for travel in travelling() for at in walk(travel.message)}.values():
        field = pool.FindMessageTypeByName(reached.field.containing_type.full_name).fields_by_name[reached.field.name]
        told = options.FromString(field.GetOptions().SerializeToString())
        assert {each.full_name: value for each, value in told.ListFields()} == {OPTION: reached.label}, reached.path


def test_a_stranger_reads_a_refusal(written: FileDescriptorSet) -> None:
    sent = AuditError(reason=REASON_BUDGET_EXHAUSTED, epsilon_remaining=0.5, epsilon_needed=1.0)
    theirs = GetMessageClass(pool_of(written).FindMessageTypeByName("fairwall.wire.v1.AuditError"))
    read = theirs.FromString(sent.SerializeToString())
    assert (read.reason, read.epsilon_remaining, read.epsilon_needed) == (REASON_BUDGET_EXHAUSTED, 0.5, 1.0)
    assert not read.HasField("people")


def test_it_is_the_same_each_time(fairwall: Fairwall, tmp_path: Path) -> None:
    for name in ("a", "b"):
        fairwall("test", "protocol", "--descriptors", name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_set_without_an_import_is_no_protocol(written: FileDescriptorSet) -> None:
    """The broken twin of the first test: a pool refuses a file whose import it does not have."""
    del written.file[0]
    with pytest.raises(TypeError, match="Couldn't build proto file"):
        pool_of(written)


def test_the_list_has_every_method_with_its_server_and_its_callers(fairwall: Fairwall) -> None:
    told = fairwall("test", "protocol")
    assert (told.returncode, told.stderr) == (0, "")
    assert max(map(len, told.stdout.splitlines())) <= 80
    listed, served = {}, {}
    for block in told.stdout.split("\n\n")[1:]:
        first, *lines = block.splitlines()
        service, server = first.split(", served by ")
        served[f"/{service}/"] = server
        for line in lines:
            method, callers = line.split(maxsplit=1)
            listed[f"/{service}/{method}"] = frozenset(re.sub(r"; .*", "", callers).split(", "))
    assert listed == CALLERS
    assert served == {**SERVED_BY, "/grpc.health.v1.Health/": "every server"}


def test_a_file_that_cannot_be_written_is_one_line_and_status_2(fairwall: Fairwall) -> None:
    told = fairwall("test", "protocol", "--descriptors", "nowhere/protocol.binpb")
    assert told.returncode == 2
    assert (
        told.stderr == "fairwall: --descriptors nowhere/protocol.binpb: cannot be written: No such file or directory\n"
    )


@pytest.mark.check
def test_the_calls_of_the_page_are_answered_by_a_real_service(written: FileDescriptorSet, tmp_path: Path) -> None:
    """What grpcurl does: messages by the descriptors from JSON, over TLS with a certificate."""
    text = PAGE.read_text()
    (commands,) = re.findall(r"```text\n(grpcurl .*?)```", text, re.DOTALL)
    (server,) = re.findall(r"-authority ([\w.]+)", commands)
    terms, audit = re.findall(r" (fairwall[\w.]+/\w+)", commands)
    asked = re.findall(r"-d '(.*?)'", commands)
    (sent,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    chunk = base64.b64encode(bytes([0, 1] * 100)).decode()
    sent = sent.replace("200 bytes, 0 or 1", chunk)
    pool = pool_of(written)
    (tmp_path / "loans").mkdir()
    with serving(deployment(tmp_path / "loans")) as served:
        own = served.folder / "certificates" / "developer-alice"
        secure = grpc.ssl_channel_credentials(
            *((own / f"{name}.pem").read_bytes() for name in ("authority", "key", "certificate"))
        )
        options = (("grpc.ssl_target_name_override", server),)
        with grpc.secure_channel(served.address, secure, options=options) as channel:
            assert called(channel, pool, terms, asked)["people"] == "200"
            answer = called(channel, pool, audit, sent.splitlines())
            with pytest.raises(grpc.RpcError, match="the call needs a deadline"):
                called(channel, pool, terms, asked, seconds=None)
        with served.client() as client:
            ours = client.terms()
    assert ours.epsilon_remaining == answer["epsilonRemaining"] == 2.5
    gap, low, high = (
        np.frombuffer(base64.b64decode(answer[name]["data"]), "<f8")[0] for name in ("gaps", "low", "high")
    )
    # Noise may carry the gap itself out of its range.
    assert math.isfinite(gap)
    assert -1 <= low < high <= 1


def called(
    channel: grpc.Channel, pool: DescriptorPool, method: str, messages: list[str], seconds: float | None = 60
) -> Any:
    """Send JSON to a method, and give the answer's."""
    service, _, name = method.partition("/")
    described = pool.FindServiceByName(service).FindMethodByName(name)
    request, response = GetMessageClass(described.input_type), GetMessageClass(described.output_type)
    requests: Iterator[Any] = (json_format.Parse(each, request(), descriptor_pool=pool) for each in messages)
    call = channel.stream_unary(f"/{method}", lambda each: each.SerializeToString(), response.FromString)
    return json_format.MessageToDict(call(requests, timeout=seconds))
