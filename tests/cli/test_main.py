"""The program itself: help, unknown commands, errors, exit codes."""

import io
import os
import re
import subprocess
import sys

import click
import pytest

from interlingua import errors
from interlingua.cli import output
from interlingua.cli.commands import COMMANDS, program
from interlingua.cli.output import Output
from support.cli import Terminal


def test_help_is_light():
    """`--help` lists every command and imports none of them, no event loop and no `rich`."""
    code = (
        "import sys; from interlingua.cli import main; main(['--help']);"
        "heavy = 'asyncio httptools rich msgspec sqlite3 ssl'.split();"
        "print([m for m in heavy if m in sys.modules],"
        " sorted(m for m in sys.modules if m.startswith('interlingua.cli.')))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout

    loaded = [f"interlingua.cli.{name}" for name in ("commands", "output", "tables")]
    assert printed.splitlines()[-1] == f"[] {loaded}"
    assert '\n  cat error.log | interlingua "What is wrong here?"\n' in printed
    assert all(name in printed for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(bare, name):
    """Each begins with a sentence, and each of its options has one."""
    command = program.get_command(click.Context(program), name)

    assert command is not None
    assert command.name == name
    assert (command.help or "").strip()
    options = [each for each in command.params if isinstance(each, click.Option)]
    assert [each.name for each in options if not each.help] == []
    shown = bare.run(name, "--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith(f"Usage: interlingua {name}")
    assert "\\b" not in shown.stdout


def test_every_command_may_be_the_first():
    """Each can be imported before any other module of the package, in a fresh interpreter."""
    code = (
        "import sys\n"
        "from importlib import import_module\n"
        "for name in sys.argv[1:]:\n"
        "    import_module('interlingua.cli.' + name.replace('-', '_'))\n"
        "    for each in [each for each in sys.modules if each.startswith('interlingua')]:\n"
        "        del sys.modules[each]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *COMMANDS], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")


def leaves():
    """Every command that does something, with its words."""
    for name in COMMANDS:
        command = program.get_command(click.Context(program), name)
        inner = getattr(command, "commands", {})
        yield from ((name, word, each) for word, each in inner.items())
        yield name, "", command


@pytest.mark.parametrize(
    ("words", "command"),
    [
        pytest.param(f"{name} {word}".strip(), each, id=f"{name} {word}")
        for name, word, each in leaves()
    ],
)
def test_every_command_has_an_example_and_json(words, command):
    """The help shows a line to type, and `--json` and `--debug` are everywhere."""
    text = command.help or ""
    options = {option for each in command.params for option in each.opts}

    assert re.search(rf"interlingua {words}(?![\w-])", text.partition("\b\n")[2]), text
    assert isinstance(command, click.Group) or {"--json", "--debug"} <= options


NEAR = {
    "modles": "models", "Chats": "chats", "logs": "log", "prompt": "ask", "help": "--help",
    "embed-multi": "embed-many",
}  # fmt: skip


@pytest.mark.parametrize("words", [*([name] for name in NEAR), ["modles", "-p", "openai"]])
def test_a_misspelt_command_is_not_sent(bare, words):
    """One line names the command that is spelled alike; the exit code is that of wrong usage."""
    done = bare.run(*words)

    near = NEAR[words[0]]
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: There is no command '{words[0]}'. Did you mean '{near}'? "
        f'`interlingua ask "{words[0]}"` asks a model. See `interlingua --help`.\n'
    )


@pytest.mark.parametrize(
    ("words", "stdin", "prompt"),
    [
        (["Why is the sky blue?"], "", "Why is the sky blue?"),
        (["why", "is", "it"], "", "why is it"),
        (["hello"], "", "hello"),
        (["-s", "Be brief.", "Why?"], "", "Why?"),
        (["Explain this."], "a + b", "a + b\n\nExplain this."),
        ([], "What is 2 + 2?", "What is 2 + 2?"),
        (["--no-log"], "What is 2 + 2?", "What is 2 + 2?"),
    ],
)
def test_a_question_needs_no_command(program, words, stdin, prompt):
    """What is no command is a question: words, options of `ask`, or what is piped in."""
    done = program.run(*words, stdin=stdin, INTERLINGUA_MODEL="openai:gpt-5.2")

    assert done.returncode == 0
    assert done.stdout.rstrip("\n").endswith(f"You said: {prompt}")


def test_without_arguments_on_a_terminal(bare):
    """The help is shown."""
    terminal = Terminal(bare)
    terminal.expect("Usage: interlingua")
    terminal.expect("completion")
    assert terminal.process.wait() == 2


def test_without_the_extra(tmp_path):
    """Without click, one line says what to install."""
    (tmp_path / "click.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'click'\", name='click')\n"
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    command = [sys.executable, "-m", "interlingua", "--help"]
    env = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)

    assert done.returncode == 2
    assert done.stderr == (
        "error: the command line needs click and rich: pip install 'interlingua[cli]'\n"
    )


def test_every_error_class_has_an_exit_code():
    """Each error of the library ends with the code of its nearest base, and 70 is for defects."""
    classes = [
        getattr(errors, name)
        for name in errors.__all__
        if isinstance(getattr(errors, name), type)
        and issubclass(getattr(errors, name), errors.SDKError)
    ]
    codes = {each.__name__: output.exit_code(each("x")) for each in classes}

    assert codes["AuthenticationError"] == 3
    assert codes["UnsupportedError"] == codes["ConfigurationError"] == 2
    assert codes["ProviderTimeoutError"] == codes["NetworkError"] == 6
    assert codes["StoreError"] == codes["SDKError"] == output.FAILED
    assert set(output.EXIT_CODES) <= set(codes)
    assert output.UNEXPECTED not in codes.values()
    assert output.exit_code(ZeroDivisionError()) == output.UNEXPECTED
    assert output.exit_code(KeyboardInterrupt()) == output.INTERRUPTED


def test_an_error_is_one_line(capsys):
    """Line ends and control characters of a message do not reach the terminal."""
    code = output.report(errors.ServerError("bad\n\x1b[31mred"), Output())

    assert code == 7
    assert capsys.readouterr().err == "error: bad \ufffd[31mred\n"


def test_a_closed_pipe_is_silent():
    """`interlingua models | head -1` prints one line and no error."""
    shell = f"{sys.executable} -m interlingua models; echo $? >&2"
    done = subprocess.run(
        ["/bin/sh", "-c", f"({shell}) | head -1"], capture_output=True, text=True, check=True
    )

    assert done.stdout == "model\tcontext\t$ in\t$ out\tcan\n"
    assert done.stderr in ("141\n", "0\n")  # 0 if everything was written before


def test_debug_shows_the_traceback(bare):
    """Without `--debug` there is a line; with it there is also where it happened."""
    plain = bare.run("models", "-p", "opnai")
    debug = bare.run("models", "-p", "opnai", "--debug")

    assert plain.returncode == debug.returncode == 2
    assert plain.stderr.startswith("error: There is no provider 'opnai'. Did you mean 'openai'")
    assert len(plain.stderr.splitlines()) == 1
    assert debug.stderr.startswith("Traceback")


@pytest.mark.parametrize(("variables", "is_dim"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colors(monkeypatch, variables, is_dim):
    """Remarks are dimmed on a terminal, unless `NO_COLOR` is set."""

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for name, value in {"TERM": "xterm", "NO_COLOR": "", **variables}.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    Output().note("remark")

    assert terminal.getvalue() == ("\x1b[2mremark\n\x1b[0m" if is_dim else "remark\n")
