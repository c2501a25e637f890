"""`interlingua connect`: the files of each program, the probe, and the way back."""

import json
import re
import stat
import tomllib
from pathlib import Path

import anthropic
import pytest
import yaml

from interlingua.cli.connect import _NAMES
from interlingua.gateway.connect import PROGRAMS
from interlingua.gateway.json_edit import read_json
from interlingua.simulator import Simulator, serve_in_thread, text
from support.cli import Program, Terminal
from support.gateways import gateway
from support.patience import PATIENCE
from support.simulated import adapters

MODEL = "gemini:gemini-2.5-pro"
FILES = {
    "claude": [".claude/settings.json"],
    "codex": [".codex/config.toml"],
    "gemini": [".gemini/.env", ".gemini/settings.json"],
    "opencode": [".config/opencode/opencode.json"],
    "qwen": [".qwen/settings.json"],
    "pi": [".pi/agent/models.json", ".pi/agent/settings.json"],
    "llm": [
        ".config/io.datasette.llm/extra-openai-models.yaml",
        ".config/io.datasette.llm/keys.json",
    ],
    "aider": [".aider.conf.yml"],
}
OLD = {
    ".json": '{\n  // mine\n  "theme": "dark"\n}\n',
    ".toml": '# mine\nmodel = "old" # as before\n\n[tools]\nweb = true\n',
    ".yaml": "# mine\n- model_id: other\n  model_name: x\n",
    ".yml": "# mine\ndark-mode: true\n",
    "": "# mine\nOTHER=1\n",
}
every_program = pytest.mark.parametrize("name", FILES)


@pytest.fixture(scope="module")
def front():
    with (
        serve_in_thread(Simulator(lambda _: text("ready"))) as upstream,
        gateway(adapters(upstream.url), {"only": MODEL}) as front,
    ):
        yield front


class Connect(Program):
    """The command in a home of its own, before a gateway."""

    def __init__(self, home, front):
        super().__init__(home / "user")
        self.home.mkdir()
        self.front = front
        self.env["INTERLINGUA_GATEWAY_KEY"] = front.key

    def __call__(self, name, *arguments, **variables):
        given = ("connect", name, "--url", self.front.url, *arguments)
        done = self.run(*given, **variables)

        assert self.front.key not in done.stdout + done.stderr
        return done

    def file(self, name):
        return self.home / name


@pytest.fixture
def connect(tmp_path, front):
    return Connect(tmp_path, front)


def test_the_names():
    """The list of the command is that of the table, without importing it."""
    assert set(PROGRAMS) == set(_NAMES)
    assert set(FILES) == {name for name, each in PROGRAMS.items() if each.edits is not None}


@every_program
def test_new_files(connect, name):
    """They are made, have the key, and only their owner can read them; undoing removes them."""
    done = connect(name, "-m", MODEL, "--yes")

    assert done.returncode == 0, done.stderr
    assert "gemini:gemini-2.5-pro answers." in done.stderr
    assert "+++" in done.stdout
    written = [connect.file(each) for each in FILES[name]]
    texts = [path.read_text() for path in written]
    assert connect.front.key in "".join(texts)
    assert MODEL in "".join(texts)
    assert connect.front.url in "".join(texts)
    assert {stat.S_IMODE(path.stat().st_mode) for path in written} == {0o600}
    assert connect(name, "--undo").returncode == 0
    assert not any(path.exists() for path in written)


@every_program
def test_files_of_the_user(connect, name):
    """What was in them stays, comments too; undoing restores every byte and the permissions."""
    before = {}
    for each in FILES[name]:
        path = connect.file(each)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(OLD[path.suffix])
        path.chmod(0o644)
        before[path] = path.read_bytes()
    done = connect(name, "-m", MODEL, "--yes")

    assert done.returncode == 0, done.stderr
    for path, old in before.items():
        assert "mine" in path.read_text()
        assert kept_in(path, old.decode())
        assert path.with_name(f"{path.name}.before-interlingua").read_bytes() == old
    assert connect(name, "-m", "only", "--yes").returncode == 0  # the first backup counts
    assert connect(name, "--undo").returncode == 0
    for path, old in before.items():
        assert path.read_bytes() == old
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
        assert not [each for each in path.parent.iterdir() if "interlingua" in each.name]


def kept_in(path, old):
    """Whether a file still has what the user had in it."""
    now = path.read_text()
    if path.suffix == ".json":
        return read_json(now)["theme"] == "dark"
    if path.suffix == ".toml":
        return tomllib.loads(now)["tools"] == {"web": True} and "# as before" in now
    if path.suffix == ".yaml":
        return {"model_id": "other", "model_name": "x"} in yaml.safe_load(now)
    return old.splitlines()[1] in now


