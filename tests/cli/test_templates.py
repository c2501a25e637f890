"""Templates: saved, listed, filled, and what one of somebody else may not do."""

import json

import pytest
import yaml

from interlingua.simulator import Script, text
from support.cli import KEY, MODEL, Program, Terminal, simulated

ASK = ("ask", "-n", "-m", MODEL)


@pytest.fixture
def script():
    return Script(text("Fine."))


@pytest.fixture
def run(tmp_path, script):
    """Runs a command against a model whose requests the script has."""
    with simulated(script) as server:
        yield Program(tmp_path, server.url).run


def sent(script):
    """The texts of the last request, the system prompt first."""
    return [message.text for message in script.requests[-1].messages]


def test_what_is_saved_is_asked_later(run, script, tmp_path):
    """All of it: prompt, system prompt, model, settings, values and fragments; nothing is sent."""
    (tmp_path / "style.md").write_text("Short words.\n")
    saved = run(
        *ASK[2:], "-s", "Be $mood.", "-p", "mood", "kind", "-o", "max_tokens", "7",
        "-f", "style.md", "--save", "kind", "Say $input",
    )  # fmt: skip
    assert (saved.returncode, saved.stdout, script.requests) == (0, "", ())
    assert (tmp_path / "templates" / "kind.yaml").stat().st_mode & 0o077 == 0
    assert run("ask", "-n", "-t", "kind", "hello").returncode == 0

    assert sent(script) == ["Be kind.", "Short words.\n\nSay hello"]
    assert script.requests[-1].max_tokens == 7
    run("ask", "-n", "-t", "kind", "-p", "mood", "cold", "-o", "max_tokens", "9", "hello")
    assert sent(script)[0] == "Be cold."
    assert script.requests[-1].max_tokens == 9


def test_the_list_has_all_sources(run, tmp_path):
    """Those of the configuration come first; a broken one is named and hides no other."""
    (tmp_path / "interlingua.yaml").write_text("templates: {a: Hello., b: {system: Hi.}}\n")
    (tmp_path / "templates").mkdir()
    for name, content in (("b", "Bye."), ("c", "{nothing: 1}"), ("d", "D $x")):
        (tmp_path / "templates" / f"{name}.yaml").write_text(content)
    rows = json.loads(run("templates", "list", "--json").stdout)

    assert [row["name"] for row in rows] == ["a", "b", "c", "d"]
    assert rows[1]["prompt"] == "Hi."
    assert rows[2]["prompt"].startswith("broken: ")
    assert yaml.safe_load(run("templates", "show", "d").stdout) == {"prompt": "D $x"}
    assert run("templates", "path").stdout == f"{tmp_path / 'templates'}\n"
    assert run("templates", "remove", "d").returncode == 0
    assert "b is in" in run("templates", "remove", "b").stderr
    assert not (tmp_path / "templates" / "d.yaml").exists()


@pytest.mark.parametrize(
    "content",
    [
        "{prompt: x, fragments: [secret.txt]}",
        "{prompt: x, attachments: [secret.txt]}",
        "{prompt: x, tools: [evil.py]}",
        "{prompt: x, mcp: ['http://there.example']}",
        "{prompt: x, options: {base_url: 'http://there.example'}}",
        "{prompt: x, options: {headers: {a: b}}}",
        "{prompt: x, options: {provider: anthropic}}",
        "{prompt: x, options: {provider_options: {}}}",
    ],
)
def test_a_file_of_somebody_else_names_no_files_and_addresses(run, script, tmp_path, content):
    """It may have a prompt and harmless settings; the same as the user's own template may more."""
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "evil.py").write_text("open('ran', 'w').close()\ndef evil() -> str:\n    ...\n")
    (tmp_path / "theirs.yaml").write_text(content)
    done = run(*ASK, "-t", "theirs.yaml", "Hi")

    assert (done.returncode, script.requests) == (2, ())
    assert "which only a template of your own may" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "ran").exists()
    (tmp_path / "harmless.yaml").write_text("{prompt: Say, options: {temperature: 0.5}}")
    assert run(*ASK, "-t", "harmless.yaml", "Hi").returncode == 0
    assert sent(script) == ["Say\n\nHi"]


