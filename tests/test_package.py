"""What is built, locked and published is what was reviewed."""

import ast
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

specification = importlib.util.spec_from_file_location(
    "check_wheel", ROOT / "scripts" / "check_wheel.py"
)
check_wheel = importlib.util.module_from_spec(specification)
specification.loader.exec_module(check_wheel)


def build(folder, kind="wheel"):
    """Build the wheel or the sdist of the working tree; returns its path."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)],
        cwd=ROOT,
        env={**os.environ, "SOURCE_DATE_EPOCH": "1750000000"},
        capture_output=True,
        check=True,
    )
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return build(tmp_path_factory.mktemp("sdist"), "sdist")


def test_the_wheel(wheel, tmp_path, capsys):
    """It has the same bytes each time, only the package in it, no `.pth`, and a bounded size."""
    assert build(tmp_path / "again").read_bytes() == wheel.read_bytes()
    assert check_wheel.check_contents(wheel) == []
    assert "bytes (limit" in capsys.readouterr().out


def test_the_source_distribution(sdist, capsys):
    """It has what the wheel is made of, and the tests with all that they read."""
    assert check_wheel.check_sdist(sdist) == []
    assert "bytes" in capsys.readouterr().out


def test_the_tests_of_the_source_distribution_run(sdist, tmp_path):
    """
    Where it is unpacked, beside no repository; `scripts/build --test` runs all, offline.

    These read the package, the fixtures and the files beside the tests.
    """
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (folder,) = (tmp_path / "unpacked").iterdir()
    tests = ("wire/test_sse.py", "laws/test_vendor_fields.py", "test_package.py::test_locks")

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
         *(f"tests/{test}" for test in tests)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_the_check_of_a_source_distribution_can_fail(tmp_path, capsys):
    """A file that is not needed is found, beside the package and in it; so is one that lacks."""
    sdist = tmp_path / "interlingua-0.1.0.tar.gz"
    with tarfile.open(sdist, "w:gz") as archive:
        for name in ("notes/a.py", "src/interlingua/notes.txt", "todo.md", "README.md"):
            (tmp_path / "file").write_text("x")
            archive.add(tmp_path / "file", f"interlingua-0.1.0/{name}")

    problems = check_wheel.check_sdist(sdist)

    assert "notes is not needed in the source distribution" in problems
    assert "todo.md is not needed in the source distribution" in problems
    assert "interlingua/notes.txt is not needed" in problems
    assert {"LICENSE is missing", "tests is missing"} <= {*problems}
    capsys.readouterr()


def test_the_check_of_a_wheel_can_fail(wheel, tmp_path, monkeypatch, capsys):
    """A file that would run code at each start of Python is found; so is one too many, or size."""
    wheel = Path(shutil.copy(wheel, tmp_path))
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("surprise.pth", "import os")
        archive.writestr("interlingua/notes.txt", "Remember.")
    monkeypatch.setattr(check_wheel, "WHEEL_LIMIT", 1000)

    problems = " ".join(check_wheel.check_contents(wheel))

    assert "surprise.pth is outside the package" in problems
    assert "surprise.pth would run code" in problems
    assert "interlingua/notes.txt is not needed" in problems
    assert "the limit is 1,000" in problems
    capsys.readouterr()


def test_the_notice():
    """It names each collection that the catalog is built from, and has their licence."""
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")
    script = (ROOT / "scripts" / "update_catalog").read_text(encoding="utf-8")
    (pins,) = (
        ast.literal_eval(re.sub(r"date\(.*?\)", "0", ast.unparse(node.value)))
        for node in ast.parse(script).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PINS"
    )
    distribution = importlib.metadata.distribution("genai-prices")
    licence = distribution.read_text("licenses/LICENSE")
    owner = re.search(r"Copyright .*", licence)[0]

    assert re.findall(r"^- ([\w-]+)[^:]*: Copyright", notice, re.MULTILINE) == [*pins]
    assert f"- genai-prices: {owner}\n" in notice
    assert licence.partition(owner)[2].split() == notice.partition("The MIT License:")[2].split()


def test_the_import_does_nothing():
    """`import interlingua` opens no file but modules, no socket, and reads no variable."""
    done = subprocess.run(
        [sys.executable, "-c", check_wheel.IMPORT], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    modules, foreign = json.loads(done.stdout)
    assert modules <= check_wheel.MODULES_LIMIT
    assert foreign == []


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_locks(lock):
    """Each package has one version and its hashes; no address is named."""
    text = lock.read_text(encoding="utf-8")
    entries = re.findall(
        r"^(\S+?)==\S+(?: ;[^\\\n]*)? \\\n((?: +--hash=sha256:\w{64}.*\n)+)", text, re.MULTILINE
    )

    assert len(entries) == len(re.findall(r"^\w.*==", text, re.MULTILINE)) > 0
    assert "://" not in text


@pytest.mark.parametrize("name", ["core", "dev"])
def test_the_locks_are_up_to_date(name):
    """What pyproject.toml asks for is locked at a fitting version (else: scripts/lock)."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    pairs = re.findall(r"^(\S+?)(?:\[\S+\])?==([^\s;]+)", text, re.MULTILINE)
    versions: dict[str, set[str]] = {}
    for package, version in pairs:
        versions.setdefault(package, set()).add(version)
    wanted = PROJECT["dependencies"] + (
        PROJECT["optional-dependencies"]["dev"] if name == "dev" else []
    )
    for requirement in map(Requirement, wanted):
        package = re.sub(r"[-_.]+", "-", requirement.name).lower()
        found = versions.get(package, set())
        assert found, f"{package} is not locked; run scripts/lock"
        assert all(map(requirement.specifier.contains, found)), f"{package}: run scripts/lock"


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows(workflow):
    """They use actions at fixed commits and no secrets, and may write only an identity token."""
    text = workflow.read_text(encoding="utf-8")
    content = yaml.safe_load(text)

    assert content["permissions"] == {"contents": "read"}
    assert "secrets." not in text
    for name, job in content["jobs"].items():
        assert job.get("permissions", {}) == ({"id-token": "write"} if name == "publish" else {})
        for step in job["steps"]:
            assert "uses" not in step or re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step["uses"])


def test_every_promised_python_is_tested():
    """The versions of the metadata are those of the workflows: the suite, and an installation."""
    promised = re.findall(r":: (3\.\d+)\n", "\n".join([*PROJECT["classifiers"], ""]))
    for workflow, job in [("test", "suite"), ("test", "install"), ("publish", "install")]:
        jobs = yaml.safe_load((ROOT / ".github" / "workflows" / f"{workflow}.yml").read_text())[
            "jobs"
        ]

        assert jobs[job]["strategy"]["matrix"]["python"] == promised


def test_the_issue_templates():
    """Each has a name, a description and fields with labels; people are asked for no key."""
    folder = ROOT / ".github" / "ISSUE_TEMPLATE"
    forms = [yaml.safe_load(path.read_text()) for path in folder.glob("[!c]*.yml")]

    assert len(forms) >= 3
    for form in forms:
        assert form["name"]
        assert form["description"]
        assert all(field["attributes"]["label"] for field in form["body"])


def test_the_metadata():
    """What an index shows: no classifier twice, licences that are files, no invented address."""
    classifiers = PROJECT["classifiers"]

    assert classifiers == sorted(set(classifiers))
    assert all((ROOT / name).is_file() for name in PROJECT["license-files"])
    assert "urls" not in PROJECT  # the project has no public address yet
