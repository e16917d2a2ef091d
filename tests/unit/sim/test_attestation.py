"""Signed pages of a ledger: what they say, and that no byte of either file can be another."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import math
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from compliance.ledger import Ledger
from compliance.ledger.accountant import Budget, Loss, Neighbours, Rule, pure
from compliance.ledger.entries import Reply, Request, ServedData
from compliance.ledger.place import Inspection, inspect
from fairwall.rpc import identity
from sim.attestation import check as checking
from sim.attestation import envelope, figures, refusals, statement
from sim.attestation.check import Checked, NotFound, check
from sim.attestation.envelope import EnvelopeError, Signer
from sim.attestation.page import render
from sim.cli.deploy.ledger import app
from sim.deployment.certificates import write
from sim.report.tables import PageTable, PrintedColumn
from sim.verify.signature import SigningKeyError, new_key, private_key
from tests.support.browser import CHROMIUM
from tests.support.command import fairwall
from tests.support.loans_deployment import write_off


@cache
def now() -> datetime:
    """Return when the tests began: not before the certificates were issued, long after this file was read."""
    return datetime.now(UTC)


ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
TINY = b"<html>what was asked</html>\n"


@dataclass(frozen=True)
class Places:
    """Two deployments' credentials, and compliance's own key."""

    folder: Path

    @property
    def authority(self) -> Path:
        return self.folder / "loans" / "developer-alice" / "authority.pem"

    @property
    def other_authority(self) -> Path:
        return self.folder / "cards" / "compliance" / "authority.pem"

    def signer(self, owner: str = "compliance", deployment: str = "loans") -> Signer:
        return envelope.signer_of(identity.load(self.folder / deployment / owner))


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    folder = tmp_path_factory.mktemp("places")
    write(folder / "loans", "loans", ["alice"], 1)
    write(folder / "cards", "cards", ["alice"], 1)
    new_key(folder / "own.pem")
    new_key(folder / "other.pem")
    return Places(folder)


def answer(*models: tuple[float, ...]) -> Reply:
    """What compliance stores of a batch: answers and the ends of two intervals; before there were two, of one."""
    rows = np.array(models).T
    return Reply((b"\x05" if len(rows) == 5 else b"") + rows.astype("<f8").tobytes(), b"FACTS")


def asked(developer: str, name: str, loss: Loss, metric: str = "sp", dataset: str = "loans") -> Request:
    digest = hashlib.sha256(name.encode()).digest()
    return Request(dataset, developer, name, digest, metric, "laplace", Neighbours.A_FLIP, loss)


def filled(ledger: Ledger) -> None:
    ledger.set_budget("loans", Neighbours.A_FLIP, Budget(2.0))
    ledger.allocate("loans", "alice", 1.0)
    ledger.allocate("loans", "bob", 1.5)
    two = answer((0.25, math.nan, math.nan, -0.125, 0.5), (1.75, -1.0, 1.0, -0.5, 1.0))
    ledger.settle(asked("alice", "<first>", pure(0.5)), lambda _: two)
    ledger.settle(asked("bob", "second", pure(0.25), "eo"), lambda _: answer((0.5, 0.25, 0.75)))
    ledger.set_budget("loans", Neighbours.A_FLIP, Budget(3.0))
    ledger.allocate("loans", "bob", 1.0)
    ledger.set_budget("people", Neighbours.ATTRIBUTES, Budget(4.0))
    ledger.allocate("people", "alice", 4.0)
    sold = Request("people", "alice", "bits", b"x", "release", "grr", Neighbours.ATTRIBUTES, pure(1.0))
    ledger.settle(sold, lambda _: Reply(b"\1\0"))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Inspection:
    path = tmp_path_factory.mktemp("ledger") / "ledger.sqlite"
    ledger = Ledger(path)
    filled(ledger)
    ledger.close()
    return inspect(path)[0]


def account_of(found: Inspection, signer: Signer, **options: Any) -> dict[str, Any]:
    return statement.account_of([found], "loans", now(), signer.described, **options)


@pytest.fixture(scope="module")
def account(found: Inspection, places: Places) -> dict[str, Any]:
    return account_of(found, places.signer())


def put(folder: Path, page: bytes, signed: bytes, name: str = "page") -> Path:
    """Lay a page and a statement side by side."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.html").write_bytes(page)
    (folder / f"{name}.intoto.json").write_bytes(signed)
    return folder / f"{name}.html"


def signed(account: dict[str, Any], page: bytes, signer: Signer) -> bytes:
    return envelope.sign(statement.statement_of(account, {"page.html": page}), signer)


@pytest.fixture(scope="module")
def small(places: Places) -> bytes:
    """The least that can be stated, and checked, of the page TINY."""
    signer = places.signer()
    least = {"deployment": "loans", "signedAt": now().isoformat(), "signer": signer.described}
    least |= {"only": {}, "refusals": None, "audits": []}
    return signed(least, TINY, signer)


