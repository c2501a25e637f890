"""The shape of the project: sizes, names, purity."""

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from types import FunctionType

import pytest

import interlingua
from interlingua import dialects, transport
from interlingua.prepare.history import target
from interlingua.spec.contracts import Profile
from interlingua.version import USER_AGENT
from support.sources import SOURCE, parsed, statements

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(SOURCE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
FUNCTION_LINES = 60
FILE_LINES = 700
WORDS_WITH_DIGITS = r"base64|ipv[46]|utf_8|httpx?2|sigv4|(?:8|32)_bit|exit_code_1|[2-5]\d\d"


def test_files_are_not_too_long():
    """A file is as long as its subject, and no longer than one can keep in mind."""
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}

    assert {str(path): size for path, size in lengths.items() if size > FILE_LINES} == {}
    assert len(lengths) > 100


def test_functions_can_be_seen_whole():
    """Every function is shorter than 60 lines."""
    long = [
        f"{path}:{node.lineno} {node.name}"
        for path, tree in parsed(rf"(?:.*\n){{{FUNCTION_LINES}}}")
        for node in statements(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.end_lineno - node.lineno >= FUNCTION_LINES
    ]

    assert long == []


def test_public_names_are_few_and_listed():
    """At most 60, each once; what a type checker sees is what the table loads."""
    names = interlingua.__all__

    assert len(names) == len(set(names)) <= 60
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    types = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        (node.module, alias.name)
        for node in types.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }
    loaded = {(f"interlingua.{module}", name) for name, module in interlingua._HOME.items()}
    assert seen == loaded | {("interlingua", name) for name in interlingua._MODULES}
    assert set(interlingua._HOME) == {*names, *interlingua._UNLISTED}
    assert {"Warning", "errors", *names} <= {*dir(interlingua)}


@pytest.mark.parametrize("name", interlingua._MODULES)
def test_public_modules(name):
    """Each says when to import from it, and lists its names."""
    module = getattr(interlingua, name)

    assert len((module.__doc__ or "").strip().splitlines()) >= 3
    listed = module.__all__
    assert len(listed) == len(set(listed)) > 0
    for public in listed:
        importlib.import_module(f"interlingua.{name}.{public}") if name == "conformance" else None
        value = getattr(module, public)
        if isinstance(value, (type, FunctionType)):
            assert (value.__doc__ or "").strip(), public


def test_a_name_has_one_public_home():
    """What is in a module is not in another; only the base of all errors is in two places."""
    homes = {}
    # `sync` has the same names; `files.list` and the like are called by their module's name.
    prefixed = {"batch", "bulk", "files", "sync", "video"}
    for name in ("", *set(interlingua._MODULES) - prefixed):
        module = getattr(interlingua, name) if name else interlingua
        for public in module.__all__:
            homes.setdefault(public, set()).add(name)
    several = {public: where for public, where in homes.items() if len(where) > 1}

    assert several == {"SDKError": {"", "errors"}}


