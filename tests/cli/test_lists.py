"""`models`, `providers`, `keys` and `log`."""

import json
import stat
import time
from contextlib import suppress
from subprocess import PIPE, TimeoutExpired

import pytest

from interlingua.catalog import list_models
from interlingua.cli.prompts import read_schema, several
from support.cli import KEY, MODEL, Terminal, simulated

SECRET = "sk-a-key-that-is-never-shown"


@pytest.fixture
def invoke(run_here):
    """Runs a command in this process; returns what it printed as JSON."""

    def run(*arguments):
        code, out, err = run_here(*arguments, "--json")
        assert code == 0, err
        return json.loads(out)

    return run


def test_models_are_those_of_the_catalog(invoke):
    """Filters are those of `list_models`, and words are looked for in the names."""
    rows = invoke("models", "-p", "google", "-c", "vision", "--max-price", "1")
    expected = list_models("gemini", capability="vision", max_price=1, kind="chat", available=True)

    assert [row["name"] for row in rows] == [f"gemini:{model.id}" for model in expected]
    assert rows
    assert all("haiku" in row["name"] for row in invoke("models", "HAIKU", "-p", "anthropic"))
    assert len(invoke("models", "-p", "openai", "--all")) > len(invoke("models", "-p", "openai"))
    embedding = invoke("models", "-p", "openai", "--kind", "embedding", "--all")
    assert {row["kind"] for row in embedding} == {"embedding"}


def test_models_that_can_be_used(run_here, monkeypatch):
    """Those of the providers with a key are listed; `--all` and `-p` list others, too."""
    all_models = json.loads(run_here("models", "gpt-5.2", "--json")[1])
    assert {row["provider"] for row in all_models} > {"openai"}  # nobody has a key

    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    code, out, err = run_here("models", "gpt-5.2")
    assert code == 0
    assert [line.partition(":")[0] for line in out.splitlines()[1:]] == ["openai"] * 2
    assert err == f"--all lists {len(all_models) - 2} of providers without a key too.\n"

    code, out, err = run_here("models", "haiku-4")
    assert (code, out) == (1, "")
    assert err.startswith("No provider with a key has such a model; --all lists ")
    assert run_here("models", "haiku-4", "-p", "anthropic")[0] == 0
    assert run_here("models", "haiku-4", "--all")[0] == 0
    assert run_here("models", "no-such-model", "--all")[:2] == (1, "")


def test_the_newest_call_is_next_to_the_prompt(program):
    """On a terminal it is the last one, elsewhere the first."""
    for prompt in ("First", "Second"):
        program.run("ask", "-m", MODEL, prompt)
    piped = program.run("log").stdout
    terminal = Terminal(program, "log")
    assert terminal.close() == 0

    assert piped.index("Second") < piped.index("First")
    assert terminal.text.index("First") < terminal.text.index("Second")


def test_a_wrong_name_is_no_call(program):
    """The model that there is not, or whose provider is unknown, leaves no row in the log."""
    assert program.run("ask", "-m", "nobody:model", "Hi").returncode == 2
    assert json.loads(program.run("log", "--json").stdout) == []


