"""Signatures, and the list of keys that are believed."""

from __future__ import annotations

import stat
import subprocess
import sys
from base64 import b64encode
from pathlib import Path

import pytest

from remegraph.errors import InputError, SetupError, SignatureError
from remegraph.mek.items import SigningKey, TrustStore
from remegraph.models import Signature

_KEY = SigningKey.generate()
_STORE = TrustStore().trusting("ann", _KEY.public)


def test_what_was_signed_is_known_as_its_signers() -> None:
    """Whom a pack comes from decides how far it is believed."""
    key = _STORE.verify(b"words", _KEY.sign(b"words", purpose="pack"), purpose="pack")
    assert (key.name, key.key_id) == ("ann", _KEY.key_id)


@pytest.mark.parametrize(("data", "purpose"), [(b"wordz", "pack"), (b"words", "item"), (b"", "pack")])
def test_a_signature_holds_for_its_content_and_its_purpose_only(data: bytes, purpose: str) -> None:
    """A signature of one thing must not be worth anything under another."""
    with pytest.raises(SignatureError, match="not one of ann"):
        _STORE.verify(data, _KEY.sign(b"words", purpose="pack"), purpose=purpose)


def test_nobody_signs_in_anothers_name() -> None:
    """The key's id stands in the signature; only the key itself can make the rest."""
    other = SigningKey.generate().sign(b"words", purpose="pack")
    with pytest.raises(SignatureError, match="unknown"):
        _STORE.verify(b"words", other, purpose="pack")
    with pytest.raises(SignatureError, match="not one of ann"):
        _STORE.verify(b"words", other.evolve(key_id=_KEY.key_id), purpose="pack")


def test_a_revoked_key_is_believed_no_more_and_stays_revoked() -> None:
    """Whoever stole a key must not bring it back by asking for it to be trusted again."""
    revoked = _STORE.without(_KEY.key_id)
    with pytest.raises(SignatureError, match="revoked"):
        revoked.verify(b"words", _KEY.sign(b"words", purpose="pack"), purpose="pack")
    with pytest.raises(InputError, match="revoked"):
        revoked.trusting("ann again", _KEY.public)


def test_a_key_in_a_file_is_its_owners_alone(tmp_path: Path) -> None:
    """A private key that others can read is theirs, too; one that is overwritten is lost."""
    path = tmp_path / "ann.key"
    _KEY.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert SigningKey.open(path).key_id == _KEY.key_id
    with pytest.raises(InputError, match="new file"):
        _KEY.save(path)


def test_the_list_of_keys_survives_its_file(tmp_path: Path) -> None:
    """A revocation that is forgotten over night is none."""
    path = tmp_path / "trusted.json"
    assert TrustStore.open(path).keys == ()
    store = _STORE.trusting("bob", SigningKey.generate().public).without(_KEY.key_id)
    store.save(path)
    assert TrustStore.open(path).keys == store.keys


@pytest.mark.parametrize("text", ["", "[]", "{", '{"keys": 1}', '{"keys": [{"name": "a", "public": "b"}]}', "[" * 9000])
def test_a_broken_list_of_keys_is_no_empty_one(tmp_path: Path, text: str) -> None:
    """Taken for empty, it would be written anew without its revocations."""
    path = tmp_path / "trusted.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SetupError, match="cannot be read"):
        TrustStore.open(path)


@pytest.mark.parametrize("public", ["", "no base64", b64encode(b"short").decode()])
def test_only_keys_are_trusted(public: str) -> None:
    """A typing error shows at once, not when the first pack is refused."""
    with pytest.raises(InputError, match="public key"):
        TrustStore().trusting("ann", public)


@pytest.mark.parametrize("text", ["", "-----BEGIN PRIVATE KEY-----", "what else"])
def test_a_file_that_holds_no_key_is_refused(tmp_path: Path, text: str) -> None:
    """The error names the file, and how to make one."""
    path = tmp_path / "ann.key"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"ann\.key"):
        SigningKey.open(path)


def test_a_signature_survives_json() -> None:
    """It travels with what it signs."""
    signature = _KEY.sign(b"words", purpose="item")
    assert Signature.from_json(signature.to_json()) == signature


def test_without_the_extra_a_kit_opens_and_what_signs_says_what_to_install(tmp_path: Path) -> None:
    """Most who remember share nothing, and cryptography is compiled code that not every machine has."""
    script = (
        "import sys\n"
        "sys.modules['cryptography'] = None\n"
        "import remegraph\n"
        "from remegraph.errors import MissingExtraError\n"
        f"remegraph.MemoryKit.open({str(tmp_path)!r}, model=None, embedder=None).close()\n"
        "import remegraph.cli.sharing\n"
        "from remegraph.mek.items import SigningKey\n"
        "try:\n    SigningKey.generate()\nexcept MissingExtraError as error:\n    print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "remegraph[sharing]" in run.stdout
