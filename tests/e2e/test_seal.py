"""A sealed run: whoever may write all its files, but has not the key, cannot change one unseen."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sim.runs.folder import digests
from sim.runs.page import write_report
from sim.transcripts.files import anchors
from sim.verify.check import verify
from sim.verify.finding import VerifyFinding
from sim.verify.signature import SigningKeyError, new_key, sign
from tests.support.command import SMALL, fairwall, played

OTHER = "is not this key's signature of result.json as it is now"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    (folder / "small.toml").write_text(SMALL.replace("trials = 3", "trials = 1"))
    return played(folder, "small.toml")


@pytest.fixture
def sealed(run: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A sealed run, and the public key of its seal."""
    folder = Path(shutil.copytree(run, tmp_path / "run"))
    public = new_key(tmp_path / "key.pem")
    sign(folder, tmp_path / "key.pem")
    return folder, public


def test_the_command_makes_a_key_seals_a_run_and_checks_the_seal(run: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(run, tmp_path / "run"))
    done = fairwall("results", "seal", folder, "--key", "key.pem", "--new-key", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"public key: key.pem.pub\nsignature: {folder}/result.json.sig\n"
    assert stat.S_IMODE((tmp_path / "key.pem").stat().st_mode) == 0o600
    done = fairwall("verify", folder, "--public-key", "key.pem.pub", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "no findings" in done.stdout
    assert "result.json.sig" not in done.stdout
    done = fairwall("verify", folder, cwd=tmp_path)
    assert "note: not checked: result.json.sig, since no public key was given (--public-key)" in done.stdout
    done = fairwall("report", folder)
    assert done.returncode == 0
    assert verify(folder, tmp_path / "key.pem.pub").findings == ()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_openssl_makes_keys_for_it_and_checks_its_signature(run: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(run, tmp_path / "run"))

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=tmp_path, check=True, capture_output=True, umask=0o077)

    openssl("genpkey", "-algorithm", "ed25519", "-out", "key.pem")
    openssl("pkey", "-in", "key.pem", "-pubout", "-out", "key.pub")
    sign(folder, tmp_path / "key.pem")
    assert verify(folder, tmp_path / "key.pub").findings == ()
    given = ("-rawin", "-in", "run/result.json", "-sigfile", "run/result.json.sig")
    openssl("pkeyutl", "-verify", "-pubin", "-inkey", "key.pub", *given)


def forged(folder: Path) -> None:
    """Make trials better, and have every other file of the run agree."""
    lines = [json.loads(line) for line in (folder / "trials.jsonl").read_text().splitlines()]
    lines[0]["seconds"] += 1  # the referee's clock: nothing else of the run speaks of it
    (folder / "trials.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = json.loads((folder / "result.json").read_text())
    result |= {"files": digests(folder), "transcripts": anchors(folder)}
    (folder / "result.json").write_text(json.dumps(result, indent=2) + "\n")
    write_report(folder)


@pytest.mark.check
def test_a_run_that_was_written_anew_as_a_whole_passes_without_its_seal_and_not_with_it(
    sealed: tuple[Path, Path],
) -> None:
    folder, public = sealed
    forged(folder)
    assert verify(folder).findings == ()
    assert verify(folder, public).findings == (VerifyFinding("seal", "result.json.sig", OTHER),)


@pytest.mark.check
def test_a_seal_of_another_key_is_none(sealed: tuple[Path, Path], tmp_path: Path) -> None:
    folder, public = sealed
    new_key(tmp_path / "other.pem")
    sign(folder, tmp_path / "other.pem")
    assert verify(folder, public).findings == (VerifyFinding("seal", "result.json.sig", OTHER),)
    (folder / "result.json.sig").write_bytes(b"")
    assert verify(folder, public).findings == (VerifyFinding("seal", "result.json.sig", OTHER),)
    (folder / "result.json.sig").unlink()
    missing = VerifyFinding("seal", "result.json.sig", "is missing: the run was not sealed")
    assert verify(folder, public).findings == (missing,)


def readable(folder: Path) -> None:
    new_key(folder / "key.pem")
    (folder / "key.pem").chmod(0o640)


def under_a_password(folder: Path) -> None:
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    password = form.BestAvailableEncryption(b"secret")
    text = Ed25519PrivateKey.generate().private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, password)
    written(folder, text)


def of_another_kind(folder: Path) -> None:
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    written(folder, key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()))


def written(folder: Path, text: bytes) -> None:
    with os.fdopen(os.open(folder / "key.pem", os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
        file.write(text)


NO_KEY = "no Ed25519 private key in PEM, or under a password"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda _: None, "cannot be read: No such file or directory"),
        (readable, "others than its owner can use it; chmod 600 it"),
        (lambda folder: written(folder, b"key"), NO_KEY),
        (under_a_password, NO_KEY),
        (of_another_kind, NO_KEY),
    ],
)
def test_a_key_that_cannot_be_used_is_one_line(
    run: Path, tmp_path: Path, make: Callable[[Path], Any], why: str
) -> None:
    make(tmp_path)
    with pytest.raises(SigningKeyError, match=why):
        sign(run, tmp_path / "key.pem")
    assert not (run / "result.json.sig").exists()


def test_a_key_that_lies_in_the_run_by_another_way_is_refused(run: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(run, tmp_path / "run"))
    (tmp_path / "elsewhere").symlink_to(folder)
    with pytest.raises(SigningKeyError, match="inside the run's folder"):
        sign(folder, tmp_path / "elsewhere" / "key.pem")


def test_a_key_in_the_run_and_a_public_key_that_is_none_are_one_line(run: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(run, tmp_path / "run"))
    done = fairwall("results", "seal", folder, "--key", folder / "key.pem", "--new-key")
    assert done.returncode == 2
    assert done.stderr == (
        f"fairwall: {folder}/key.pem: inside the run's folder, which it is to protect: keep it elsewhere\n"
    )
    assert not (folder / "key.pem").exists()
    done = fairwall("verify", folder, "--public-key", folder / "scenario.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"fairwall: {folder}/scenario.toml: no Ed25519 public key in PEM\n"


def test_a_key_is_never_overwritten(run: Path, tmp_path: Path) -> None:
    new_key(tmp_path / "key.pem")
    before = (tmp_path / "key.pem").read_bytes()
    for gone in ("none", "key.pem"):
        (tmp_path / gone).unlink(missing_ok=True)
        with pytest.raises(SigningKeyError, match="is there already; a key is never overwritten"):
            new_key(tmp_path / "key.pem")
    assert b"PRIVATE" in before
    assert not (tmp_path / "key.pem").exists()


@pytest.mark.parametrize(
    ("result", "why"),
    [(None, "not a run's folder: it has no result.json"), ({"files": {}}, "the run is going on, or was killed")],
)
def test_only_a_run_that_has_ended_is_sealed(tmp_path: Path, result: Any, why: str) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    if result is not None:
        (folder / "result.json").write_text(json.dumps(result))
    done = fairwall("results", "seal", folder, "--key", tmp_path / "key.pem", "--new-key")
    assert done.returncode == 2
    assert done.stderr.startswith(f"fairwall: {folder}: ")
    assert why in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "key.pem").exists()
