"""`interlingua record` and `replay`: the exchanges of any program, kept and played back."""

import json
import os
import signal
import stat
import subprocess
import sys

import pytest

from interlingua import HttpAdapter, Request
from interlingua.sync import Client
from interlingua.transport import ReplayTransport
from support.cli import KEY, Program

PROGRAM = """
import sys
from anthropic import Anthropic
from openai import OpenAI

question = [{"role": "user", "content": sys.argv[1]}]
with OpenAI().responses.stream(model="gpt-5.2", input=sys.argv[1]) as events:
    print(len(list(events)) > 5, events.get_final_response().output_text)
answer = Anthropic().messages.create(model="claude-haiku-4-5", max_tokens=50, messages=question)
print(answer.content[0].text)
"""
"""A program that knows nothing of this library."""
LIGHT = """
import json, os, sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
for prompt in sys.argv[1:]:
    body = {"model": "gpt-5.2", "messages": [{"role": "user", "content": prompt}]}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps(body).encode(),
        {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "user-agent": "light"},
    )
    with opener.open(request) as reply:
        print(json.load(reply)["choices"][0]["message"]["content"], flush=True)
"""
"""A smaller one, without an SDK."""
LIGHTLY = ("--", sys.executable, "-c", LIGHT)

ANSWER = "[simulated answer, no model was asked] You said: Hi."
posix = pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is no signal there")


def first_object(stream):
    """The first JSON object that is printed."""
    text = ""
    for line in stream:
        text += line
        if line == "}\n":
            return json.loads(text)
    raise AssertionError(text)


def ask(url, prompt="Hi."):
    """A call of the library at this base URL."""
    with Client({"anthropic": HttpAdapter("anthropic", KEY, base_url=url)}) as client:
        return client.complete(Request(model="anthropic:claude-haiku-4-5", messages=prompt))


def test_the_laws_are_checked_on_what_was_recorded(program, bare, tmp_path):
    """The traffic of the vendors' SDKs is checked in each dialect, without a key."""
    (tmp_path / "p.py").write_text(PROGRAM)
    program.run("record", "calls.json", "--", sys.executable, "p.py", "Hi.")

    checked = bare.run("check", "--recordings", "calls.json", "--json")
    of_one = bare.run("check", "anthropic_messages", "--recordings", ".", "--json")

    assert (checked.returncode, checked.stderr) == (0, "")
    reports = json.loads(checked.stdout)
    found = [(each["dialect"], each["cases"], each["percent"]) for each in reports]
    assert found == [("anthropic_messages", 1, 100), ("openai_responses", 1, 100)]
    assert [each["dialect"] for each in json.loads(of_one.stdout)] == ["anthropic_messages"]


def test_recordings_without_an_answer_are_refused(program, bare):
    """With the exchanges that no law is about, and with the options that do not go together."""
    program.run("record", "calls.json", *LIGHTLY, "Hi.")

    none = bare.run("check", "gemini_generate", "--recordings", "calls.json")
    both = bare.run("check", "--recordings", "calls.json", "--cases", ".")

    assert none.returncode != 0
    assert "calls.json has no exchange in which a model answers" in none.stderr
    assert both.returncode == 2
    assert "--recordings goes with none of" in both.stderr


def test_a_program_is_recorded_and_replayed(program, bare, tmp_path):
    """The vendors' SDKs get the same answers without network and keys, and no key is stored."""
    (tmp_path / "p.py").write_text(PROGRAM)
    command = ("--", sys.executable, "p.py", "Hi.")
    recorded = program.run("record", "calls.json", *command)
    replayed = bare.run("replay", "calls.json", *command)

    assert recorded.returncode == 0, recorded.stderr
    assert recorded.stdout == f"True {ANSWER}\n{ANSWER}\n"
    assert recorded.stderr == "Recorded 2 exchanges in calls.json.\n"
    assert (replayed.returncode, replayed.stdout) == (0, recorded.stdout)
    assert replayed.stderr == "Replayed 2 of 2 exchanges of calls.json.\n"
    text = (tmp_path / "calls.json").read_text()
    assert KEY not in text
    assert "[redacted]" in text
    if os.name == "posix":
        assert stat.S_IMODE((tmp_path / "calls.json").stat().st_mode) == 0o600


