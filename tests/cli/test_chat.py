"""`chat` over a pipe and over a terminal, against the simulator."""

import json
import re
import stat
import unicodedata

import pytest

from interlingua import Session
from interlingua.cli.chat import Chat
from interlingua.cli.output import Output
from interlingua.simulator import Script, error, latency, pieces, text, thinking
from support.cli import COUNTING, MODEL, Program, Terminal, simulated, wait_for

OTHER = "anthropic:claude-haiku-4-5"


def test_turns(program):
    """Each line is a turn of one conversation, which can be resumed later."""
    first = program.run("chat", "-m", MODEL, stdin="Hello\nAgain\n")
    listed = program.run("chat", "--resume", stdin="More\n/cost\n")

    assert first.returncode == 0
    assert [line[-5:] for line in first.stdout.splitlines()] == ["Hello", "Again"]
    assert "Resumed “Hello”" in listed.stderr
    assert "4 messages" in listed.stderr
    assert "tokens in" in listed.stderr
    shown = re.search("--resume ([0-9A-Z]{26})`", first.stderr)
    again = program.run("chat", "--resume", shown[1], stdin="")
    assert "6 messages" in again.stderr


def test_swap_says_what_changes(tmp_path):
    """The new model gets the conversation; what it cannot take is said when it is chosen."""
    with simulated(thinking("Secret.") + text("One."), text("Two.")) as server:
        program = Program(tmp_path, server.url)
        done = program.run(
            "chat", "-m", OTHER, stdin=f"Hi\n/model {MODEL}\n/cost\nAnd?\n/model nobody:x\n/model\n"
        )

    assert done.stdout == "One.\nTwo.\n"
    assert f"The model is now {MODEL}." in done.stderr
    _, _, after = done.stderr.partition(f"The model is now {MODEL}.\n")
    before_the_next_turn, _, _ = after.partition(" tokens in")
    assert before_the_next_turn.startswith("warning: ")
    assert "error: " in after  # nobody
    assert f"The model is {MODEL}." in after


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["-m", "anthropic:claude-sonnet-5", "-o", "reasoning_effort", "low"], True),
        (["-m", "openai:gpt-5.2", "-o", "reasoning_effort", "low"], False),
        (["-m", "openai:gpt-5.2", "--show-reasoning"], True),
        (["-m", "openai:gpt-5.2", "--show-reasoning", "-R"], False),
    ],
)
def test_reasoning_is_shown_where_it_is_asked_for(tmp_path, arguments, shown):
    """In every turn, as `ask` does."""
    with simulated(thinking("Hm.") + text("Fine.")) as server:
        done = Program(tmp_path, server.url).run("chat", "-n", *arguments, stdin="Hi\nAnd?\n")

    assert done.stdout == "Fine.\nFine.\n"
    assert done.stderr.count("Hm.") == 2 * shown


def test_lines_up_to_an_end(program):
    """`/multi` takes all lines up to `/end` as they are; without it nothing is sent."""
    lines = ["/multi", "  def f():", "", "/path", "/end", "One", "/multi", "lost"]
    done = program.run("chat", "-m", MODEL, "--plain", stdin="\n".join(lines))

    first, second = done.stdout.split("You said: ")[1:]
    assert first.startswith("  def f():\n\n/path\n")
    assert second == "One\n"
    assert "error: the prompt of /multi has no /end; nothing was sent" in done.stderr


def test_a_prompt_of_an_editor(program, tmp_path):
    """`/edit` sends what was saved, which is shown; if nothing was saved, nothing is sent."""
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf "and two lines\\nof it" >> "$1"\n')
    editor.chmod(0o700)
    terminal = Terminal(program, "chat", "-m", MODEL, "--plain", EDITOR=str(editor), VISUAL="")
    terminal.expect("> ")
    terminal.type("/edit one \r")
    terminal.expect("You said: one\r\nand two lines\r\nof it")
    terminal.type("/quit\r")
    assert terminal.close() == 0
    idle = Terminal(program, "chat", "-m", MODEL, EDITOR="true", VISUAL="")
    idle.expect("> ")
    idle.type("/edit\r")
    idle.expect("Nothing was saved; nothing was sent.")
    idle.type("/quit\r")
    assert idle.close() == 0