Pairs = dict[str, tuple[bytes, bytes]]


def is_refused(page: Path, authority: Path) -> bool:
    try:
        check(page, authority=authority)
    except EnvelopeError as error:
        return 0 < len(str(error)) < 200 and str(error).isprintable()
    return False


# What is refused ------------------------------------------------------------------------------------------------------


def edits(text: bytes, every: int) -> Iterator[bytes]:
    """Change each byte; and here and there change it otherwise, leave it out, or put another before it."""
    for at in range(len(text)):
        yield text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :]
    for at in range(0, len(text), every):
        yield text[:at] + bytes([text[at] ^ 32]) + text[at + 1 :]
        yield text[:at] + text[at + 1 :]
        yield text[:at] + b" " + text[at:]


def test_a_certificate_with_a_serial_number_below_0_is_none(tmp_path: Path, places: Places, small: bytes) -> None:
    page = put(tmp_path, TINY, small)
    statement = json.loads(small)
    (signature,) = statement["signatures"]
    der = bytearray(x509.load_pem_x509_certificate(signature["certificate"].encode()).public_bytes(Encoding.DER))
    version = b"\xa0\x03\x02\x01\x02"  # then come the serial number's tag, its length, and the number
    der[der.index(version) + len(version) + 2] |= 0x80
    lines = textwrap.wrap(base64.b64encode(der).decode(), 64)
    signature["certificate"] = "\n".join(["-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", ""])
    page.with_name("page.intoto.json").write_text(json.dumps(statement, indent=1) + "\n")
    assert is_refused(page, places.authority)


@pytest.mark.check
def test_each_byte_of_the_statement_counts(tmp_path: Path, places: Places, small: bytes) -> None:
    page = put(tmp_path, TINY, small)
    beside = page.with_name("page.intoto.json")
    assert not is_refused(page, places.authority)
    for edited in edits(small, 11):
        beside.write_bytes(edited)
        assert is_refused(page, places.authority), edited


def test_each_byte_of_the_page_counts(tmp_path: Path, places: Places, small: bytes) -> None:
    page = put(tmp_path, TINY, small)
    for edited in (*edits(TINY, 1), b"", TINY + b"\n", TINY * 2, TINY[:-1], TINY.replace(b"\n", b"\r\n")):
        page.write_bytes(edited)
        assert is_refused(page, places.authority)


@settings(max_examples=40)
@given(data=st.data())
def test_a_real_page_is_refused_after_any_edit(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory, real: tuple[bytes, bytes], places: Places
) -> None:
    which = data.draw(st.integers(0, 1))
    text = real[which]
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(len(text), start + 5)))
    edited = text[:start] + data.draw(st.binary(max_size=5)) + text[stop:]
    files = [*real]
    files[which] = edited
    page = put(tmp_path_factory.getbasetemp() / "edited", *files)
    assert is_refused(page, places.authority) == (edited != text)


@pytest.fixture(scope="module")
def real(account: dict[str, Any], places: Places) -> tuple[bytes, bytes]:
    page = render(account)
    return page, signed(account, page, places.signer())


def rewritten(text: bytes, change: Callable[[dict[str, Any]], object], **form: Any) -> bytes:
    """The same envelope in other words."""
    whole = json.loads(text)
    change(whole)
    return json.dumps(whole, **({"indent": 1} | form)).encode() + b"\n"


def with_larger_s(whole: dict[str, Any]) -> None:
    (one,) = whole["signatures"]
    r, s = decode_dss_signature(base64.b64decode(one["sig"]))
    one["sig"] = base64.b64encode(encode_dss_signature(r, ORDER - s)).decode()


def certificate_signed_with_larger_s(whole: dict[str, Any]) -> None:
    """The authority's signature of the certificate, too, may be written in two ways."""
    (one,) = whole["signatures"]
    certificate = x509.load_pem_x509_certificate(one["certificate"].encode())
    r, s = decode_dss_signature(certificate.signature)
    other = encode_dss_signature(r, ORDER - s)
    whole_der, body = certificate.public_bytes(Encoding.DER), certificate.tbs_certificate_bytes
    algorithm = whole_der[whole_der.index(body) + len(body) :][:12]
    inner = body + algorithm + b"\x03" + bytes([len(other) + 1]) + b"\0" + other
    changed = x509.load_der_x509_certificate(b"\x30\x82" + len(inner).to_bytes(2, "big") + inner)
    one["certificate"] = changed.public_bytes(Encoding.PEM).decode()