def test_the_library_reads_the_file(program, tmp_path):
    """A recording of the command line is one for `ReplayTransport`, and of this program too."""
    command = ("--", *Program.command("ask", "--no-log", "-m", "openai:gpt-5.2", "Hi."))
    done = program.run("record", "calls.json", *command)
    replayed = program.run("replay", "calls.json", *command)
    url = json.loads((tmp_path / "calls.json").read_text())["exchanges"][0]["request"]["url"]
    adapter = HttpAdapter("openai", KEY, transport=ReplayTransport(tmp_path / "calls.json"))
    with Client({"openai": adapter}) as client:
        events = list(client.stream(Request(model="openai:gpt-5.2", messages="Hi.")))

    assert done.stdout == replayed.stdout == f"{ANSWER}\n"
    assert url == f"{program.env['OPENAI_BASE_URL']}/responses"
    assert events[-1].response.text == ANSWER


def test_a_request_without_a_recording(program, bare):
    """The program gets a 400, stderr says what differs, and the exit code is not 0."""
    program.run("record", "calls.json", *LIGHTLY, "Hi.")
    done = bare.run("replay", "calls.json", "--json", *LIGHTLY, "Ho.")

    assert done.returncode == 1  # that of the program
    assert "HTTP Error 400" in done.stderr
    assert "body.messages[0].content: recorded 'Hi.', now 'Ho.'" in done.stderr
    assert json.loads(done.stdout) == {
        "file": "calls.json", "exchanges": 1, "replayed": 0, "missing": 1, "code": 1,
    }  # fmt: skip
    careless = ("--", sys.executable, "-c", _CARELESS)
    assert bare.run("replay", "calls.json", *careless).returncode == 1


_CARELESS = """
import os, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try:
    opener.open(os.environ["OPENAI_BASE_URL"] + "/models")
except OSError:
    pass
"""


def test_ignore_and_repeat(program, bare):
    """A field may be left out of the comparison, and an answer may be given more than once."""
    program.run("record", "calls.json", *LIGHTLY, "Hi.")
    other = bare.run("replay", "calls.json", "--ignore", "messages", *LIGHTLY, "Ho.")
    once = bare.run("replay", "calls.json", *LIGHTLY, "Hi.", "Hi.")
    again = bare.run("replay", "calls.json", "--repeat", *LIGHTLY, "Hi.", "Hi.")

    assert (other.returncode, other.stdout) == (0, f"{ANSWER}\n")
    assert (once.returncode, once.stdout) == (1, f"{ANSWER}\n")
    assert "it was recorded 1 times and requested 2 times" in once.stderr
    assert (again.returncode, again.stdout) == (0, f"{ANSWER}\n" * 2)


@posix
def test_servers_until_ctrl_c(program, bare):
    """Without a command, both serve at the printed addresses, the same ones, until Ctrl-C."""
    with program.start("record", "calls.json", "--port", "0", "--json") as process:
        printed = first_object(process.stdout)
        answer = ask(printed["variables"]["ANTHROPIC_BASE_URL"])
        process.send_signal(signal.SIGINT)
        code, errors = process.wait(), process.stderr.read()
    assert (code, errors) == (0, "Recorded 1 exchange in calls.json.\n")
    assert printed["variables"]["OPENAI_BASE_URL"] == f"{printed['url']}/openai/v1"

    port = printed["url"].rpartition(":")[2]
    with bare.start("replay", "calls.json", "--port", port, "--speed", "10") as process:
        lines = [process.stdout.readline() for _ in range(2)]
        again = ask(f"{printed['url']}/anthropic")
        process.send_signal(signal.SIGINT)
        code, errors = process.wait(), process.stderr.read()
    assert lines == [
        f"Replaying 1 exchange on {printed['url']}. Ctrl-C ends it.\n",
        f"  OPENAI_BASE_URL={printed['url']}/openai/v1\n",
    ]
    assert code == 0
    assert errors.splitlines()[0].startswith("POST /anthropic/v1/messages · 200 · ")
    assert errors.splitlines()[1] == "Replayed 1 of 1 exchanges of calls.json."
    assert again.text == answer.text == ANSWER


@posix
@pytest.mark.parametrize("to", ["{}", "house={}/v1"])
def test_to(bare, program, to):
    """`--to` sends everything, or what comes under a name, to a server."""
    url = program.env["ANTHROPIC_BASE_URL"]
    arguments = ("record", "calls.json", "--port", "0", "--json", "--to", to.format(url))
    with bare.start(*arguments) as process:
        printed = first_object(process.stdout)
        answer = ask(printed["url"] + ("/house" if "house" in to else ""))
        process.send_signal(signal.SIGINT)
        code = process.wait()

    assert (code, answer.text) == (0, ANSWER)
    is_rest = "house" not in to
    expected = f"{printed['url']}/v1" if is_rest else f"{printed['url']}/openai/v1"
    assert printed["variables"]["OPENAI_BASE_URL"] == expected