@pytest.mark.parametrize(
    "arguments", [("--kind", "poem"), ("-c", "magic"), ("--tier", "huge"), ("--max-price", "-1")]
)
def test_wrong_filters(bare, arguments):
    """A filter that there is not is one line that lists those that there are."""
    done = bare.run("models", *arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1


def test_live_models(program):
    """`--live` asks the provider."""
    done = program.run("models", "--live", "-p", "openai", "--json")

    assert done.returncode == 0, done.stderr
    assert all(row["name"].startswith("openai:") for row in json.loads(done.stdout))


def test_the_models_of_bedrock(program):
    """The catalog lists all of them, and `--live` those that AWS lists for the key."""
    variables = {
        "AWS_BEARER_TOKEN_BEDROCK": program.env["OPENAI_API_KEY"],
        "AWS_REGION": "us-east-1",
        "BEDROCK_BASE_URL": program.env["ANTHROPIC_BASE_URL"],
    }
    known, live = (
        program.run("models", "-p", "bedrock", *options, "--json", **variables)
        for options in ((), ("--live",))
    )

    assert (known.returncode, live.returncode) == (0, 0), live.stderr
    names = [row["name"] for row in json.loads(known.stdout)]
    assert "bedrock:us.amazon.nova-pro-v1:0" in names
    assert [row["name"] for row in json.loads(live.stdout)] == ["bedrock:simulated-model"]


def test_providers(program, bare):
    """Those with a key are first; the others say which variable is missing."""
    with_key = json.loads(program.run("providers", "--json").stdout)
    by_name = {row["name"]: row for row in with_key}

    assert by_name["openai"]["configured"]
    assert by_name["openai"]["how"] == "OPENAI_API_KEY"
    assert not by_name["mistral"]["configured"]
    assert by_name["mistral"]["how"] == "set MISTRAL_API_KEY"
    assert KEY not in json.dumps(with_key)
    flags = [row["configured"] for row in with_key]
    assert flags == sorted(flags, reverse=True)
    without = json.loads(bare.run("providers", "--configured", "--json").stdout)
    assert {row["name"] for row in without} <= {"local"}


def test_keys(program):
    """A stored key is used, is in a private file, and is printed nowhere."""
    program.env.pop("OPENAI_API_KEY")
    refused = program.run("ask", "-n", "-m", MODEL, "Hi")
    stored = program.run("keys", "set", "openai", stdin=f"{KEY}\n")
    listed = program.run("keys", "list")
    used = program.run("ask", "-n", "-m", MODEL, "Hi")
    path = program.home / "keys.json"

    assert refused.returncode != 0
    assert (stored.returncode, stored.stdout) == (0, "")
    assert "OPENAI_API_KEY" in listed.stdout
    assert used.returncode == 0, used.stderr
    assert KEY not in stored.stderr + listed.stdout + listed.stderr + used.stderr
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert program.run("keys", "remove", "openai").returncode == 0
    assert KEY not in path.read_text()
    assert program.run("keys", "remove", "openai").returncode == 2
    assert program.run("keys", "set", "openai", stdin="\n").returncode == 2
    path.write_text("{")
    damaged = program.run("keys", "list")
    assert (damaged.returncode, len(damaged.stderr.splitlines())) == (1, 1)


def test_a_key_for_another_program(program):
    """`keys get` writes it into a pipe; a terminal does not get it."""
    program.run("keys", "set", "deepseek", stdin="planted-key\n")
    got = program.run("keys", "get", "deepseek")
    none = program.run("keys", "get", "groq")
    terminal = Terminal(program, "keys", "get", "deepseek")

    assert got.stdout == "planted-key\n"
    assert (none.returncode, none.stdout) == (2, "")
    assert terminal.close() == 2
    assert "planted" not in terminal.printed


@pytest.mark.parametrize(
    ("name", "code", "found"),
    [
        ("groq", 0, "GROQ_API_KEY, for groq"),
        ("OPENAI_API_KEY", 0, "for openai"),
        ("MY_SERVER", 0, "for `--key MY_SERVER`"),
        ("OPENAI_API_KEY_2", 0, "for `--key OPENAI_API_KEY_2`"),
        ("OPENAI_APIKEY", 2, "Did you mean OPENAI_API_KEY?"),
        ("ANTROPIC_API_KEY", 2, "Did you mean ANTHROPIC_API_KEY?"),
    ],
)
def test_names_of_keys(run_here, name, code, found):
    """It is said what a key is for; a name that is nearly that of a provider is a slip."""
    done, _, err = run_here("keys", "set", name, stdin="planted-key\n")

    assert done == code
    assert found in err
    assert "planted" not in err


def test_options_of_models(run_here):
    """What a model takes is what is not refused or dropped."""
    with simulated() as server:
        code, out, _ = run_here("models", "--options", "gpt-5.2", "--json", url=server.url)
    options = {row["name"]: row["options"] for row in json.loads(out)}

    assert code == 0
    assert {"temperature", "reasoning_effort"} <= {*options["openai:gpt-5.2"]}
    assert "temperature" not in options["openai:gpt-5.2-pro"]
    assert not [each for each in options.values() if "top_k" in each]


def test_keys_that_others_can_read_are_reported(program):
    """Once, on stderr, with the command that helps; a private file says nothing."""
    program.env.pop("OPENAI_API_KEY")
    program.run("keys", "set", "openai", stdin=f"{KEY}\n")
    path = program.home / "keys.json"
    quiet = program.run("ask", "-n", "-m", MODEL, "Hi")
    path.chmod(0o644)
    told = program.run("ask", "-n", "-m", MODEL, "Hi")

    assert "chmod" not in quiet.stderr
    assert told.returncode == 0
    assert " ".join(told.stderr.split()).count(f"chmod 600 {path}") == 1
    assert KEY not in told.stderr
    path.write_text('{"OPENAI_API_KEY": null}')  # it is in the keyring
    assert "chmod" not in program.run("keys", "list").stderr


def test_keys_in_a_keyring(bare):
    """Where the package `keyring` has a place, the key is there and not in the file."""
    (bare.home / "keyring.py").write_text(
        "import json, pathlib\n"
        "PATH = pathlib.Path(__file__).with_name('ring.json')\n"
        "class Ring: priority = 5\n"
        "def get_keyring(): return Ring()\n"
        "def _all(): return json.loads(PATH.read_text()) if PATH.exists() else {}\n"
        "def set_password(s, n, k): PATH.write_text(json.dumps({**_all(), n: k}))\n"
        "def get_password(s, n): return _all().get(n)\n"
        "def delete_password(s, n): PATH.write_text('{}')\n"
    )
    bare.run("keys", "set", "mistral", stdin=SECRET)

    assert SECRET not in (bare.home / "keys.json").read_text()
    assert SECRET in (bare.home / "ring.json").read_text()
    shown = json.loads(bare.run("keys", "list", "--json").stdout)
    assert [row["place"] for row in shown] == ["keyring"]
    rows = json.loads(bare.run("providers", "mistral", "--json").stdout)
    assert rows[0]["configured"]
    bare.run("keys", "remove", "mistral")
    assert SECRET not in (bare.home / "ring.json").read_text()


def test_two_processes_that_set_keys_lose_none(bare):
    """The second waits for the first, which has read the file and not yet written it."""
    (bare.home / "keyring.py").write_text(
        "import os, pathlib, time\n"
        "HOME = pathlib.Path(__file__).parent\n"
        "if os.environ.get('PAUSE'):\n"
        "    (HOME / 'has_read').touch()\n"
        "    while not (HOME / 'may_write').exists(): time.sleep(0.01)\n"
        "class Ring: priority = 0\n"
        "def get_keyring(): return Ring()\n"
    )
    paused = {**bare.env, "PAUSE": "1"}
    with bare.start("keys", "set", "openai", stdin=PIPE, env=paused) as first:
        first.stdin.write(f"{SECRET}\n")
        first.stdin.close()
        while not (bare.home / "has_read").exists():
            time.sleep(0.01)
        with bare.start("keys", "set", "mistral", stdin=PIPE) as second:
            second.stdin.write(f"{SECRET}\n")
            second.stdin.close()
            with suppress(TimeoutExpired):
                second.wait(timeout=1)  # it would end here if it did not wait
            (bare.home / "may_write").touch()
            assert (first.wait(), second.wait()) == (0, 0)

    stored = json.loads((bare.home / "keys.json").read_text())
    assert stored == {"OPENAI_API_KEY": SECRET, "MISTRAL_API_KEY": SECRET}


def test_a_prompt_that_is_not_utf_8_is_asked_logged_and_found(program):
    """It is asked, logged and found as far as it can be read."""
    asked = program.run("ask", "-m", MODEL, "About caf\udce9s")
    found = json.loads(program.run("log", "search", "About", "--json").stdout)

    assert (asked.returncode, [call["prompt"] for call in found]) == (0, ["About caf?s"])
    assert program.run("log", "search", "\udce9").returncode == 0


def test_log(program):
    """Calls are listed, found by their text, shown whole, and summed up by day and model."""
    program.run("ask", "-m", MODEL, "-s", "Be brief.", "About pelicans")
    program.run("ask", "-m", MODEL, "About herons")
    listed = json.loads(program.run("log", "--json").stdout)
    found = json.loads(program.run("log", "search", "PELICAN", "--json").stdout)
    shown = program.run("log", "show", "1").stdout
    costs = json.loads(program.run("log", "cost", "--json").stdout)

    assert [call["prompt"] for call in listed] == ["About herons", "About pelicans"]
    assert [call["id"] for call in found] == [1]
    assert "system:\nBe brief.\n\nprompt:\nAbout pelicans\n\nanswer:\n" in shown
    assert [(row["model"], row["calls"]) for row in costs] == [(MODEL, 2)]
    assert costs[0]["cost"] == pytest.approx(sum(call["cost"] for call in listed))
    assert "█" in program.run("log", "cost").stdout
    assert program.run("log", "show", "99").returncode == 2
    (program.home / "log.db").write_bytes(b"no database" * 100)
    damaged = program.run("log")
    assert (damaged.returncode, len(damaged.stderr.splitlines())) == (1, 1)
    kept = program.run("ask", "-m", MODEL, "Still?")
    assert kept.returncode == 0
    assert "The call was not logged" in kept.stderr


@pytest.mark.parametrize("words", ["log", "log list", "log search x", "log cost", "keys list"])
def test_an_empty_list(run_here, words):
    """A new user is told that there is nothing, and JSON is an empty list."""
    code, out, err = run_here(*words.split())
    expected = int("search" in words)  # as `grep` does

    assert (code, out, len(err.splitlines())) == (expected, "", 1)
    assert run_here(*words.split(), "--json") == (expected, "[]\n", "")


def test_schemas():
    """The three forms of `--schema`, and the list of such objects."""
    short = read_schema("name, age int, bio: in one sentence")

    assert list(short["properties"]) == short["required"] == ["name", "age", "bio"]
    assert short["properties"]["bio"] == {"type": "string", "description": "in one sentence"}
    assert read_schema(json.dumps(short)) == short
    assert several(short)["properties"]["items"]["items"] == short