def padding_bits(whole: dict[str, Any]) -> None:
    """Set the bits that base64 leaves over, of the first part that has some."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    for part, key in ((whole, "payload"), (whole["signatures"][0], "sig")):
        text = part[key]
        if text.endswith("="):
            at = len(text.rstrip("=")) - 1
            part[key] = text[:at] + letters[letters.index(text[at]) + 1] + text[at + 1 :]
            return


OTHER_WORDS = {
    "spaces": lambda text: rewritten(text, lambda _: None, indent=2),
    "in one line": lambda text: rewritten(text, lambda _: None, indent=None),
    "keys in order": lambda text: rewritten(text, lambda _: None, sort_keys=True),
    "a key more": lambda text: rewritten(text, lambda whole: whole.update(more=1)),
    "a key twice": lambda text: text.replace(b"{", b'{"payloadType": "x", ', 1),
    "escapes": lambda text: text.replace(b"payloadType", b"payload\\u0054ype"),
    "line ends": lambda text: text.replace(b"\n", b"\r\n"),
    "a byte order mark": lambda text: b"\xef\xbb\xbf" + text,
    "no line end": lambda text: text.rstrip(),
    "lines in base64": lambda text: rewritten(
        text, lambda whole: whole.update(payload=whole["payload"][:64] + "\n" + whole["payload"][64:])
    ),
    "padding": lambda text: rewritten(text, lambda whole: whole.update(payload=whole["payload"] + "=")),
    "padding bits": lambda text: rewritten(text, padding_bits),
    "the larger s": lambda text: rewritten(text, with_larger_s),
    "the larger s of the certificate": lambda text: rewritten(text, certificate_signed_with_larger_s),
    "a signature more": lambda text: rewritten(text, lambda whole: whole["signatures"].append(whole["signatures"][0])),
    "no signature": lambda text: rewritten(text, lambda whole: whole["signatures"].clear()),
    "no certificate": lambda text: rewritten(text, lambda whole: whole["signatures"][0].pop("certificate")),
    "an empty signature": lambda text: rewritten(text, lambda whole: whole["signatures"][0].update(sig="")),
    "another type": lambda text: rewritten(text, lambda whole: whole.update(payloadType="text/plain")),
    "empty": lambda _: b"",
    "half": lambda text: text[: len(text) // 2],
    "no JSON": lambda _: b"\0" * 100,
    "deep": lambda _: b"[" * 100_000,
    "a number": lambda _: b"9" * 10_000,
    "a list": lambda _: b"[]",
    "huge": lambda text: text + b" " * checking._BYTES_MAX,
}


def test_a_statement_is_written_in_one_way(tmp_path: Path, places: Places, small: bytes) -> None:
    for how, edit in OTHER_WORDS.items():
        edited = edit(small)
        assert edited != small == rewritten(small, lambda _: None), how
        assert is_refused(put(tmp_path, TINY, edited), places.authority), how


def test_a_huge_page_is_refused(tmp_path: Path, places: Places, small: bytes) -> None:
    page = put(tmp_path, TINY + b" " * checking._BYTES_MAX, small)
    with pytest.raises(EnvelopeError, match=r"page\.html is larger than 64 MiB"):
        check(page, authority=places.authority)


@pytest.fixture(scope="module")
def forgeries(account: dict[str, Any], places: Places, real: tuple[bytes, bytes]) -> Pairs:
    """Pairs that no reader of deployment loans may believe; each would be good if one check were missing."""
    page, good = real
    better = page.replace(b"0.25", b"0.02")
    assert better != page
    stranger = places.signer(deployment="cards")
    theirs = account | {"deployment": "cards", "signer": stranger.described}
    posing = account | {"signer": stranger.described}
    alice = places.signer("developer-alice")
    hers = account | {"signer": alice.described}
    late = account | {"signedAt": (now() + timedelta(days=2)).isoformat()}
    early = account | {"signedAt": (now() - timedelta(days=2)).isoformat()}
    own = Signer(ec.generate_private_key(ec.SECP256R1()))
    in_her_name = replace(own, certificate=places.signer().certificate)
    other = account | {"ledger": {"records": 0, "head": "00"}}
    return {
        "another page": (better, good),
        "another statement's page": (render(other), good),
        "another page's statement": (page, signed(other, render(other), places.signer())),
        "another deployment's": (page, signed(theirs, page, stranger)),
        "another deployment's, under this name": (page, signed(posing, page, stranger)),
        "a developer's": (page, signed(hers, page, alice)),
        "a developer's, with no time": (page, signed(hers | {"signedAt": "\x1b[2J"}, page, alice)),
        "a developer's, of no form": (page, envelope.sign(b"[1]", alice)),
        "with no time": (page, signed(account | {"signedAt": None}, page, places.signer())),
        "with no deployment": (page, signed(account | {"deployment": ["loans"]}, page, places.signer())),
        "a time without a zone": (page, signed(account | {"signedAt": "2026-01-01"}, page, places.signer())),
        "a key of nobody's": (page, signed(account | {"signer": own.described}, page, own)),
        "a key of nobody's beside compliance's certificate": (page, signed(account, page, in_her_name)),
        "signed when the certificate had ended": (page, signed(late, page, places.signer())),
        "signed before the certificate held": (page, signed(early, page, places.signer())),
        "naming another certificate": (
            page,
            signed(account | {"signer": {"certificate": "00"}}, page, places.signer()),
        ),
        "of another type": (page, envelope.sign(b'{"_type": "x"}', places.signer())),
        "of no type": (page, envelope.sign(b"[1]", places.signer())),
    }


def believed(tmp_path: Path, pairs: Pairs, authority: Path) -> set[str]:
    return {name for name, pair in pairs.items() if not is_refused(put(tmp_path, *pair), authority)}


def test_no_forgery_is_believed(tmp_path: Path, forgeries: Pairs, places: Places) -> None:
    assert believed(tmp_path, forgeries, places.authority) == set()
    page = put(tmp_path, *forgeries["a developer's, of no form"])
    with pytest.raises(EnvelopeError, match="is fairwall://loans/developer/alice's, and not compliance's"):
        check(page, authority=places.authority)


def test_a_twin_that_does_not_look_at_the_page_is_found_out(
    tmp_path: Path, forgeries: Pairs, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "_check_is_signed", lambda *_: None)
    assert believed(tmp_path, forgeries, places.authority) == {
        "another page",
        "another statement's page",
        "another page's statement",
    }


def test_a_twin_that_trusts_the_key_in_the_file_is_found_out(
    tmp_path: Path, forgeries: Pairs, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(envelope, "_issued", lambda *_: True)
    assert believed(tmp_path, forgeries, places.authority) == {"another deployment's"}


def pairs_of_loans(account: dict[str, Any], places: Places) -> tuple[bytes, bytes]:
    return TINY, signed(account, TINY, places.signer())


def test_a_page_is_refused_with_another_deployments_authority(
    tmp_path: Path, account: dict[str, Any], places: Places
) -> None:
    page = put(tmp_path, *pairs_of_loans(account, places))
    with pytest.raises(EnvelopeError, match="not of this authority"):
        check(page, authority=places.other_authority)
    with pytest.raises(SigningKeyError, match="not an authority's certificate"):
        check(page, authority=places.folder / "loans" / "compliance" / "certificate.pem")
    with pytest.raises(SigningKeyError, match="cannot be read"):
        check(page, authority=places.folder / "none")
    with pytest.raises(EnvelopeError, match="--authority"):
        check(page, key=places.folder / "own.pem.pub")
    with pytest.raises(NotFound, match=r"nothing\.intoto\.json: cannot be read"):
        check(tmp_path / "nothing.html", authority=places.authority)


def test_a_key_of_ones_own(tmp_path: Path, found: Inspection, places: Places) -> None:
    signer = envelope.Signer(private_key(places.folder / "own.pem"))
    account = account_of(found, signer)
    page = put(tmp_path, TINY, signed(account, TINY, signer))
    assert check(page, key=places.folder / "own.pem.pub").account == account
    for other, why in (
        ("other.pem.pub", "another key"),
        ("none", "cannot be read"),
        ("own.pem", "no Ed25519 public key"),
    ):
        with pytest.raises((EnvelopeError, SigningKeyError), match=why):
            check(page, key=places.folder / other)
    with pytest.raises(EnvelopeError, match="--public-key"):
        check(page, authority=places.authority)
    text = page.with_name("page.intoto.json").read_bytes()
    for edited in [*edits(text, 97)][::41]:
        page.with_name("page.intoto.json").write_bytes(edited)
        with pytest.raises(EnvelopeError):
            check(page, key=places.folder / "own.pem.pub")


def test_a_signature_outlives_its_certificate(
    tmp_path: Path, account: dict[str, Any], places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Later(datetime):
        @classmethod
        def now(cls, _: Any = None) -> datetime:
            return now() + timedelta(days=400)

    page = put(tmp_path, *pairs_of_loans(account, places))
    assert not any("certificate ended" in note for note in check(page, authority=places.authority).notes)
    monkeypatch.setattr(checking, "datetime", Later)
    assert any("certificate ended" in note for note in check(page, authority=places.authority).notes)


def test_what_is_signed_is_what_dsse_says(small: bytes, places: Places) -> None:
    """By the specification's own words, and nothing of ours."""
    whole = json.loads(small)
    payload, (one,) = base64.b64decode(whole["payload"]), whole["signatures"]
    kind = whole["payloadType"]
    assert kind == "application/vnd.in-toto+json"
    key = x509.load_pem_x509_certificate(one["certificate"].encode()).public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    encoded = f"DSSEv1 {len(kind)} {kind} {len(payload)} ".encode() + payload
    key.verify(base64.b64decode(one["sig"]), encoded, ec.ECDSA(hashes.SHA256()))
    stated = json.loads(payload)
    assert stated["_type"] == "https://in-toto.io/Statement/v1"
    assert stated["subject"] == [{"name": "page.html", "digest": {"sha256": hashlib.sha256(TINY).hexdigest()}}]
    assert {*stated} == {"_type", "subject", "predicateType", "predicate"}


