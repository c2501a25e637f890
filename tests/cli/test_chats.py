"""Conversations: named, listed, resumed, exported."""

import json

import pytest

from interlingua import Session
from interlingua.simulator import text, tool_call, tool_loop
from support.cli import MODEL, Program, simulated


def test_a_conversation_has_a_name(program):
    """It is resumed by it, also by `ask`, and may be renamed and removed."""
    program.run("chat", "-m", MODEL, "--name", "holidays", stdin="One\n")
    resumed = program.run("chat", "--resume", "holidays", stdin="Two\n/name long holidays\n")
    assert "Resumed “holidays”" in resumed.stderr
    assert program.run("ask", "--cid", "long holidays", "Three").returncode == 0
    rows = json.loads(program.run("chats", "list", "--json").stdout)
    assert [(row["name"], row["turns"]) for row in rows] == [("long holidays", 3)]
    assert program.run("chats", "rename", "long holidays", "short").returncode == 0
    assert "short" in program.run("chats", "list").stdout
    assert program.run("chats", "remove", "short").returncode == 0
    assert json.loads(program.run("chats", "list", "--json").stdout) == []


def test_of_two_with_one_name_the_last_is_meant(program):
    """Names need not be unique; ids are."""
    for prompt in ("One\n", "Two\n"):
        program.run("chat", "-m", MODEL, "--name", "same", stdin=prompt)
    assert "You said: Two" in program.run("chats", "export", "same").stdout
    first = json.loads(program.run("chats", "list", "--json").stdout)[-1]["id"]
    assert "You said: One" in program.run("chats", "export", first).stdout


def test_export(tmp_path):
    """As Markdown for people and as JSON for programs, on stdout and in files."""
    (tmp_path / "tools.py").write_text(
        'def add(a: int) -> str:\n    """Add."""\n    return "```"\n'
    )
    with simulated(tool_loop(tool_call("add", a=1), text("Done."))) as server:
        program = Program(tmp_path, server.url)
        options = ("-m", MODEL, "-y", "-T", "tools.py", "--name", "sums")
        assert program.run("chat", *options, stdin="Add\n").returncode == 0
    page = program.run("chats", "export", "sums").stdout
    assert page.startswith("# sums\n\n## User\n\nAdd\n\n## Assistant\n")
    assert '"name": "add"' in page
    assert "````json\n" in page  # the result has a fence of its own
    assert page.rstrip().endswith("Done.")
    assert program.run("chats", "export", "sums", "-o", "a.md").stdout == "a.md\n"
    assert (tmp_path / "a.md").read_text() == page
    program.run("chats", "export", "sums", "-o", "a.json")
    loaded = Session.load(tmp_path / "a.json")
    assert [message.role for message in loaded.messages][:2] == ["user", "assistant"]
    assert json.loads(program.run("chats", "export", "sums", "--json").stdout)["title"] == "sums"
    forced = program.run("chats", "export", "sums", "--format", "markdown", "-o", "b.json")
    assert forced.returncode == 0
    assert (tmp_path / "b.json").read_text() == page


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("chats", "export", "none"), "no conversation 'none'"),
        (("chats", "remove", "none"), "no conversation 'none'"),
        (("chats", "rename", "none", "x"), "no conversation 'none'"),
        (("chats", "rename", "none", " "), "The name is empty"),
        (("chat", "--resume", "none"), "no conversation 'none'"),
        (("ask", "--cid", "none", "Hi"), "no conversation 'none'"),
    ],
)
def test_wrong_uses(program, arguments, complaint):
    """One line that says what to do."""
    done = program.run(*arguments, INTERLINGUA_NO_LOG="1")

    assert done.returncode == 2
    assert complaint in done.stderr
    assert len(done.stderr.splitlines()) == 1