def test_what_codex_reads(connect):
    """A provider of its own, which speaks Responses with the key."""
    connect("codex", "-m", MODEL, "--yes")
    read = tomllib.loads(connect.file(".codex/config.toml").read_text())

    assert read == {
        "model": MODEL,
        "model_provider": "interlingua",
        "model_providers": {
            "interlingua": {
                "name": "Interlingua",
                "base_url": f"{connect.front.url}/v1",
                "wire_api": "responses",
                "experimental_bearer_token": connect.front.key,
            }
        },
    }


def test_folders_that_variables_name(connect, tmp_path):
    """As the programs find them."""
    connect("codex", "-m", MODEL, "--yes", CODEX_HOME=str(tmp_path / "c"))
    connect("claude", "-m", MODEL, "--yes", CLAUDE_CONFIG_DIR=str(tmp_path / "d"))

    assert (tmp_path / "c" / "config.toml").exists()
    assert (tmp_path / "d" / "settings.json").exists()


def test_a_link_stays_a_link(connect, tmp_path):
    """Files in a repository of settings are changed where they are."""
    real = tmp_path / "dotfiles.toml"
    real.write_text("# mine\n")
    link = connect.file(".codex/config.toml")
    link.parent.mkdir()
    link.symlink_to(real)

    assert connect("codex", "-m", MODEL, "--yes").returncode == 0
    assert link.is_symlink()
    assert "interlingua" in real.read_text()


@pytest.mark.parametrize("name", ["openai", "vercel"])
def test_programs_without_files(connect, name):
    """Lines to copy, with the variable of the key."""
    done = connect(name, "-m", MODEL)

    assert done.returncode == 0, done.stderr
    assert f"{connect.front.url}/v1" in done.stdout
    assert "INTERLINGUA_GATEWAY_KEY" in done.stdout
    assert MODEL in done.stdout


@pytest.mark.parametrize("arguments", [("--print",), ()])
def test_nothing_is_written_without_leave(connect, arguments):
    """Only shown; without a terminal and without --yes it is an error."""
    done = connect("claude", "-m", MODEL, *arguments)

    assert done.returncode == (0 if arguments else 2)
    assert "ANTHROPIC_BASE_URL" in done.stdout
    assert not connect.file(".claude").exists()


@pytest.mark.parametrize("answer", ["y", "n"])
def test_the_question(connect, answer):
    """On a terminal the key and the leave are asked for; the key is not shown."""
    del connect.env["INTERLINGUA_GATEWAY_KEY"]
    url = connect.front.url
    terminal = Terminal(connect, "connect", "claude", "-m", MODEL, "--url", url)
    terminal.expect("Key of the gateway")
    terminal.type(f"{connect.front.key}\n")
    terminal.expect("Write this?")
    terminal.type(f"{answer}\n")

    assert terminal.close() == 0
    assert connect.front.key not in terminal.printed
    assert connect.file(".claude/settings.json").exists() == (answer == "y")


def test_without_a_model(connect):
    """The names of the gateway are told; the only one needs not be named."""
    several = connect("claude", "--yes")

    assert several.returncode == 2
    assert "only" in several.stderr
    with (
        serve_in_thread(Simulator(lambda _: text("ready"))) as upstream,
        gateway(adapters(upstream.url), {"only": MODEL}, direct=False) as alone,
    ):
        done = connect.run("connect", "claude", "--url", alone.url, "--key", alone.key, "--yes")
    assert done.returncode == 0, done.stderr
    assert '"ANTHROPIC_MODEL": "only"' in done.stdout


def test_no_gateway(connect):
    """The error says how to start one."""
    done = connect.run("connect", "claude", "-m", MODEL, "--url", "http://127.0.0.1:9")

    assert done.returncode == 6
    assert "interlingua serve" in done.stderr


@every_program
def test_a_wrong_key(connect, name):
    """In the words of the gateway, for every program; the key is cut short."""
    done = connect(name, "-m", MODEL, "--yes", "--key", "il_wrong-wrong-wrong")

    assert done.returncode == 3
    assert "refuses the key il_…rong" in done.stderr
    assert "il_wrong-wrong" not in done.stderr
    assert not any(connect.file(each).exists() for each in FILES[name])


@every_program
def test_a_model_that_does_not_exist(connect, name):
    """For every program, and nothing is written."""
    done = connect(name, "-m", "nothing-such", "--yes")

    assert done.returncode == 4
    assert "has no model 'nothing-such'" in done.stderr
    assert not any(connect.file(each).exists() for each in FILES[name])


