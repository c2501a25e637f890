"""Every command with every fault: one clear line, the right exit code, nothing lost."""

import functools
import json
import os
import resource
import signal
import socket
import subprocess

import pytest

from interlingua.simulator import Script, echo, text, tool_call
from support.cli import COUNTING, KEY, MODEL, Program, Terminal, simulated, wait_for

OTHER = "anthropic:claude-haiku-4-5"
CHAT, RESPONSES = "openai_chat", "openai_responses"
DOWN = "http://127.0.0.1:1"
FILES = {
    "broken.json": b"{",
    "list.json": b"[1]",
    "deep.json": b"[" * 100_000,
    "wrong.json": b'{"messages": 5}',
    "schema.json": b'{"type": 5}',
    "bytes.dat": b"\xff\xfe\x00",
    "broken.py": b"def f(:",
    "empty.py": b"x = 1",
    "broken.yaml": b"{",
    "unknown.yaml": b"colour: red",
    "fine.json": b'[{"role": "user", "content": "Hi."}]',
}
BAD_INPUT = [
    # Unknown models and providers.
    ("ask -m nobody:x Hi", 2, "nobody"),
    ("ask -m mistral:mistral-small Hi", 2, "MISTRAL_API_KEY"),
    ("ask -m mistral:mistral-small Hi", 2, "keys set"),
    ("ask -m local:nothing Hi", 2, "smollm2"),
    ("ask -m local:/nowhere.gguf Hi", 2, "/nowhere.gguf"),
    ("ask -m= Hi", 2, "-m is empty"),
    ("chat -m nobody:x", 2, "nobody"),
    ("chat -m mistral:mistral-small", 2, "MISTRAL_API_KEY"),
    ("compare -m mistral:x -m nobody:x Hi", 1, "nobody"),
    ("explain -m nobody:x Hi", 2, "nobody"),
    ("models -p nobody", 2, "nobody"),
    ("models --live -p mistral", 2, "MISTRAL_API_KEY"),
    ("keys set nobody", 2, "nobody"),
    ("keys remove mistral", 2, "No key is stored"),
    ("check --adapter mistral -m m", 2, "MISTRAL_API_KEY"),
    ("doctor fine.json --to nobody:x", 2, "nobody"),
    # Files that are missing, unreadable, or hold something else.
    *((f"ask -m {MODEL} -{option} {file} Hi", 2, file) for option, file in (
        ("a", "none.png"), ("a", "folder"), ("f", "none.txt"), ("f", "folder"), ("f", "bytes.dat"),
        ("T", "none.py"), ("T", "folder"), ("T", "broken.py"), ("T", "empty.py"),
        ("t", "none"), ("t", "folder"), ("t", "bytes.dat"), ("t", "broken.yaml"),
        ("t", "unknown.yaml"),
    )),
    *((f"ask -m {MODEL} --schema ./{file} Hi", 2, file) for file in (
        "none.json", "folder", "broken.json", "list.json", "deep.json", "bytes.dat",
    )),
    (f"ask -m {MODEL} --schema schema.json Hi", 2, "JSON Schema"),
    (f"explain -m {MODEL} -a none.png Hi", 2, "none.png"),
    (f"chat -m {MODEL} -T none.py", 2, "none.py"),
    *((f"doctor {file} --to {CHAT}", 2, file) for file in (
        "none.json", "folder", "broken.json", "list.json", "wrong.json", "bytes.dat",
    )),
    ("doctor fine.json", 2, "--to"),
    ("doctor fine.json --to nothing", 2, "neither a model"),
    (f"doctor fine.json --from nothing --to {CHAT}", 2, "no dialect 'nothing'"),
    *((f"translate {file} --from {CHAT} --to {RESPONSES}", 2, file) for file in (
        "none.json", "folder", "broken.json", "list.json", "wrong.json", "bytes.dat",
    )),
    (f"translate fine.json --kind stream --from {CHAT} --to {RESPONSES}", 2, "fine.json"),
    (f"translate fine.json --from nothing --to {CHAT}", 2, "no dialect 'nothing'"),
    (f"check {CHAT} --cases none", 2, "none"),
    (f"check {CHAT} --cases folder", 2, "folder"),
    (f"check {CHAT} --junit nowhere/report.xml", 1, "nowhere/report.xml"),
    ("local run none.gguf", 2, "none.gguf"),
    ("local run folder", 2, "folder"),
    # Wrong values.
    (f"ask -m {MODEL}", 2, "There is no prompt"),
    (f"ask -m {MODEL} -o temprature 1 Hi", 2, "temperature"),
    (f"ask -m {MODEL} -o zzz 1 Hi", 2, "max_tokens"),
    (f"explain -m {MODEL} -o zzz 1 Hi", 2, "max_tokens"),
    (f"ask -m {MODEL} -o temperature hot Hi", 2, "temperature"),
    (f"ask -m {MODEL} --cid nothing Hi", 2, "no conversation 'nothing'"),
    ("ask -c Hi", 2, "no conversation to continue"),
    ("chat --resume nothing", 2, "no conversation 'nothing'"),
    ("chat --resume \udcff", 2, "there is no conversation"),
    ("chat --resume", 2, "no conversation to resume"),
    ("log show 99", 2, "no call 99"),
    ("log show x", 2, "not a valid integer"),
    ("log cost --days 0", 2, "--days"),
    ("models -c magic", 2, "magic"),
    ("compare Hi", 2, "--model"),
    (f"compare -m {MODEL}", 2, "There is no prompt"),
    ("completion tcsh", 2, "tcsh"),
    ("keys set openai", 2, "not a key"),
    (f"check --endpoint nonsense --dialect {CHAT} -m m", 2, "nonsense"),
    # Servers that are down.
    (f"check --endpoint {DOWN} --dialect {CHAT} -m m", 6, "127.0.0.1:1"),
]  # fmt: skip