def test_lines_are_dropped_with_an_interrupt(program):
    """Ctrl-C in a prompt of several lines sends nothing, and the conversation goes on."""
    terminal = Terminal(program, "chat", "-m", MODEL, "--plain")
    terminal.expect("> ")
    terminal.type("/multi\r")
    terminal.expect("Ctrl-C drops it.")
    terminal.expect("… ")
    terminal.interrupt("Nothing was sent.")
    terminal.expect("> ")
    terminal.type("Hello\r")
    terminal.expect("You said: Hello")
    terminal.type("/quit\r")
    assert terminal.close() == 0


def test_undo_retry_fork_save(program):
    """The commands change the conversation as their names say."""
    path = program.home / "talk.json"
    lines = ["One", "Two", "/undo", "/retry", f"/save {path}", "/fork", "Three", "/tools", "/nope"]
    done = program.run("chat", "-m", MODEL, stdin="\n".join([*lines, "/help", "/quit", "never"]))

    assert done.returncode == 0
    said = [line.rpartition(": ")[2] for line in done.stdout.splitlines()]
    assert said == ["One", "Two", "One", "Three"]
    assert "Removed: Two" in done.stderr
    assert "There are no tools" in done.stderr
    assert "error: There is no /nope" in done.stderr
    assert "/retry" in done.stderr
    saved = Session.load(path)
    assert [message.text for message in saved.messages if message.role == "user"] == ["One"]


def test_a_prompt_of_several_lines(program):
    """A backslash at the end of a line continues it; one at the end of the input loses nothing."""
    done = program.run("chat", "-n", "-m", MODEL, stdin="One\\\nmore\nTwo\\")

    said = [line.rpartition(": ")[2] for line in done.stdout.splitlines()]
    assert (done.returncode, said) == (0, ["One", "more", "Two"])


def test_a_history_that_cannot_be_kept(program):
    """It is said once, and the conversation goes on."""
    (program.home / "chat-history").mkdir()
    terminal = Terminal(program, "chat", "-m", MODEL, columns=200)
    terminal.expect("prompts are not remembered")
    for prompt in ("one", "two"):
        terminal.expect("> ")
        terminal.type(f"{prompt}\n")
        terminal.expect(f"You said: {prompt}")
    terminal.expect("> ")
    terminal.type("\x04")

    assert terminal.close() == 0
    assert terminal.text.count("not remembered") == 1


def test_an_error_ends_the_turn_only(tmp_path):
    """After a failed turn the conversation goes on."""
    with simulated(error(400, "no such thing"), text("Fine.")) as server:
        done = Program(tmp_path, server.url).run("chat", "-m", MODEL, stdin="Hi\nHi\n")

    assert (done.returncode, done.stdout) == (0, "Fine.\n")
    assert "no such thing" in done.stderr


def test_retry_of_a_prompt_that_failed(tmp_path):
    """It is asked again, with what was to come before it; the turn before it stays."""
    (tmp_path / "notes.txt").write_text("My notes.")
    answers = (error(400, "no"), text("One."), error(400, "no"), error(400, "no"), text("Two."))
    script = Script(*answers)
    with simulated(script) as server:
        program = Program(tmp_path, server.url)
        lines = "First\nFirst\nSecond\n/retry\n/retry\n/undo\n/undo\n/undo\n/retry\n"
        done = program.run("chat", "-n", "-m", MODEL, "-f", "notes.txt", stdin=lines)

    asked = [request.request.messages[-1].text for request in script.received]
    assert done.stdout == "One.\nTwo.\n"
    assert asked == ["My notes.\n\nFirst"] * 2 + ["Second"] * 3
    assert len(script.received[-1].request.messages) == 3
    assert done.stderr.count("Again: Second") == 2
    assert done.stderr.splitlines()[-4:] == [
        "Removed: Second",
        "Removed: My notes. First",
        "There is no turn.",
        "error: There is nothing to ask again.",
    ]


