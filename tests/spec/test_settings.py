"""`Request` is the one list of settings: what a new setting costs, and what is derived."""

import ast
import inspect
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from interlingua.spec.request import NEVER_SENT, NOT_SETTINGS, SAME_FOR_EVERY_MODEL, Request
from interlingua.spec.settings import ModelSettings, RequestSettings
from support.facts import NAMES

ROOT = Path(__file__).resolve().parents[2]
GENERATOR = "scripts/settings_types.py"
PARTS = Path(__file__).parent / "new_setting"
FIELDS = {*Request.__struct_fields__}


def hunks(patch):
    """The file, the lines before and the lines after of each hunk."""
    for part in re.split(r"^--- ", patch, flags=re.MULTILINE)[1:]:
        path, *places = part.split("@@\n")
        for place in places:
            lines = place.splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if line[0] != "+")
            after = "".join(line[1:] for line in lines if line[0] != "-")
            yield path.strip(), before, after


def test_a_new_setting_changes_at_most_four_files_and_one_in_each_dialect():
    """The patch of a setting that works everywhere is small; generated files are not in it."""
    changed = {path for path, *_ in hunks((PARTS / "patch.diff").read_text(encoding="utf-8"))}
    in_dialects = [path.split("/")[3] for path in changed if "/dialects/" in path]

    assert len(changed) - len(in_dialects) <= 4
    assert len(in_dialects) == len(set(in_dialects)) == len(NAMES)


def test_a_new_setting_works_everywhere(tmp_path):
    """It can be passed, is checked, saved, sent, read back, and dropped where a profile says no."""
    shutil.copytree(ROOT / "src", tmp_path / "src")
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / GENERATOR, tmp_path / GENERATOR)
    for name, before, after in hunks((PARTS / "patch.diff").read_text(encoding="utf-8")):
        path = tmp_path / name
        text = path.read_text(encoding="utf-8")
        assert text.count(before) == 1, f"{name}: the patch must follow the source: {before}"
        path.write_text(text.replace(before, after), encoding="utf-8")

    for program in (tmp_path / GENERATOR, PARTS / "program.py"):
        done = subprocess.run(
            [sys.executable, program],
            env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def test_the_types_are_those_that_the_generator_writes():
    """A changed field of `Request` must be followed by a run of the generator."""
    text = runpy.run_path(str(ROOT / GENERATOR))["settings_text"]()

    assert Path(inspect.getfile(RequestSettings)).read_text(encoding="utf-8") == text


def test_the_keywords_are_the_fields_of_a_request():
    """All but those that are no settings; those that differ by model are fewer."""
    assert RequestSettings.__annotations__.keys() == FIELDS - NOT_SETTINGS
    assert ModelSettings.__annotations__.keys() == FIELDS - NOT_SETTINGS - SAME_FOR_EVERY_MODEL


def test_a_type_checker_sees_every_field_of_a_request():
    """As a keyword of its own, or as one of the settings."""
    (source,) = ast.parse(inspect.getsource(Request)).body
    (unseen,) = (node for node in source.body if isinstance(node, ast.If))
    (constructor,) = unseen.body

    assert ast.unparse(unseen.test) == "TYPE_CHECKING"
    assert {argument.arg for argument in constructor.args.kwonlyargs} == NOT_SETTINGS
    assert ast.unparse(constructor.args.kwarg.annotation) == "Unpack[RequestSettings]"
    assert Request.__init__ is object.__init__  # at run time msgspec makes it, in `__new__`


@pytest.mark.parametrize("names", [NOT_SETTINGS, NEVER_SENT, SAME_FOR_EVERY_MODEL])
def test_what_is_listed_exists(names):
    """A name in a list of fields is a field."""
    assert names <= FIELDS