# What is said ---------------------------------------------------------------------------------------------------------


def test_the_account_tells_budgets_answers_and_changes(account: dict[str, Any]) -> None:
    assert [(one["dataset"], one["developer"], one["spent"], one["left"]) for one in account["accounts"]] == [
        ("loans", None, 0.75, 2.25),
        ("loans", "alice", 0.5, 0.5),
        ("loans", "bob", 0.25, 0.75),
        ("people", None, 1.0, 3.0),
        ("people", "alice", 1.0, 3.0),
    ]
    first, second = account["audits"]
    assert (first["subject"], first["epsilon"], first["metric"]) == ("alice/<first>", 0.5, "sp")
    assert first["models"] == [
        {"gap": 0.25, "low": None, "high": None, "likely_low": -0.125, "likely_high": 0.5},
        {"gap": 1.75, "low": -1.0, "high": 1.0, "likely_low": -0.5, "likely_high": 1.0},
    ]
    # Of answers from before there were two intervals nobody knows whether theirs was guaranteed.
    assert second["models"] == [{"gap": 0.5, "low": None, "high": None, "likely_low": 0.25, "likely_high": 0.75}]
    assert [(one["developer"], one["epsilon"], one["change"]) for one in account["budgets"][3:5]] == [
        (None, 3.0, "raised"),
        ("bob", 1.0, "lowered"),
    ]
    assert [(one["request"], one["mechanism"]) for one in account["releases"]] == [("bits", "grr")]
    course = {(one["dataset"], one["developer"]): [value for _, value in one["points"]] for one in account["course"]}
    assert course["loans", None] == [0.5, 0.75]
    assert course["loans", "bob"] == [0.25]