def test_ctrl_c_before_anything_arrives(tmp_path):
    """The prompt is not part of the conversation, and `/retry` asks it again."""
    script = Script(text("One."), latency(first=3600), text("Two."))
    with simulated(script) as server:
        terminal = Terminal(Program(tmp_path, server.url), "chat", "-n", "-m", MODEL, columns=100)
        terminal.expect("> ")
        terminal.type("First\n")
        terminal.expect("One.")
        terminal.expect("> ")
        terminal.type("Second\n")
        terminal.expect("Waiting")
        wait_for(lambda: len(script.received) == 2, terminal.process)
        terminal.interrupt("interrupted; nothing had arrived, and /retry asks again")
        terminal.expect("> ")
        terminal.type("/retry\n")
        terminal.expect("Again: Second")
        terminal.expect("Two.")
        terminal.expect("> ")
        terminal.type("\x04")

        assert terminal.close() == 0


def test_save_in_the_home(program):
    """`~` is the home, as in the completion of paths; what is no file is not read or replaced."""
    lines = "Hi\n/save ~/talk.json\n/save /dev/zero\n/tools ~/none.py\n"
    done = program.run("chat", "-n", "-m", MODEL, stdin=lines)

    assert Session.load(program.home / "talk.json").messages
    assert "Cannot save '/dev/zero': it is not a file." in done.stderr
    assert f"there is no file {program.home}/none.py" in done.stderr


def test_json(program):
    """With `--json` each turn is an object."""
    done = program.run("chat", "-n", "-m", MODEL, "--json", stdin="Hi\n")

    assert json.loads(done.stdout)["text"].endswith("You said: Hi")


def test_ctrl_c_keeps_what_has_arrived(tmp_path):
    """In a terminal Ctrl-C ends the answer, not the conversation; Ctrl-D ends that."""
    with simulated(COUNTING, text("Go on, then.")) as server:
        program = Program(tmp_path, server.url)
        terminal = Terminal(program, "chat", "-m", MODEL)
        terminal.expect("> ")
        terminal.type("Count\n")
        terminal.expect("one")
        terminal.interrupt("interrupted; what has arrived")
        terminal.expect("> ")
        terminal.type("More\n")
        terminal.expect("Go on, then.")
        terminal.expect("> ")
        terminal.type("\x04")
        terminal.expect("goes on from here.")
        assert terminal.close() == 0
        calls = json.loads(program.run("log", "list", "--json").stdout)

    assert [call["prompt"] for call in calls] == ["More", "Count"]
    assert calls[1]["answer"].startswith("one ")


def test_approval_in_a_terminal(tmp_path):
    """A tool runs when the user says yes, and the model is told when the user says no."""
    from interlingua.simulator import tool_call

    (tmp_path / "my_tools.py").write_text("def roll(sides: int) -> int:\n    return sides\n")
    answers = (tool_call("roll", sides=6), text("Six."), tool_call("roll", sides=9), text("No."))
    with simulated(*answers) as server:
        terminal = Terminal(
            Program(tmp_path, server.url), "chat", "-n", "-m", MODEL, "-T", "my_tools.py"
        )
        terminal.expect("> ")
        terminal.type("Roll\n")
        terminal.expect("Run roll(sides=6)? [y/N] ")
        terminal.type("y\n")
        terminal.expect("← 6")
        terminal.expect("Six.")
        terminal.expect("> ")
        terminal.type("Roll\n")
        terminal.expect("Run roll(sides=9)? [y/N] ")
        terminal.type("n\n")
        assert "← 9" not in terminal.expect("No.")
        terminal.expect("> ")
        terminal.type("\x04")
        assert terminal.close() == 0


def test_tools_of_a_file(program):
    """`/tools FILE.py` adds tools, which the model then gets; a missing file is one line."""
    (program.home / "my_tools.py").write_text(
        'def roll() -> int:\n    """Roll a die."""\n    return 4\n'
    )
    lines = "/tools none.py\n/tools my_tools.py\nRoll it\n"
    done = program.run("chat", "-n", "-y", "-m", MODEL, stdin=lines)

    assert "there is no file none.py" in done.stderr
    assert "  roll: Roll a die." in done.stderr
    assert "→ roll()" in done.stderr
    assert "← 4" in done.stderr