@posix
def test_an_unknown_path_is_refused(bare, tmp_path):
    """Nothing is sent to a provider that was not named, and no file is left behind."""
    with bare.start("record", "calls.json", "--port", "0", "--json") as process:
        printed = first_object(process.stdout)
        with pytest.raises(Exception, match="does not begin with the name of a provider"):
            ask(printed["url"])
        process.send_signal(signal.SIGINT)
        code, errors = process.wait(), process.stderr.read()

    assert code == 0
    assert errors.endswith("Nothing was recorded.\n")
    assert not (tmp_path / "calls.json").exists()


@posix
def test_ctrl_c_ends_the_program_too(program, tmp_path):
    """What was recorded before stays, and the exit code is that of an interrupt."""
    waiting = f"{LIGHT}\nprint('waiting', flush=True)\nimport time\ntime.sleep(60)\n"
    arguments = ("record", "calls.json", "--", sys.executable, "-c", waiting, "Hi.")
    with program.start(*arguments, has_own_session=True) as process:
        assert "waiting\n" in process.stdout  # reads until then
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        code, errors = process.wait(), process.stderr.read()

    assert code == 130
    assert "Recorded 1 exchange in calls.json.\ninterrupted\n" in errors
    assert len(json.loads((tmp_path / "calls.json").read_text())["exchanges"]) == 1


@posix
def test_a_full_disk(program, tmp_path):
    """The program gets its answers; the file keeps what fits, and the exit code is 1."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))"
    code = f"{limit}\nfrom interlingua.cli import main\nraise SystemExit(main())"
    env = {**program.env, "PYTHONDONTWRITEBYTECODE": "1"}  # Python leaves half of a file
    done = subprocess.run(
        [sys.executable, "-c", code, "record", "calls.json", *LIGHTLY, "Hi.", "Ho."],
        capture_output=True, text=True, env=env, cwd=tmp_path, timeout=60, check=False,
    )  # fmt: skip

    assert len(done.stdout.splitlines()) == 2
    assert done.returncode == 1
    assert done.stderr.startswith("error: Cannot write the cassette 'calls.json'")
    assert done.stderr.endswith("Recorded 1 exchange in calls.json.\n")
    assert len(json.loads((tmp_path / "calls.json").read_text())["exchanges"]) == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["record", "here.json"], "here.json exists. --overwrite replaces it."),
        (["record", "x.json", "--to", "nowhere"], "nowhere is no http or https URL"),
        (["record", "x.json", "--to", "http://a", "--to", "http://b"], "only one URL can be"),
        (["record", "here.json/x.json"], "here.json"),
        (["record", "x.json", "--port", "99999"], "99999 is not in the range"),
        (["record", "x.json", "--host", "256.0.0.1"], ""),
        (["record", "x.json", "--", "no-such-program"], "Cannot run no-such-program"),
        (["replay", "nowhere.json"], "'nowhere.json' does not exist"),
        (["replay", "here.json"], "'here.json' is not a cassette"),
        (["replay", "here.json", "--speed", "-1"], "-1.0 is not in the range"),
    ],
)
def test_bad_input_is_one_line(bare, tmp_path, arguments, complaint):
    """The line says what is wrong, and no file is left behind."""
    (tmp_path / "here.json").write_text("{}")
    done = bare.run(*arguments)

    assert done.returncode in (1, 2), done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert complaint in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here.json"]


def test_overwrite(program, tmp_path):
    """An old file is replaced and made private; with `--json`, stdout is for the JSON."""
    (tmp_path / "calls.json").write_text("old")
    done = program.run("record", "calls.json", "--overwrite", "--json", *LIGHTLY, "Hi.")

    assert json.loads(done.stdout) == {
        "file": "calls.json", "exchanges": 1, "code": 0, "failed": 0,
    }  # fmt: skip
    assert f"{ANSWER}\n" in done.stderr
    if os.name == "posix":
        assert stat.S_IMODE((tmp_path / "calls.json").stat().st_mode) == 0o600


def test_a_server_that_is_not_there(bare, tmp_path):
    """The program gets an error, which is recorded, and the line says why."""
    command = ("--", sys.executable, "-c", _CARELESS)
    done = bare.run("record", "calls.json", "--to", "http://127.0.0.1:1", *command)
    exchange = json.loads((tmp_path / "calls.json").read_text())["exchanges"][0]

    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert exchange["error"]["type"] == "NetworkError"