def test_the_statement_names_each_batch_by_its_digest(account: dict[str, Any]) -> None:
    stated = json.loads(statement.statement_of(account, {"page.html": TINY}))
    assert stated["subject"][1:] == [
        {"name": f"{who}/{name}", "digest": {"blake3": hashlib.sha256(name.encode()).hexdigest()}}
        for who, name in (("alice", "<first>"), ("bob", "second"))
    ]


def test_the_page_has_the_headings_the_numbers_and_no_markup_of_others(real: tuple[bytes, bytes]) -> None:
    page = real[0].decode()
    for heading in (
        *("Unit of privacy", "Neighbour relation", "Privacy budget", "Composition", "Mechanisms"),
        *("Questions and answers", "Refusals", "What the guarantee does not cover"),
    ):
        assert f">{heading}</h2>" in page
    assert "&lt;first&gt;" in page
    assert "<first>" not in page
    assert "−0.125 to 0.5" in page
    assert page.count("<figure>") + page.count("<figure ") == 4
    assert "http:" not in page.replace("http://www.w3.org/", "")
    assert "<script" not in page


def test_the_page_may_run_and_fetch_nothing(real: tuple[bytes, bytes]) -> None:
    (policy,) = re.findall(rb'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', real[0])
    told = dict(each.strip().partition(b" ")[::2] for each in policy.split(b";"))
    assert told.pop(b"style-src") == b"'unsafe-inline'", "its own, which stands in it"
    assert told.pop(b"img-src") == b"data:"
    assert set(told) == {b"default-src", b"base-uri", b"form-action"}
    assert set(told.values()) == {b"'none'"}
    assert b"<script" not in real[0]


def test_the_page_says_what_groups_noise_has_counted_on(places: Places) -> None:
    ledger = Ledger()
    ledger.set_budget("loans", Neighbours.A_FLIP, Budget(2.0))
    ledger.allocate("loans", "alice", 2.0)
    ledger.admit(b"policy", [ServedData("loans", ("alice",), ("sp",), 20)])
    says = "at least 20 people in each group"
    for number, least in ((0, 1), (1, 20)):
        account = account_of(inspect_of(ledger), places.signer())
        (whole,) = [one for one in account["accounts"] if one["developer"] is None]
        assert whole["minimumGroup"] == least
        assert (says in render(account).decode()) == (least == 20)
        ledger.settle(asked("alice", f"r{number}", pure(0.5)), lambda _: answer((0.5, 0.0, 1.0)))
    # A statement of before says nothing of it.
    for one in account["accounts"]:
        del one["minimumGroup"]
    assert says not in render(account).decode()


def bought(number: int) -> dict[str, Any]:
    """Counts by group, as an account has them."""
    when = "2026-01-02T03:04:05.678+00:00"
    one = {"record": 20 + number, "time": when, "dataset": "loans", "developer": "alice", "request": f"g{number}"}
    return one | {"mechanism": "group-counts", "metric": "by-group", "epsilon": 0.25, "digest": "ab" * 32}


def text_of(page: bytes) -> str:
    """What a page says, without its markup."""
    return " ".join(re.sub(r"<[^>]*>", " ", page.decode()).split())