def test_no_module_hides_a_function():
    """Whatever was imported, `interlingua.stream` and the others are functions."""
    code = (
        "import importlib, pkgutil, interlingua\n"
        "for found in pkgutil.walk_packages(interlingua.__path__, 'interlingua.'):\n"
        "    if not found.name.endswith('__main__'):\n"
        "        importlib.import_module(found.name)\n"
        "names = [n for n in interlingua.__all__ if n[0].islower()]\n"
        "print([n for n in names if not callable(getattr(interlingua, n))], len(names) > 9)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout

    assert printed.strip() == "[] True"


def test_the_version():
    """It is the project's, and part of what requests say they come from."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert interlingua.__version__ == project["version"]
    assert f"interlingua/{interlingua.__version__}" == USER_AGENT


def test_public_classes_and_functions_have_a_sentence():
    """What users see is documented."""
    for public in interlingua.__all__:
        value = getattr(interlingua, public)
        if isinstance(value, (type, FunctionType)):
            assert (value.__doc__ or "").strip(), public


def test_import_is_light():
    """Importing the package loads no event loop, no sockets and no TLS."""
    heavy = "asyncio ssl socket httptools logging threading random"
    code = f"import sys, interlingua; print([m for m in '{heavy}'.split() if m in sys.modules])"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout

    assert loaded.strip() == "[]"


def test_what_is_loaded_on_use():
    """Names and the blocking half come when they are asked for; nothing else does."""
    assert interlingua.sync.generate.__module__ == "interlingua.sync.functions"
    with pytest.raises(AttributeError, match="no attribute 'genrate'"):
        interlingua.genrate  # noqa: B018 -- it is what raises


def test_typed():
    """The package tells type checkers that it is typed."""
    assert (SOURCE / "py.typed").exists()


def test_transports_are_found_in_one_place():
    """Each that is named is there, and a name that is not is an error."""
    names = transport.__all__

    assert {getattr(transport, name).__name__ for name in names} == {*names}
    with pytest.raises(AttributeError, match="no attribute 'Telegraph'"):
        transport.Telegraph  # noqa: B018


def test_no_dialect_is_named_outside_its_folder():
    """What is true of a dialect is in its facts: nothing else asks which dialect it is."""
    names = re.compile("|".join(dialects.names()))
    naming = {
        place
        for path in FILES
        if not (place := path.relative_to(SOURCE).as_posix()).startswith("dialects/")
        and names.search(path.read_text(encoding="utf-8"))
    }

    # A row names the dialect that its provider speaks.
    assert {Path(place).parent.as_posix() for place in naming} == {"providers/row_tables"}


def test_every_profile_field_is_read():
    """A capability that nothing reads would promise what nothing keeps."""
    unread = {*Profile.__struct_fields__} - {*target._WITH, *target._WITHOUT}
    for _, tree in parsed(rf"\.(?:{'|'.join(unread)})\b"):
        unread -= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        if not unread:
            break

    assert unread == set()


def test_the_names_of_tests_are_words():
    """A name says a behaviour; the number of an entry in some list says nothing."""
    words = re.compile(rf"(?<=_)(?:{WORDS_WITH_DIGITS})(?=_|$)")
    names = [path.stem for path in TESTS]
    for path in TESTS:
        names += re.findall(r"^ *(?:async )?def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)

    assert len(names) > 5000
    assert [name for name in names if re.search(r"\d", words.sub("", name))] == []


def tracked():
    """The paths of the files in the repository."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)  # noqa: PLW1510, S607
    if listed.returncode:
        pytest.skip("this is no clone of the repository")
    return listed.stdout.splitlines()


def test_the_root_has_only_what_belongs_there():
    """A file that a program wrote by chance is not kept."""
    names = {path.partition("/")[0] for path in tracked()}

    assert names == {
        ".ci", ".github", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "NOTICE",
        "README.md", "SECURITY.md", "benchmarks", "docs", "examples", "mkdocs.yml",
        "pyproject.toml", "requirements", "scripts", "src", "tests",
    }  # fmt: skip


def test_no_database_is_kept():
    """Stores are written to temporary folders."""
    assert [path for path in tracked() if re.search(r"\.(db|sqlite)(-\w+)?$", path)] == []


def test_no_test_opens_a_store_beside_the_sources():
    """A relative path leads to wherever the tests were started."""
    relative = re.compile(r"(?:Session|SQLite)Store\(\s*[\"'][^\"':]")
    files = [path for path in TESTS if path.name != "test_layout.py"]

    assert [str(path) for path in files if relative.search(path.read_text("utf-8"))] == []


def test_the_page_about_tests_names_every_room_and_helper():
    """`tests/README.md` is a map, so nothing on it may be missing."""
    page = (ROOT / "tests" / "README.md").read_text("utf-8")
    rooms = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}
    helpers = {path.stem for path in (ROOT / "tests" / "support").glob("*.py")}

    wanted = {f"`{name}`" for name in rooms | helpers} - {
        "`__pycache__`",
        "`fixtures`",
        "`support`",
    }
    assert {name for name in wanted if name not in page} == set()


def messages():
    """The literal messages of errors, with `…` for what is filled in, and where they are."""
    for path, tree in parsed(r"Error\("):
        for node in ast.walk(tree):
            name = getattr(getattr(node, "func", None), "id", "")
            if not (isinstance(node, ast.Call) and name.endswith("Error") and node.args):
                continue
            parts = getattr(node.args[0], "values", [node.args[0]])
            texts = [part.value if isinstance(part, ast.Constant) else "…" for part in parts]
            if any(isinstance(text, str) and text != "…" for text in texts):
                yield f"{path.name}:{node.lineno}", name, "".join(map(str, texts))


# Errors that no user of the library reads: they are caught inside it, or stand for a defect.
INTERNAL = {"AssertionError", "ValueError", "DatabaseError"}
# A message may begin with the name of an option, field or function, as a program writes it.
NAMED = re.compile(r"\w+[_.=\[…(]|(?:messages|middleware|options|prompt|tools|transport)\b")


def test_error_messages_are_sentences():
    """They begin with a capital letter or a name, and end with a full stop or what is filled in."""
    wrong = [
        f"{place} {text}"
        for place, name, text in messages()
        if name not in INTERNAL
        and not (
            (text[0].isupper() or text[0] in "…`'\"-(" or NAMED.match(text))
            and text.rstrip().endswith((".", "?", "…", ":"))
        )
    ]

    assert wrong == []


def public_functions():
    """The public functions and the public methods of public classes, by name."""
    for name in ("", *interlingua._MODULES):
        module = getattr(interlingua, name) if name else interlingua
        for public in module.__all__:
            if not hasattr(module, public):  # a module that nobody has imported yet
                import_module(f"{module.__name__}.{public}")
            value = getattr(module, public)
            members = vars(value).items() if isinstance(value, type) else [("", value)]
            for member, function in members:
                function = getattr(function, "__func__", function)  # noqa: PLW2901 -- classmethods
                if isinstance(function, FunctionType) and not member.startswith("_"):
                    yield f"{name}.{public}.{member}".strip("."), function


NOUNS = re.compile(
    r"(?:The|An?|What|Which|Whether|How|All|One|Each|Every|As|Like|This|It|Its|More|Several|True"
    r"|False|None|Where|When|Why|Who|No|If|Some|Any|Both|Those|These|That)\b|`|$"
)


def test_docstrings_of_public_functions_begin_with_a_verb():
    """They say what a function does: "Return the vectors", not "The vectors"."""
    documented = {
        name: (function.__doc__ or "").strip()
        for name, function in public_functions()
        if function.__module__.startswith("interlingua")
    }

    assert [name for name, text in documented.items() if NOUNS.match(text)] == []
    assert len(documented) > 400