def test_markdown_in_a_terminal(tmp_path):
    """Answers are rendered while they arrive, each block once; `--plain` shows their text."""
    answer = "# Title\n\nA **bold** claim:\n\n- one\n- two\n\n```python\nx = 1\n```\n" + "end " * 40
    script = text(answer) + pieces(5) + latency(between=0.001)
    with simulated(script) as server:
        program = Program(tmp_path, server.url)
        rendered = Terminal(program, "chat", "-n", "-m", MODEL)
        plain = Terminal(program, "chat", "-n", "--plain", "-m", MODEL)
        for terminal in (rendered, plain):
            terminal.expect("> ")
            terminal.type("Hi\n")
            terminal.expect("end end")
            terminal.expect("> ")
            terminal.type("\x04")
            assert terminal.close() == 0

    shown = "Title\n\nA bold claim:\n\n • one\n • two\n\n  x = 1\n\nend end"
    assert shown in rendered.text
    assert rendered.text.count("end") == plain.text.count("end") == 40
    assert "# Title\n\nA **bold** claim:\n\n- one" in plain.text


def test_history_and_completion_in_the_prompt(program):
    """Tab completes commands, models and files; arrow-up brings the prompts of before."""
    first = Terminal(program, "chat", "-m", MODEL)
    first.expect("> ")
    first.type("/mod\t anthropic:claude-haiku-4-\t\n")
    first.expect("The model is now anthropic:claude-haiku-4-5.")
    first.expect("> ")
    first.type("Remember me\n")
    first.expect("You said: Remember me")
    first.expect("> ")
    first.type("\x04")
    assert first.close() == 0
    again = Terminal(program, "chat", "-m", MODEL)
    again.expect("> ")
    again.type("\x1b[A\n")
    again.expect("You said: Remember me")
    again.expect("> ")
    again.type("\x04")
    assert again.close() == 0
    assert stat.S_IMODE((program.home / "chat-history").stat().st_mode) == 0o600