def test_a_chat_has_templates_and_attachments(run, script, tmp_path):
    """Each prompt is filled in; what is attached comes with the first."""
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "t.yaml").write_text("{prompt: 'Say $input $mark', system: Be kind.}")
    (tmp_path / "a.txt").write_text("attached")
    chat = ("chat", "-n", "-m", MODEL, "-t", "t", "-p", "mark", "!", "-a", "a.txt")
    done = run(*chat, stdin="one\ntwo\n")

    assert done.returncode == 0, done.stderr
    assert sent(script) == ["Be kind.", "Say one !", "Fine.", "Say two !"]
    kinds = [
        [type(part).__name__ for part in each.content] for each in script.requests[-1].messages
    ]
    assert kinds[1] == ["Document", "Text"]
    assert kinds[3] == ["Text"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("ask", "-t", "none", "Hi"), "there is no template none"),
        (("ask", "-p", "a", "b", "Hi"), "add -t NAME"),
        (("ask", "--save", "a/b", "Hi"), "only letters, digits"),
        (("ask", "--save", "a"), "needs something to keep"),
        (("ask", "--save", "a", "-t", "b", "Hi"), "do not go together"),
        (("ask", "--save", "a", "-f", "-", "Hi"), "cannot keep stdin"),
        (("templates", "show", "none"), "no template 'none'"),
        (("templates", "show", "../keys"), "no template '../keys'"),
        (("templates", "remove", "none"), "no template 'none'"),
        (("templates", "edit", "new"), "needs a terminal"),
    ],
)
def test_wrong_uses(bare, arguments, complaint):
    """One line that says what to do."""
    done = bare.run(*arguments)

    assert done.returncode == 2
    assert complaint in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_template_is_written_in_the_editor(program, tmp_path):
    """A mistake may be corrected."""
    editor = tmp_path / "editor"
    editor.write_text(
        "#!/bin/sh\nif grep -q promt $1; then echo 'prompt: b' > $1\n"
        "else echo 'promt: a' > $1; fi\n"
    )
    editor.chmod(0o755)
    terminal = Terminal(program, "templates", "edit", "new", EDITOR=str(editor), VISUAL="")
    terminal.expect("must be a text, or have only")
    terminal.type("y\n")
    terminal.expect("Saved")
    assert terminal.close() == 0
    assert (tmp_path / "templates" / "new.yaml").read_text() == "prompt: b\n"


# A server at hand.


def test_a_server_at_hand(bare):
    """`--base-url` and the name of a stored key, in `ask` and `chat`; the key is not printed."""
    with simulated(text("Fine.")) as server:
        there = ("-n", "--base-url", f"{server.url}/v1", "-m", "llama")
        assert bare.run("ask", *there, "Hi").returncode == 3  # the simulator wants its key
        bare.run("keys", "set", "HOUSE_KEY", stdin=KEY)
        for words, prompt in ((("ask", "Hi"), ""), (("chat",), "Hi\n")):
            done = bare.run(words[0], *there, "--key", "HOUSE_KEY", *words[1:], stdin=prompt)
            assert (done.returncode, done.stdout) == (0, "Fine.\n")
            assert KEY not in done.stderr
            assert "=" not in done.stderr  # no arguments of Python
        shown = bare.run("explain", *there[1:], "--key", "HOUSE_KEY", "Hi")
        assert f"POST {server.url}/v1/chat/completions" in shown.stdout
        assert KEY not in shown.stdout + shown.stderr


def test_the_name_of_a_key_is_not_repeated(bare):
    """It may be the key itself, given by mistake."""
    done = bare.run("ask", "-m", "openai:gpt-5.2", "--key", "sk-planted", "Hi")

    assert done.returncode == 2
    assert "sk-planted" not in done.stderr
    assert "interlingua keys list" in done.stderr
    assert "need -m" in bare.run("ask", "--key", "openai", "Hi").stderr