@pytest.fixture
def run(tmp_path, monkeypatch, run_here):
    """Runs a command in this process, in a folder with the files; no server is there."""
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    monkeypatch.setenv("INTERLINGUA_NO_LOG", "1")
    return functools.partial(run_here, url=DOWN)


@pytest.mark.parametrize(("line", "code", "found"), BAD_INPUT, ids=[row[0] for row in BAD_INPUT])
def test_bad_input(run, line, code, found):
    """Nothing is sent; the line says what is wrong, and the exit code what kind of fault it is."""
    done, out, err = run(*_split(line))

    assert done == code, err
    shown = out if line.startswith("compare -m mistral") else err
    assert found in shown
    assert len(err.splitlines()) == (0 if shown is out else 1), err
    assert KEY not in out + err


def _split(line):
    """The words; `-m=` is an empty model."""
    for word in line.split(" "):
        yield from ("-m", "") if word == "-m=" else (word,)


DEBUGGED = [
    "ask -m nobody:x Hi",
    "doctor broken.json --to openai_chat",
    "translate bytes.dat --from openai_chat --to openai_chat",
    "check nothing",
]


@pytest.mark.parametrize("line", DEBUGGED)
def test_debug(run, line):
    """`--debug` gives the traceback, and the same exit code."""
    plain, _, _ = run(*line.split())
    code, _, err = run(*line.split(), "--debug")

    assert code == plain
    assert err.startswith("Traceback")


@pytest.mark.usefixtures("no_backoff")
@pytest.mark.parametrize(
    ("line", "code"),
    [
        (f"ask -n -m {MODEL} -o max_retries 0 Hi", 6),
        (f"chat -n -m {MODEL}", 6),
        (f"compare -n -m {MODEL} Hi", 1),
        ("models --live -p openai", 6),
        ("doctor --online", 1),
    ],
)
def test_a_server_that_is_down(run, line, code):
    """The line names the address."""
    done, out, err = run(*line.split(), stdin="Hi\n")

    assert done == code
    assert "127.0.0.1:1" in out + err
    assert KEY not in out + err
    assert len(err.splitlines()) <= 1


# Output that cannot be written.

PRINTING = [
    f"ask -n -m {MODEL} Hi",
    f"ask -n -m {MODEL} --json Hi",
    f"ask -n -m {MODEL} -x Hi",
    f"compare -n -m {MODEL} Hi",
    f"explain -m {MODEL} Hi",
    f"check {CHAT} --only 7",
    "models",
    "providers",
    "doctor",
    "completion bash",
    "ask --help",
]


@pytest.mark.parametrize("line", PRINTING)
def test_a_full_disk(program, line):
    """Output that cannot be written is one line."""
    arguments = line.replace("--only 7", "--json").split()
    with open("/dev/full", "w", encoding="utf-8") as full:  # noqa: PTH123 -- a device
        running = program.start(*arguments, stdout=full)
        _, err = running.communicate()

    assert (running.returncode, err) == (1, "error: No space left on device\n")