def test_paths_are_completed(tmp_path, monkeypatch):
    """The argument of `/save` and `/tools` is a file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "talk.json").touch()
    (tmp_path / "file.py").touch()
    chat = Chat(Output(), None, None, is_logged=False)

    assert chat._complete("/save fo") == ["/save folder/"]
    assert chat._complete("/save folder/t") == ["/save folder/talk.json"]
    assert chat._complete("/tools fi") == ["/tools file.py"]
    assert chat._complete("/save nowhere/x") == []
    assert chat._complete("/save file.py/x") == []
    assert chat._complete("/un") == ["/undo"]
    assert chat._complete("plain text") == []


PASTE = "\x1b[200~{}\x1b[201~"
"""What a terminal sends for a pasted text, if a program asks for it."""


def paste(tmp_path, *pastes):
    """The prompts that arrive if each text is pasted, and then Enter is pressed."""
    script = Script(lambda request: text(f"Answer {len(request.messages)}"))
    with simulated(script) as server:
        terminal = Terminal(Program(tmp_path, server.url), "chat", "-m", MODEL, "--plain")
        terminal.expect("\x1b[?2004h")  # it asks the terminal to mark what is pasted
        for number, pasted in enumerate(pastes):
            terminal.expect("> ")
            terminal.type(PASTE.format(pasted.replace("\n", "\r")) + "\n")
            terminal.expect(f"Answer {2 * number + 1}")
        terminal.expect("> ")
        terminal.type("\x04")
        assert terminal.close() == 0
    return [request.messages[-1].text for request in script.requests]


def test_several_pasted_lines_are_one_prompt(tmp_path):
    """Not a call for each line: blank lines and a line end at the end belong to it."""
    code = "def f():\n\treturn 1\n\nprint(f())"

    assert paste(tmp_path, code, "one\ntwo\n", "single") == [code, "one\ntwo", "single"]


def test_a_pasted_text_that_begins_with_a_slash_is_a_prompt(tmp_path):
    """A path at its beginning is no command."""
    assert paste(tmp_path, "/usr/bin/x: failed\n/quit") == ["/usr/bin/x: failed\n/quit"]


def test_a_pasted_text_can_be_edited_before_it_is_sent(tmp_path):
    """It waits for Enter; what is typed behind it is part of the prompt."""
    script = Script(lambda _: text("Done."))
    with simulated(script) as server:
        terminal = Terminal(Program(tmp_path, server.url), "chat", "-m", MODEL, "--plain")
        terminal.expect("> ")
        terminal.type(PASTE.format("one\rtwo"))
        terminal.expect_match("two")
        terminal.type(" and three\n")
        terminal.expect("Done.")
        terminal.expect("> ")
        terminal.type("\x04")
        assert terminal.close() == 0

    assert [request.messages[-1].text for request in script.requests] == ["one\ntwo and three"]


def test_a_prompt_of_several_lines_is_one_of_the_history(program):
    """Also in the next run; Ctrl-R finds it by a word in it."""
    first = Terminal(program, "chat", "-m", MODEL, "--plain")
    first.expect("> ")
    first.type(PASTE.format("def pelican():\r\treturn 1") + "\n")
    first.expect("You said: def pelican():\r\n")
    first.expect("> ")
    first.type("\x04")
    assert first.close() == 0
    again = Terminal(program, "chat", "-m", MODEL, "--plain")
    again.expect("> ")
    again.type("Another\n")
    again.expect("You said: Another")
    again.expect("> ")
    again.type("\x12pelican")
    again.expect_match(r"pelican\(\):")
    again.type("\r")
    again.expect("You said: def pelican():\r\n")
    again.expect("> ")
    again.type("\x04")
    assert again.close() == 0
    history = (program.home / "chat-history").read_text(encoding="utf-8")
    assert history.split("\n")[0] == "def pelican():\u2028\treturn 1"


LEFT, RIGHT, HOME, END, ERASE, DELETE = "\x1b[D", "\x1b[C", "\x01", "\x05", "\x7f", "\x1b[3~"


@pytest.mark.parametrize(
    ("keys", "prompt"),
    [
        (f"日本語{LEFT}{LEFT}X{END}{ERASE}Y", "日X本Y"),
        (f"日本語の質問は長くて二十桁の行には入りません{HOME}{DELETE}始{RIGHT}{ERASE}",
         "始語の質問は長くて二十桁の行には入りません"),
        (f"cafe\u0301s{LEFT}{ERASE}e", "cafes"),
        (f"مرحبا{LEFT}{ERASE}x", "مرحxا"),  # noqa: RUF001 -- Arabic
        (f"नमस्ते{HOME}x", "xनमस्ते"),
        (f"x👨\u200d👩\u200d👧y{ERASE}{ERASE}z", "xz"),
        (f"x👨\u200d👩\u200d👧y{LEFT}{LEFT}{DELETE}z", "xzy"),
        (f"🇩🇪🇫🇷{LEFT}x{ERASE}{ERASE}", "🇫🇷"),
        (f"👍🏽❤\ufe0f1\ufe0f\u20e3{LEFT}{LEFT}{DELETE}a{RIGHT}{ERASE}", "👍🏽a"),
        (f"क्षि{LEFT}x", "xक्षि"),
    ],
)  # fmt: skip
def test_the_keys_of_the_line_editor_in_any_script(tmp_path, keys, prompt):
    """What is on the screen is what is sent, also where a line is wrapped."""
    script = Script(lambda _: text("Done."))
    with simulated(script) as server:
        program = Program(tmp_path, server.url)
        utf8 = {"LC_ALL": "C.UTF-8"}
        terminal = Terminal(program, "chat", "-m", MODEL, "-n", "--plain", columns=20, **utf8)
        terminal.expect("> ")
        terminal.type(f"{keys}\n")
        terminal.expect("Done.")
        terminal.expect("> ")
        terminal.type("\x04")
        assert terminal.close() == 0

    assert [request.messages[-1].text for request in script.requests] == [prompt]
    if not re.search("[\u200d\u0947\u093f]", prompt):  # which pyte does not draw as terminals do
        shown = unicodedata.normalize("NFC", terminal.text.replace("\n", ""))
        assert f"> {unicodedata.normalize('NFC', prompt)}" in shown
