import hashlib
from pathlib import Path

import msgspec
import pytest

from interlingua.local.model import SMOLLM2, cache_folder, find_model, installed, is_whole
from interlingua.spec.errors import ConfigurationError, NetworkError
from support.files import after_stat

CONTENT = b"GGUF of a model"
BUNDLE = msgspec.structs.replace(
    SMOLLM2,
    requirement="interlingua-has-no-such-model==1.0",
    package="a_wheel_of_tests",
    file="tiny.gguf",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
)


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """An installed package that holds the file, and that cannot be imported."""
    folder = tmp_path / "site" / BUNDLE.package
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("import a_package_that_is_not_there")
    (folder / BUNDLE.file).write_bytes(CONTENT)
    monkeypatch.syspath_prepend(folder.parent)
    return folder / BUNDLE.file


def test_the_checksum_is_that_of_the_real_file(gguf):
    """The file that pip brings today is the one the checksum was taken of."""
    with gguf.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == SMOLLM2.sha256
    assert gguf.stat().st_size == SMOLLM2.size


def test_a_named_file_comes_first(wheel, tmp_path, monkeypatch):
    """A path, also one of the home folder, is taken as it is."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "own.gguf").write_bytes(b"GGUF and more")

    assert find_model(tmp_path / "own.gguf", bundle=BUNDLE) == tmp_path / "own.gguf"
    assert find_model("~/own.gguf", bundle=BUNDLE) == tmp_path / "own.gguf"
    assert wheel.exists()


@pytest.mark.parametrize("content", [None, b"", b"PK of a zip"])
def test_a_named_file_that_is_none_is_an_error(tmp_path, content):
    """A path to nothing, or to something else, is said at once."""
    path = tmp_path / "own.gguf"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(ConfigurationError, match=r"own\.gguf"):
        find_model(path)


@pytest.mark.parametrize("count", [1, 2])
def test_a_file_may_be_removed_while_it_is_looked_at(tmp_path, monkeypatch, count):
    """Another process cleans the cache: the file is there, or it is not."""
    path = tmp_path / BUNDLE.file
    path.write_bytes(CONTENT)
    after_stat(monkeypatch, path, path.unlink, count)

    assert is_whole(path, BUNDLE)
    assert is_whole(path, BUNDLE) is (count == 2)


def test_a_named_file_is_looked_at_once(tmp_path, monkeypatch):
    """No other process can remove it between two looks."""
    path = tmp_path / "own.gguf"
    path.write_bytes(CONTENT)
    after_stat(monkeypatch, path, path.unlink)

    assert find_model(path) == path


def test_an_installed_wheel_is_found_without_importing_it(wheel, tmp_path):
    """The wheel's file is used where it lies, though its package needs others."""
    assert installed(BUNDLE) == wheel
    assert find_model(bundle=BUNDLE, cache=tmp_path / "cache") == wheel


def test_a_damaged_wheel_is_passed_over(wheel, tmp_path):
    """A file of another size is not the model; the cached one is."""
    wheel.write_bytes(CONTENT[:5])
    kept = tmp_path / BUNDLE.file
    kept.write_bytes(CONTENT)

    assert installed(BUNDLE) is None
    assert find_model(bundle=BUNDLE, cache=tmp_path) == kept


def test_what_is_nowhere_is_fetched(tmp_path, monkeypatch):
    """Without a wheel and without a cached file pip is asked."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")

    with pytest.raises(NetworkError, match=BUNDLE.requirement):
        find_model(bundle=BUNDLE, cache=tmp_path)


def test_the_cache_folder_follows_the_environment(tmp_path, monkeypatch):
    """`XDG_CACHE_HOME` decides; without it, it is below the user's home."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "interlingua"

    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder().is_relative_to(Path.home())
    assert cache_folder().name == "interlingua"