@pytest.mark.parametrize("line", ["models", "providers --json", f"check {CHAT} --json"])
def test_a_closed_pipe(program, line):
    """When the reader has left, the program ends silently."""
    read, write = os.pipe()
    os.close(read)
    running = program.start(*line.split(), stdout=write)
    os.close(write)
    _, err = running.communicate()

    assert (running.returncode, err) == (141, "")


CLOSED = [
    (">&-", f"ask -n -m {MODEL} Hi", 1, "error: Bad file descriptor\n"),
    (">&-", "models", 1, "error: Bad file descriptor\n"),
    (">&-", "keys set openai", 2, "error: That is not a key. Nothing was stored. See `"),
    ("<&-", f"ask -n -m {MODEL} Hi", 0, ""),
    ("<&-", f"ask -n -m {MODEL}", 2, "error: There is no prompt"),
    ("<&-", f"chat -n -m {MODEL}", 0, ""),
    ("2>&-", f"ask -n -m {MODEL} -u Hi", 0, ""),
    ("2>&-", "ask -m nobody:x Hi", 2, ""),
    ("<&- >&- 2>&-", "ask -m nobody:x Hi", 2, ""),
]


@pytest.mark.parametrize(("closed", "line", "code", "found"), CLOSED)
def test_closed_streams(program, closed, line, code, found):
    """Without stdin nothing is read, without stderr nothing is said, without stdout it fails."""
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", *program.command(*line.split())]
    done = subprocess.run(
        command, env=program.env, cwd=program.home, text=True, capture_output=True, check=False,
        stdin=subprocess.DEVNULL, timeout=60,
    )  # fmt: skip

    assert done.returncode == code, done.stderr
    assert done.stderr.startswith(found)
    assert len(done.stderr.splitlines()) == bool(found)
    assert ("You said: Hi" in done.stdout) is (code == 0 and line.endswith("Hi"))


@pytest.mark.parametrize(
    "line",
    [f"ask -n -m {MODEL}", f"chat -n -m {MODEL}", f"compare -n -m {MODEL}", "keys set openai",
     f"embed -m {MODEL}", f"speak -m {MODEL} -o it.mp3", f"ask -m {MODEL} -f -"],
)  # fmt: skip
def test_stdin_that_is_not_text(program, line):
    """It is one line, and nothing is sent or stored."""
    (program.home / "bytes").write_bytes(b"Hello \xff\n")
    with (program.home / "bytes").open() as stdin:
        env = {**program.env, "PYTHONUTF8": "0", "PYTHONIOENCODING": "utf-8:strict"}
        done = subprocess.run(
            program.command(*line.split()), env=env, cwd=program.home, text=True, stdin=stdin,
            capture_output=True, check=False, timeout=60,
        )  # fmt: skip

    assert done.returncode in (1, 2)
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "not text in UTF-8" in done.stderr or "not a key" in done.stderr


def test_a_home_that_cannot_be_written(program):
    """The answer is given and said not to be logged; what needs the home is one line."""
    nowhere = {"INTERLINGUA_HOME": "/dev/null/home"}
    asked = program.run("ask", "-m", MODEL, "Hi", **nowhere)
    talked = program.run("chat", "-m", MODEL, stdin="Hi\n", **nowhere)
    stored = program.run("keys", "set", "openai", stdin="key\n", **nowhere)
    continued = program.run("ask", "-n", "-c", "Hi", **nowhere)

    for done in (asked, talked):
        assert (done.returncode, done.stdout[-13:]) == (0, "You said: Hi\n")
        assert "calls are not logged: /dev/null/home/log.db" in done.stderr
        assert len(done.stderr.splitlines()) == 1
    for done in (stored, continued):
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
        assert "/dev/null/home" in done.stderr


def limit_files():
    """Files of this process cannot be larger than some kilobytes, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))


def test_no_room_for_the_conversation(program):
    """It is said before anything is sent."""
    program.run("ask", "-m", MODEL, "Hi")  # the file is there
    env = {**program.env, "PYTHONDONTWRITEBYTECODE": "1"}  # Python leaves half of a file
    done = subprocess.run(
        program.command("ask", "-m", MODEL, "word " * 4000), env=env, text=True,
        capture_output=True, check=False, stdin=subprocess.DEVNULL, preexec_fn=limit_files,
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert "sessions.db" in done.stderr


# Ctrl-C.


@pytest.fixture
def silent_server():
    """A server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(30)
        yield server


