"""The user's folders, and files that are replaced as a whole."""

import os

import pytest

from interlingua.runtime.files import config_folder, data_folder, replace_file, write_private


def mode(path):
    return path.stat().st_mode & 0o777


def test_a_new_file_is_private_and_an_old_one_keeps_its_permissions(tmp_path):
    """Unless the file has to be private."""
    path = tmp_path / "a"
    replace_file(path, b"1")
    assert mode(path) == 0o600
    path.chmod(0o644)
    replace_file(path, b"2")
    assert (mode(path), path.read_bytes()) == (0o644, b"2")
    write_private(path, "ü")
    assert (mode(path), path.read_text("utf-8")) == (0o600, "ü")


def test_it_is_private_from_its_first_byte_on(tmp_path, monkeypatch):
    """Also while it is written, beside the old one, which is whole until then."""
    path, seen = tmp_path / "a", []
    path.write_text("old")
    sync = os.fsync

    def look(descriptor):
        seen.append([(mode(each), each == path or mode(each)) for each in tmp_path.iterdir()])
        assert path.read_text() == "old" or len(seen) > 1
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", look)
    write_private(path, "new")
    assert path.read_text() == "new"
    assert {private for _, private in seen[0]} == {True, 0o600}


def test_after_a_failure_the_old_one_is_there_and_nothing_else(tmp_path, monkeypatch):
    """A full disk, for instance."""
    path = tmp_path / "a"
    path.write_text("old")

    def fail(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        replace_file(path, b"new")
    assert [each.read_text() for each in tmp_path.iterdir()] == ["old"]


def test_a_folder_is_made_for_a_private_file(tmp_path):
    """Nobody else may look into it."""
    write_private(tmp_path / "made" / "a", "x")
    assert mode(tmp_path / "made") == 0o700


def test_the_folders(monkeypatch, tmp_path):
    """One variable names both; else each has the variable of its kind."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("INTERLINGUA_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert config_folder() == tmp_path / ".config" / "interlingua"
    assert data_folder() == tmp_path / ".local" / "share" / "interlingua"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert data_folder() == tmp_path / "data" / "interlingua"
    monkeypatch.setenv("INTERLINGUA_HOME", str(tmp_path / "all"))
    assert config_folder() == data_folder() == tmp_path / "all"
