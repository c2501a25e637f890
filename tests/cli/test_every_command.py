"""Every command and every option with bad values: two lines at most, in the words of a terminal."""

import re

import click
import pytest

from interlingua.cli.commands import COMMANDS, program
from support.cli import KEY, MODEL, simulated

DOWN = "http://127.0.0.1:1"
SPEAKS_PYTHON = re.compile(r"(?<![?&\w])[a-z_]+=['\"\w]|\w\(\w*=|Traceback|\bNone\b|\bdict\b")
"""Arguments, calls and types: a user of a terminal can do nothing with them."""
FIRST = {
    "ask": f"-n -m {MODEL} Hi", "chat": f"-n -m {MODEL}", "explain": f"-m {MODEL} Hi",
    "compare": f"-n -m {MODEL} Hi", "embed": "-m openai:text-embedding-3-small Hi",
    "embed-many": "notes rows.csv -m openai:text-embedding-3-small", "similar": "notes -c Hi",
    "image": "-m openai:gpt-image-1 -o made.png Fox", "speak": "-m openai:tts-1 -o made.mp3 Hi",
    "transcribe": "-m openai:whisper-1 sound.mp3", "keys set": "openai", "keys get": "openai",
    "keys remove": "openai", "alias set": f"short {MODEL}", "alias remove": "short",
    "templates show": "none", "templates edit": "none", "templates remove": "none",
    "fragments set": "notes rows.csv", "fragments show": "none", "fragments remove": "none",
    "schemas show": "none", "schemas expand": "name", "chats show": "none",
    "chats rename": "none other", "chats export": "none", "chats remove": "none",
    "log search": "Hi", "log backup": "copy.db", "collections delete": "none --yes",
    "check": "no_dialect", "translate": "rows.csv --from openai_chat --to anthropic_messages",
    "connect": "claude --check", "reprice": "rows.csv", "record": "made.jsonl true",
    "replay": "rows.csv true", "serve": "--check", "simulate": "--check",
    "video create": "-m gemini:veo-3.1-generate-001 --no-wait Sea",
    "batch submit": f"rows.csv -m {MODEL}", "batch status": "openai:none",
    "batch results": "openai:none", "batch cancel": "openai:none", "video get": "openai:none",
    "bulk run": f"rows.csv -m {MODEL}", "bulk status": "rows.csv", "bulk export": "rows.csv made",
    "completion": "bash",
}  # fmt: skip
"""Arguments with which a command has all that it needs."""
ENDLESS = {"serve", "simulate", "local run", "local pull"}
"""Commands that would run for long, or download: they get only values that are refused at once."""


def leaves():
    """Each command and subcommand, by its words."""
    context = click.Context(program)
    for name in COMMANDS:
        found = program.get_command(context, name)
        if isinstance(found, click.Group):
            yield from ((f"{name} {sub}", each) for sub, each in found.commands.items())
        else:
            yield name, found


def bad_values(name, option):
    """Values of an option that it must refuse, or that lead nowhere."""
    kind, flag = option.type, max(option.opts, key=len)
    if option.is_flag or flag == "--help":
        return
    if isinstance(kind, (click.Choice, click.types.IntParamType, click.types.FloatParamType)):
        yield (flag, "wrong")
    elif isinstance(kind, click.IntRange | click.FloatRange):
        yield (flag, "wrong")
        yield (flag, "-5")
    elif name not in ENDLESS and option.name in ("model", "models"):
        yield from ((flag, value) for value in ("nobody:x", "mistral:x", "", ":", "zzzz"))
    elif name in ENDLESS:
        return
    elif "FILE" in (option.metavar or "") or isinstance(kind, click.Path):
        yield from ((flag, *[value] * option.nargs) for value in ("none/none.txt", "folder"))
    else:
        yield (flag, *["\x01 wrong"] * option.nargs)


def cases(name, command):
    """A command alone, with an option that it has not, and with each bad value."""
    first = FIRST.get(name, "").split()
    if name not in {*ENDLESS, "check"}:  # which then checks all dialects, for seconds
        yield ()
    yield (*first, "--nonsense")
    for option in command.params:
        if isinstance(option, click.Option):
            yield from ((*first, *bad) for bad in bad_values(name, option))


CASES = {name: [*cases(name, command)] for name, command in leaves()}
SENDING = ("embed", "image", "speak", "transcribe")  # tests/cli/test_faults.py has the others


@pytest.fixture(scope="module")
def server():
    """A simulator for all."""
    with simulated() as found:
        yield found


@pytest.fixture
def run(tmp_path, monkeypatch, run_here):
    """Runs a command in this process, in a folder with some files."""
    (tmp_path / "rows.csv").write_text("id,text\n1,Hi\n")
    (tmp_path / "sound.mp3").write_bytes(b"ID3")
    (tmp_path / "folder").mkdir()
    monkeypatch.setenv("INTERLINGUA_NO_LOG", "1")
    return run_here


def check(line, code, out, err):
    """The program has not failed by itself; what it says is short, about flags and files."""
    assert code != 70, (line, err)
    assert KEY not in out + err, line
    if code:
        assert err or out, line
        assert not SPEAKS_PYTHON.search(err), (line, err)
        assert len(err.splitlines()) <= 2 or "Usage:" in err, (line, err)


@pytest.mark.parametrize("name", CASES)
def test_every_option(run, server, name):
    """Each option with values that it must refuse, or that no model, file or provider has."""
    for arguments in CASES[name]:
        check(f"{name} {arguments}", *run(*name.split(), *arguments, url=server.url))


@pytest.mark.parametrize("name", SENDING)
def test_a_server_that_is_down(run, name):
    """The line names the address."""
    code, out, err = run(*name.split(), *FIRST[name].split(), stdin="Hi\n", url=DOWN)

    assert code
    assert "127.0.0.1:1" in out + err
    check(name, code, out, err)


@pytest.mark.parametrize(
    ("line", "flag"),
    [
        ("image -m openai:gpt-image-1 -o made.png --size big Fox", "--size"),
        ("image -m openai:gpt-image-1 -o made.png --aspect-ratio wide Fox", "--aspect-ratio"),
        ("embed -m openai:text-embedding-3-small --on-loss strict --task query Hi", "--on-loss"),
        ("speak -m openai:tts-1 --instructions slow --on-loss strict -o made.mp3 Hi", "--on-loss"),
        (f"ask -n -m {MODEL} -o top_k 3 -o on_loss strict Hi", "-o on_loss"),
    ],
)
def test_errors_name_the_flags_of_the_command(run, server, line, flag):
    """What the library calls an argument is the flag that sets it."""
    code, out, err = run(*line.split(), url=server.url)

    assert code
    assert flag in err
    check(line, code, out, err)
