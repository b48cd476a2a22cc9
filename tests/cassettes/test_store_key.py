"""The key of a store."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from secondtake.cassettes.errors import Corrupt
from secondtake.cassettes.store import Store


def test_the_key_is_made_once_and_kept_private(tmp_path: Path) -> None:
    """SECURITY C4: 256 random bits per store, 0600, outside the cassettes."""
    store = Store(tmp_path)
    key = store.key(lambda size: bytes(range(size)))
    assert key == bytes(range(32))
    assert store.key(os.urandom) == key
    assert (store.root / "key").read_bytes() == key
    assert (store.root / "key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_a_key_of_another_length_is_damage(tmp_path: Path) -> None:
    """A wrong key would make new fingerprints without a word."""
    (tmp_path / "key").write_bytes(bytes(31))
    with pytest.raises(Corrupt):
        Store(tmp_path).key(os.urandom)
    (tmp_path / "key").unlink()
    (tmp_path / "key").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Exception, match="key"):
        Store(tmp_path).key(os.urandom)


def test_all_who_ask_at_once_get_the_same_key(tmp_path: Path) -> None:
    """B4.6: one key per store, whoever comes first."""
    keys: list[bytes] = []
    threads = [threading.Thread(target=lambda: keys.append(Store(tmp_path / "store").key(os.urandom))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(keys) == 8
    assert len(set(keys)) == 1