@pytest.mark.parametrize(
    "line",
    [
        f"ask -m {MODEL} Hi",
        f"ask --no-stream -m {MODEL} Hi",
        f"compare -m {MODEL} Hi",
        "models --live -p openai",
        "doctor --online",
        f"check --endpoint URL --dialect {CHAT} -m m",
    ],
)
def test_ctrl_c_while_it_waits(tmp_path, silent_server, line):
    """It ends at once with 130 and one line; the call is in the log."""
    url = f"http://127.0.0.1:{silent_server.getsockname()[1]}"
    program = Program(tmp_path, url)
    program.env.pop("ANTHROPIC_API_KEY")
    running = program.start(*line.replace("URL", url).split())
    connection, _ = silent_server.accept()
    with connection:
        connection.recv(10)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate()

    # Python ends itself with the signal if it was in `exec`, which shells call 130, too.
    assert running.returncode in (130, -signal.SIGINT), err
    assert err.splitlines()[-1] == "interrupted"
    assert "Traceback" not in err + out
    if line.startswith(("ask", "compare")):
        (call,) = json.loads(program.run("log", "--json").stdout)
        assert call["prompt"] == "Hi"
        assert call["error"]


def test_ctrl_c_at_each_stage_of_a_chat(tmp_path):
    """At the prompt, while a tool waits for approval, and while an answer arrives."""
    (tmp_path / "my_tools.py").write_text("def roll() -> int:\n    return 6\n")
    with simulated(tool_call("roll"), COUNTING, text("Done.")) as server:
        program = Program(tmp_path, server.url)
        terminal = Terminal(program, "chat", "--plain", "-m", MODEL, "-T", "my_tools.py")
        terminal.expect("> ")
        terminal.type("half a prom")
        terminal.expect("prom")  # the editor is reading
        terminal.interrupt("Ctrl-D leaves.")
        terminal.expect("> ")
        terminal.type("Roll\n")
        terminal.expect("[y/N] ")
        terminal.interrupt("interrupted")
        terminal.expect("> ")
        terminal.type("Count\n")
        terminal.expect("one ")
        terminal.interrupt("interrupted")
        terminal.expect("> ")
        terminal.type("More\n")
        terminal.expect("Done.")
        terminal.expect("> ")
        terminal.type("\x04")
        assert terminal.close() == 0
        calls = json.loads(program.run("log", "list", "--json").stdout)

    assert [call["prompt"] for call in calls] == ["More", "Count", "Roll"]
    assert calls[1]["answer"].startswith("one")
    assert [bool(call["error"]) for call in calls] == [False, True, True]


def test_ctrl_c_while_ask_waits_for_approval(tmp_path):
    """It ends with 130, and the tool has not run."""
    (tmp_path / "my_tools.py").write_text(
        "import pathlib\n\ndef touch() -> None:\n    pathlib.Path('made').touch()\n"
    )
    with simulated(tool_call("touch")) as server:
        program = Program(tmp_path, server.url)
        terminal = Terminal(program, "ask", "-n", "-m", MODEL, "-T", "my_tools.py", "Go")
        terminal.expect("[y/N] ")
        terminal.interrupt("interrupted")
        assert terminal.close() == 130

    assert not (tmp_path / "made").exists()


def test_ctrl_c_of_piped_prompts(tmp_path):
    """A script is not a conversation: Ctrl-C ends it."""
    script = Script(COUNTING)
    with simulated(script) as server:
        program = Program(tmp_path, server.url)
        (tmp_path / "prompts").write_text("Count\nAgain\n")
        with (tmp_path / "prompts").open() as prompts:
            running = program.start("chat", "-n", "-m", MODEL, stdin=prompts)
        wait_for(lambda: script.received, running)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate()

    assert running.returncode in (130, -signal.SIGINT)
    assert err == "interrupted\n"
    assert len(script.received) == 1


def test_a_failed_prompt_of_several(tmp_path):
    """The exit code of piped prompts is that of the last one."""
    from interlingua.simulator import error

    with simulated(echo, error(400, "no")) as server:
        done = Program(tmp_path, server.url).run("chat", "-n", "-m", MODEL, stdin="Hi\nHo\n")

    assert done.returncode == 4
    assert done.stdout.endswith("You said: Hi\n")