def test_no_key(connect):
    """The variable is named."""
    done = connect.run("connect", "claude", "--url", connect.front.url, INTERLINGUA_GATEWAY_KEY="")

    assert done.returncode == 2
    assert "INTERLINGUA_GATEWAY_KEY" in done.stderr


def test_a_file_that_is_not_json(connect):
    """The error names the file and the line, and nothing is written."""
    path = connect.file(".claude/settings.json")
    path.parent.mkdir()
    path.write_text('{\n  "env": [\n')
    done = connect("claude", "-m", MODEL, "--yes")

    assert done.returncode == 2
    assert "settings.json" in done.stderr
    assert path.read_text() == '{\n  "env": [\n'


def test_undo_after_a_change_of_the_user(connect):
    """What would be lost is shown, without the key, and it needs leave."""
    connect("claude", "-m", MODEL, "--yes")
    path = connect.file(".claude/settings.json")
    path.write_text(path.read_text().replace('"env"', '"later": 1,\n  "env"'))
    asked = connect("claude", "--undo")

    assert asked.returncode == 2
    assert '-  "later": 1,' in asked.stdout
    assert path.exists()
    assert connect("claude", "--undo", "--yes").returncode == 0
    assert not path.exists()
    again = connect("claude", "--undo")
    assert again.returncode == 2
    assert "Nothing was written for claude" in again.stderr


def test_json(connect):
    """What a program reads: who answers, what was lost, and which files were written."""
    done = connect("claude", "-m", MODEL, "--yes", "--json")
    said = json.loads(done.stdout)

    assert said["provider"] == "gemini"
    assert said["model"] == "gemini-2.5-pro"
    assert said["written"] is True
    assert said["files"] == [str(connect.file(".claude/settings.json"))]
    assert said["warnings"] == ["effort_as_budget"]
    undone = json.loads(connect("claude", "--undo", "--json").stdout)
    assert undone["files"] == said["files"]


PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "agents.md").read_text(encoding="utf-8")


def test_the_page(tmp_path):
    """From nothing to Claude Code on a Gemini model: the commands print what the page shows."""
    blocks = re.findall(r"```text\n(\$ .*?)```", PAGE, re.DOTALL)
    (install, export, serve, *served), (given, command, *connected) = map(str.splitlines, blocks)
    with serve_in_thread(Simulator(lambda _: text("ready"))) as upstream:
        program = Program(tmp_path)
        program.env |= {"GEMINI_API_KEY": "k", "GEMINI_BASE_URL": upstream.url}
        with program.start(*serve.split()[2:], "--port", "0") as process:
            said = [process.stdout.readline().rstrip() for _ in served]
            ((url, key),) = re.findall(r"(http://\S+)\. .*: (il_\S+)", " ".join(said))
            program.env["INTERLINGUA_GATEWAY_KEY"] = key
            done = program.run(*command.split()[2:], "--url", url)
            settings = json.loads((tmp_path / ".claude" / "settings.json").read_text())
            answer = as_claude_code(settings["env"])
            process.terminate()
            process.communicate(timeout=PATIENCE)
    printed = f"{done.stderr}\n{done.stdout}".replace(url, "http://127.0.0.1:4000")
    printed = re.sub(r"il_…[\w-]+", "il_…", printed).replace(str(tmp_path), "~")

    assert (install, export) == (
        "$ pip install 'interlingua[cli,gateway]'",
        "$ export GEMINI_API_KEY=…",
    )
    assert given == "$ export INTERLINGUA_GATEWAY_KEY=il_…"
    assert [
        re.sub(r"il_\S+", "il_…", line).replace(url, "http://127.0.0.1:4000") for line in said
    ] == served
    assert sorted(filter(None, printed.splitlines())) == sorted(connected)
    assert answer == "ready"


def as_claude_code(env):
    """What the model answers to a client with these variables."""
    with anthropic.Anthropic(
        base_url=env["ANTHROPIC_BASE_URL"], auth_token=env["ANTHROPIC_AUTH_TOKEN"], api_key=None
    ) as client:
        said = client.messages.create(
            model=env["ANTHROPIC_MODEL"],
            max_tokens=99,
            messages=[{"role": "user", "content": "Hi"}],
        )
    return said.content[0].text


def test_the_table_of_the_page():
    """Every program has a row, with its API."""
    rows = re.findall(r"^\| (`[^|]+) \| ([^|]+) \|", PAGE, re.MULTILINE)
    named = {name: api for cell, api in rows for name in re.findall(r"`(\w+)`", cell)}
    apis = {"anthropic": "Messages", "openai": "Responses", "gemini": "Gemini"}

    assert named.pop("interlingua", None) is None
    for name, program in PROGRAMS.items():
        assert named[name] == apis.get(program.row, "Chat Completions")