def in_short(page: bytes) -> str:
    return text_of(page).partition("In short")[2].partition("Unit of privacy")[0]


def test_the_page_counts_what_was_bought_besides_questions(account: dict[str, Any]) -> None:
    for requests, said in (
        (0, ""),
        (1, "1 request for counts by group was answered."),
        (3, "3 requests for counts by group were answered."),
    ):
        short = in_short(render(account | {"byGroup": [bought(number) for number in range(requests)]}))
        assert "2 questions about 3 models from 2 developers were answered." in short
        assert "1 release of sanitised attributes was answered." in short
        assert said in short
        assert ("counts by group" in short) == bool(requests)


@pytest.mark.parametrize("key", [False, True])
def test_the_page_says_how_it_is_checked_and_so_it_is(
    tmp_path: Path, found: Inspection, places: Places, key: bool
) -> None:
    signer = envelope.Signer(private_key(places.folder / "own.pem")) if key else places.signer()
    account = account_of(found, signer)
    page = render(account)
    put(tmp_path, page, signed(account, page, signer), "PAGE")
    (words,) = re.findall(r"Run: fairwall deploy (ledger check \S+ --[\w-]+ \S+)", text_of(page))
    assert "how anybody checks that" in in_short(page)
    if key:
        (tmp_path / "compliance.pub").write_bytes(public_part(places.folder / "own.pem"))
    else:
        (tmp_path / "authority.pem").write_bytes(places.authority.read_bytes())
    with contextlib.chdir(tmp_path):
        done = CliRunner().invoke(app, words.split()[1:])
    assert (done.exit_code, done.stdout.partition(" of ")[0]) == (0, "signed by compliance")


def public_part(key: Path) -> bytes:
    loaded = load_pem_private_key(key.read_bytes(), None)
    return loaded.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def test_a_figure_of_few_marks_is_no_wider_than_a_phone(account: dict[str, Any]) -> None:
    for answers, wide in ((1, 0), (40, 1)):
        page = render(account | {"audits": [account["audits"][1]] * answers}).decode()
        assert (page.count("<figure"), page.count('<figure class="wide"')) == (3, wide)


@pytest.mark.check
@pytest.mark.usefixtures("rendered")
@pytest.mark.parametrize("answers", [1, 40])
def test_the_figures_marks_are_on_the_picture_of_a_phone(tmp_path: Path, account: dict[str, Any], answers: int) -> None:
    """In a browser of 390 pixels, at each figure's left end: with few marks all of them, with many the first ones."""
    if CHROMIUM is None:
        pytest.skip("no browser is installed: chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed", exc_type=ImportError)
    audits = [account["audits"][1] | {"record": 7 + number} for number in range(answers)]
    (tmp_path / "page.html").write_bytes(render(account | {"audits": audits}))
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 390, "height": 900})
        tab.goto(f"file://{tmp_path / 'page.html'}")
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
        marks = tab.evaluate(
            "[...document.querySelectorAll('figure')].map(one => [...one.querySelectorAll('g[id*=line2d] use')]"
            ".map(mark => mark.getBoundingClientRect().right).filter(right => right > 0))"
        )
        browser.close()
    assert len(marks) == 3
    for of_figure in marks:
        on_picture = [right for right in of_figure if right <= 390]
        assert on_picture
        assert answers > 1 or len(on_picture) == len(of_figure)


def test_what_is_left_follows_budgets_and_charges(account: dict[str, Any], rendered: None) -> None:
    drawn = figures.left(account, "loans", ["alice", "bob"])
    assert drawn is not None
    assert drawn.alt == "Chart. Left of the budget of loans: all 2.25, alice 0.5, bob 0.75."
    whole = {"dataset": "loans", "developer": None}
    days = [f"2026-01-0{day}T00:00:00+00:00" for day in range(1, 5)]
    told = {
        "budgets": [{**whole, "time": days[0], "epsilon": 2.0}, {**whole, "time": days[2], "epsilon": 3.0}],
        "course": [{**whole, "points": [[days[1], 0.5], [days[3], 0.75]]}],
    }
    assert [left for _, left in figures._left(told, "loans", None)] == [2.0, 1.5, 2.5, 2.25]
    endless = [one | {"epsilon": "inf"} for one in account["budgets"]]
    assert figures.left(account | {"budgets": endless}, "loans", ["alice", "bob"]) is None


def test_a_legend_has_any_name(account: dict[str, Any], rendered: None) -> None:
    """Matplotlib reads dollars as a formula, and leaves out what begins with "_"."""
    text = json.dumps(account).replace("alice", r"$\\frac{$").replace("bob", "_\N{SNOWMAN}<b>")
    drawn = figures.left(json.loads(text), "loans", [r"$\frac{$", "_\N{SNOWMAN}<b>"])
    assert drawn is not None
    assert r"$\frac{$</text>" in drawn.svg
    assert "_?&lt;b&gt;</text>" in drawn.svg


