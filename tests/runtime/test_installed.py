"""Entry points of other packages, which are looked for without loading what reads them."""

import subprocess
import sys
import zipfile
from importlib.machinery import PathFinder

import pytest

from interlingua.runtime.installed import entry_points_of, may_have

GROUP = "interlingua.providers"
LIST = f"[console_scripts]\nx = x:main\n\n[{GROUP}]\ntheirs = a_package:ROW\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The only folder that is searched, by the usual finder alone."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "meta_path", [PathFinder])
    return tmp_path


def describe(folder, text, kind="dist-info"):
    """Install a package whose entry points are these."""
    info = folder / f"a_package-1.0.{kind}"
    info.mkdir()
    (info / "METADATA").write_text("Name: a_package\nVersion: 1.0\n", encoding="utf-8")
    (info / "PKG-INFO").write_text("Name: a_package\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("kind", ["dist-info", "egg-info", "Dist-Info"])
def test_an_entry_point_is_found(folder, kind):
    """As `importlib.metadata` finds it."""
    describe(folder, LIST, kind)

    (point,) = entry_points_of(GROUP)

    assert (point.name, point.value, point.group) == ("theirs", "a_package:ROW", GROUP)


def test_without_one_nothing_is_asked(folder):
    """Neither with packages of other groups, nor in a folder that is not there."""
    describe(folder, "[console_scripts]\nx = x:main\n")
    sys.path.append(str(folder / "gone"))

    assert not may_have(GROUP)
    assert [*entry_points_of(GROUP)] == []


def test_what_the_files_do_not_tell_is_asked(folder, monkeypatch):
    """Of an archive, and where another finder knows packages."""
    archive = folder / "packages.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("a_package-1.0.dist-info/METADATA", "Name: a_package\nVersion: 1.0\n")
        packed.writestr("a_package-1.0.dist-info/entry_points.txt", LIST)
    sys.path.append(str(archive))
    assert [point.name for point in entry_points_of(GROUP)] == ["theirs"]

    class Other:
        def find_distributions(self, _context):
            return ()

    sys.path.pop()
    assert not may_have(GROUP)
    monkeypatch.setattr(sys, "meta_path", [PathFinder, Other()])
    assert may_have(GROUP)


def test_all_providers_without_what_reads_packages():
    """A client from the environment does not load `importlib.metadata`, which takes 20 ms."""
    code = (
        "import sys; from interlingua import Client; Client.from_env({'OPENAI_API_KEY': 'k'})\n"
        "from interlingua.runtime.installed import may_have\n"
        f"print('importlib.metadata' in sys.modules, may_have({GROUP!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout in ("False False\n", "True True\n")  # a package of this machine may have one