def test_a_formula_stays_a_text_in_a_spreadsheet() -> None:
    table = PageTable((PrintedColumn("name", ["=1+1", "a=1"], numeric=False), PrintedColumn("gap", ["-0.5", "1"])))
    assert base64.b64decode(table.csv.partition("base64,")[2]).decode().split() == ["name,gap", "'=1+1,-0.5", "a=1,1"]


@pytest.mark.check
def test_the_page_is_drawn_from_the_account_alone(account: dict[str, Any], rendered: None) -> None:
    assert render(json.loads(json.dumps(account))) == render(account)


def test_nothing_but_what_was_told_is_in_the_account(account: dict[str, Any], places: Places) -> None:
    """Facts, which answers are computed from later, and what a data set's name stands for stay in the ledger."""
    told = []
    for data, facts in ((b"d" * 32, b"FACTS"), (b"e" * 32, b"other facts")):
        ledger = Ledger()
        ledger.set_budget("loans", Neighbours.A_FLIP, Budget(2.0), data)
        ledger.allocate("loans", "alice", 2.0)
        reply = replace(answer((0.5, 0.0, 1.0)), facts=facts)
        ledger.settle(asked("alice", "r", pure(0.5)), lambda _, reply=reply: reply)
        told.append(json.dumps(account_of(inspect_of(ledger), places.signer())))
    # The times are two, and the head is a digest of everything.
    one, other = (re.sub(r'"(head|time|signedAt)": "[^"]*"|"\d{4}-[^"]*"', "", text) for text in told)
    assert one == other


def inspect_of(ledger: Ledger) -> Inspection:
    with ledger._held("loans") as held:
        return Inspection("", b"", held.books, tuple(held.session.records("", 0)), "")


def test_a_page_for_one_developer_tells_of_no_other(found: Inspection, places: Places) -> None:
    account = account_of(found, places.signer(), developer="alice")
    assert {audit["developer"] for audit in account["audits"]} == {"alice"}
    assert [one["spent"] for one in account["accounts"] if one["developer"] is None] == [0.75, 1.0]
    page = render(account)
    assert b"bob" not in page
    assert b"bob" not in statement.statement_of(account, {"page.html": page})
    assert b"This page is about developer alice alone" in page
    only = account_of(found, places.signer(), dataset="people")
    assert only["audits"] == []
    assert b"loans" not in render(only | {"deployment": "x"})


def test_records_of_other_kinds_are_named(found: Inspection, places: Places) -> None:
    @dataclass(frozen=True)
    class Admission:
        sequence: int
        time: float
        who: str

    more = replace(found, records=(*found.records, Admission(99, 0.0, "carol")))  # type: ignore[arg-type]
    account = account_of(more, places.signer())
    assert account["others"] == [{"record": 99, "time": "1970-01-01T00:00:00.000+00:00", "kind": "Admission"}]
    assert b"Admission" in render(account)
    assert b"carol" not in render(account)


@pytest.mark.few(3)
@pytest.mark.parametrize("rule", Rule)
@pytest.mark.parametrize("lost", [Loss(0.5, 1e-7), Loss(math.inf)])
def test_what_was_lost_is_told_and_counts_under_every_rule(places: Places, rule: Rule, lost: Loss) -> None:
    ledger = Ledger()
    ledger.set_budget("loans", Neighbours.A_FLIP, Budget(2.0, 1e-6, rule))
    ledger.allocate("loans", "alice", 2.0, 1e-6)
    ledger.settle(asked("alice", "first", pure(0.25)), lambda _: answer((0.0, 0.0, 0.0)))
    before = ledger.standing("loans").spent
    write_off(ledger, "loans", lost)
    after = ledger.standing("loans")
    assert after.spent > before
    if math.isinf(lost.epsilon):
        assert (after.spent, after.remaining) == (math.inf, 0.0)
        ledger.set_budget("loans", Neighbours.A_FLIP, Budget(1e6, 1e-6, rule))
        assert ledger.standing("loans").remaining == 0.0
    account = account_of(inspect_of(ledger), places.signer())
    assert [one["epsilon"] for one in account["lost"]] == ["inf" if math.isinf(lost.epsilon) else 0.5]
    if rule is Rule.BASIC:
        assert b"charged for what was lost" in render(account)


def test_refusals_are_counted_by_who_what_and_why(tmp_path: Path, account: dict[str, Any]) -> None:
    call = {
        "time": "2026-01-02T03:04:05.678+00:00",
        "method": "fairwall.X/Audit",
        "outcome": "refused",
        "dataset": "loans",
    }
    lines = [
        call | {"caller": "developer/alice", "reason": "BUDGET_EXHAUSTED", "request": "r"},
        call | {"caller": "developer/alice", "reason": "BUDGET_EXHAUSTED"},
        call | {"caller": "developer/bob", "reason": "<b>"},
        call | {"caller": "developer/bob", "outcome": "answered"},
        call | {"caller": "developer/bob", "reason": "x" * 300},
        call | {"caller": 7, "reason": "BUDGET_EXHAUSTED"},
    ]
    log = tmp_path / "log"
    broken = ["2026-01-01 a line for people", "{", "{}", "[" * 5000, '{"a": ' + "[" * 50_000, "\xff"]
    log.write_text("\n".join([*broken, *map(json.dumps, lines)]))
    counted = refusals.count([log])
    assert [(one["caller"], one["reason"], one["calls"]) for one in counted["calls"]] == [
        ("developer/alice", "BUDGET_EXHAUSTED", 2),
        ("developer/bob", "", 1),
        ("developer/bob", "<b>", 1),
    ]
    assert counted["logs"] == [{"name": "log", "digest": {"sha256": hashlib.sha256(log.read_bytes()).hexdigest()}}]
    assert len(refusals.count([log], caller="developer/bob")["calls"]) == 2
    assert refusals.count([log], dataset="other")["calls"] == []
    page = render(account | {"refusals": counted})
    assert b"4 calls were refused, by the log" in page
    assert b"<b>" not in page
    with pytest.raises(refusals.LogError, match="cannot be read"):
        refusals.count([tmp_path / "none"])


def test_predictions_are_found_by_their_digest(account: dict[str, Any]) -> None:
    batch = np.linspace(0, 1, 10)[np.newaxis]
    names = {"dataset": "loans", "request": "r", "metric": "sp", "epsilon": 0.5}
    audit = names | {"models": [{}], "digest": checking.request_digest(batch, **names)}  # type: ignore[arg-type]
    assert checking.asked_about(batch[0], [audit]) == [audit]
    for other in (batch + 1e-16, np.vstack([batch, batch]), batch[:, ::-1]):
        assert (checking.asked_about(other, [audit]) == [audit]) == np.array_equal(other, batch)
    assert checking.asked_about(batch, [audit], threshold=0.1) == []
    assert checking.asked_about(batch, [audit], rows_digest=b"rows") == []
    by_ids = audit | {"digest": checking.request_digest(batch, **names, rows_digest=b"rows")}  # type: ignore[arg-type]
    assert checking.asked_about(batch, [by_ids], rows_digest=b"rows") == [by_ids]
    assert checking.asked_about(batch, [audit | {"epsilon": 0.0}]) == []
    assert checking.asked_about(batch, [audit | {"epsilon": 0.0}], epsilon=0.5)
    decided = np.array([0, 1, 1])
    sent = checking.request_digest(decided, **names, sent_as=np.uint8)  # type: ignore[arg-type]
    assert checking.asked_about(decided == 1, [audit | {"digest": sent}])


def test_the_command_says_in_one_line_what_is_wrong(tmp_path: Path, account: dict[str, Any], places: Places) -> None:
    page = put(tmp_path, *pairs_of_loans(account, places))
    page.write_bytes(TINY + b" ")
    for file in (page, page.with_name("page.intoto.json")):
        done = CliRunner().invoke(app, ["check", str(file), "--authority", str(places.authority)])
        assert done.exit_code == 1
        assert done.stdout == f"REFUSED: {file.name}: the page is not the one that was signed with this statement\n"
    for arguments in ((page,), (tmp_path / "x.txt", "--authority", places.authority)):
        said = fairwall("deploy", "ledger", "check", *arguments)
        assert (said.returncode, said.stdout) == (2, "")
        assert said.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("models", "given", "said"),
    [
        (1, (), "without a threshold (--threshold), without rows told by ids (--rows), without another epsilon than"),
        (2, ("--threshold", "0.1"), "with a threshold (--threshold), without rows told by ids (--rows)"),
        (2, ("--epsilon", "1"), "with another epsilon than was charged (--epsilon)"),
        (3, (), "none has so many models (3)"),
    ],
)
def test_predictions_that_are_not_found_are_told_what_may_be_missing(
    tmp_path: Path, account: dict[str, Any], places: Places, models: int, given: tuple[str, ...], said: str
) -> None:
    page = put(tmp_path, *pairs_of_loans(account, places))
    np.save(tmp_path / "p.npy", np.full((models, 10), 0.5))
    asked = ["check", str(page), "--authority", str(places.authority), "--predictions", str(tmp_path / "p.npy"), *given]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 1
    assert "NO batch on this page is about these predictions" in " ".join(done.stdout.split())
    assert said in " ".join(done.stdout.split())
    records = {1: "as many models are in record 5", 2: "as many models are in record 4"}
    assert records.get(models, "") in " ".join(done.stdout.split())
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_checked_is_what_was_stated(tmp_path: Path, account: dict[str, Any], places: Places) -> None:
    page = put(tmp_path, *pairs_of_loans(account, places))
    assert check(page.with_name("page.intoto.json"), authority=places.authority) == Checked(
        account, ("refused calls were not counted: no log was given",)
    )
