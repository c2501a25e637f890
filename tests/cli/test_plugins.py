"""Packages that add commands, tools, templates and providers: the one of the docs, and bad ones."""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from interlingua.cli import commands
from interlingua.simulator import Script, text
from support.cli import Program, simulated

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "plugins.md"
BLOCKS = re.findall(
    r"^```(\w+)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)


def blocks(language):
    return [body for kind, body in BLOCKS if kind == language]


def install(folder, name, version, module, code, points):
    """Put a package into a folder, as pip would."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    groups = [
        "\n".join([f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())])
        for group, entries in points.items()
    ]
    (info / "entry_points.txt").write_text("\n\n".join(groups) + "\n")
    (folder / f"{module}.py").write_text(code, encoding="utf-8")


@pytest.fixture
def site(tmp_path):
    """A folder for packages."""
    return tmp_path / "site"


@pytest.fixture
def run(tmp_path, site):
    """Runs a command with the packages of the folder, in a fresh interpreter."""
    with simulated() as server:
        program = Program(tmp_path, server.url)

        def run_fresh(*arguments):
            env = {**program.env, "PYTHONPATH": str(site)}
            return subprocess.run(
                program.command(*arguments), env=env, cwd=tmp_path, capture_output=True,
                text=True, check=False, stdin=subprocess.DEVNULL,
            )  # fmt: skip

        yield run_fresh


@pytest.fixture
def tides(site):
    """The package of the page."""
    (project,) = map(tomllib.loads, blocks("toml"))
    about = project["project"]
    points = about["entry-points"]
    (module,) = {value.partition(":")[0] for group in points.values() for value in group.values()}
    assert (
        f"src/{module}.py" in project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    )
    install(site, about["name"], about["version"], module, blocks("python")[0], points)


@pytest.mark.usefixtures("tides")
def test_the_package_of_the_page(run):
    """Each command prints what the page shows."""
    (session,) = [body for body in blocks("text") if body.startswith("$ ")]
    for part in session.split("$ ")[1:]:
        line, _, expected = part.partition("\n")
        done = run(*shlex.split(line)[1:])
        assert (done.stdout, done.returncode) == (expected, 0), done.stderr


def test_the_repository_of_the_page():
    """The tree of files has the folder, the project file and the module that is packed."""
    (tree,) = [body for body in blocks("text") if not body.startswith("$ ")]
    (project,) = map(tomllib.loads, blocks("toml"))
    packed = project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    folder, *files = tree.splitlines()

    assert folder == f"{project['project']['name']}/"
    assert {"pyproject.toml", *packed} <= {line.split()[-1] for line in files}


@pytest.mark.usefixtures("tides")
def test_the_help_names_commands_and_loads_nothing(run, site):
    """A package that would fail or print when it is loaded does not show in `--help`."""
    (site / "interlingua_tides.py").write_text("print('loaded'); 1 / 0")
    done = run("--help")

    assert done.returncode == 0
    assert "Commands of plugins:\n  tides\n" in done.stdout
    assert "loaded" not in done.stdout
    answer = run("ask", "-n", "-m", "openai:gpt-5.2", "Hi")
    assert answer.returncode == 0
    assert len(answer.stderr.splitlines()) <= 1  # at most the broken provider is named


def test_broken_packages_are_named_and_break_nothing(run, site):
    """Each kind of entry point, with code that fails or is something else."""
    groups = ("commands", "tools", "templates", "providers", "dialects")
    points = {f"interlingua.{group}": {f"bad-{group}": "bad:VALUE"} for group in groups}
    points["interlingua.commands"]["gone"] = "no_such_module:command"
    install(site, "bad-plugin", "2.0", "bad", "VALUE = object()\n", points)
    listed = run("plugins", "--json")
    rows = json.loads(listed.stdout)

    assert listed.returncode == 1
    assert {row["name"]: row["state"] for row in rows} == {
        **{f"bad-{group}": "broken" for group in groups},
        "gone": "broken",
    }
    assert {(row["package"], row["version"]) for row in rows} == {("bad-plugin", "2.0")}
    assert all(row["detail"] for row in rows)
    for arguments, complaint in (
        (("gone",), "The command gone of the package bad-plugin cannot be loaded"),
        (("bad-commands",), "is a object; it must be a click.Command"),
        (("ask", "-n", "-m", "openai:gpt-5.2", "-T", "bad-tools", "Hi"), "not a tool"),
        (("ask", "-n", "-m", "openai:gpt-5.2", "-t", "bad-templates", "Hi"), "must be a text"),
    ):
        done = run(*arguments)
        assert done.returncode in (1, 2), arguments
        assert complaint in done.stderr
        assert "Traceback" not in done.stderr
    for arguments in (
        ("--help",),
        ("ask", "-n", "-m", "openai:gpt-5.2", "Hi"),
        ("models", "-p", "openai"),
    ):
        done = run(*arguments)
        assert done.returncode == 0
        assert "Traceback" not in done.stderr
        assert len(done.stderr.splitlines()) <= 1


def test_a_built_in_command_is_not_replaced(run, site):
    """Its name stays ours, and the list says so."""
    code = "import click\n\n@click.command()\ndef models():\n    click.echo('theirs')\n"
    points = {"interlingua.commands": {"models": "theirs:models"}}
    install(site, "theirs", "1.0", "theirs", code, points)

    assert "theirs" not in run("models", "-p", "openai").stdout
    assert "built in" in run("plugins").stdout


def test_without_plugins_nothing_is_searched_for(monkeypatch):
    """A question of several words is no name of a command."""
    monkeypatch.setattr(commands, "entry_points_of", lambda _: 1 / 0)
    commands._plugin_names.cache_clear()
    context = commands.click.Context(commands.program)

    assert commands._is_question(context, ["Why is the sea salt?"])
    assert not commands._is_question(context, ["models"])


def test_tools_of_a_plugin_need_approval(site, tmp_path):
    """As those of a file do."""
    code = 'def ring(a: int) -> str:\n    """Ring."""\n    return "rung"\n'
    install(site, "bells", "1.0", "bells", code, {"interlingua.tools": {"bells": "bells"}})
    code = (
        "import sys; from interlingua.cli.tool_sources import read_tools\n"
        "for a in (0, 1):\n"
        "    print([(t.name, t.needs_approval) for t in read_tools(['bells'], approve=a)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**Program(tmp_path).env, "PYTHONPATH": str(site)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "[('ring', True)]\n[('ring', False)]\n"


# MCP servers.

SERVER = '''
from mcp.server.mcpserver import MCPServer

server = MCPServer("notes", log_level="CRITICAL")

@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b

server.run("stdio")
'''


def test_an_mcp_server_of_the_configuration(tmp_path):
    """Its tools are offered in `ask` and `chat`, and the process ends with the command."""
    pytest.importorskip("mcp")
    (tmp_path / "notes.py").write_text(SERVER)
    (tmp_path / "interlingua.yaml").write_text(
        f"mcp_servers:\n  notes: {{command: {json.dumps(sys.executable)}, args: [notes.py]}}\n"
        "  wrong: {comand: x}\n"
    )
    script = Script(text("Fine."))
    with simulated(script) as server:
        program = Program(tmp_path, server.url)
        for words, prompt in ((("ask", "Hi"), ""), (("chat",), "Hi\n")):
            options = (words[0], "-n", "-m", "openai:gpt-5.2", "--mcp", "notes", *words[1:])
            done = program.run(*options, stdin=prompt)
            assert (done.returncode, done.stdout) == (0, "Fine.\n"), done.stderr
    assert [[tool.name for tool in each.tools] for each in script.requests] == [["add"], ["add"]]
    wrong = program.run("ask", "-n", "-m", "openai:gpt-5.2", "--mcp", "wrong", "Hi")
    assert wrong.returncode == 2
    assert "interlingua.yaml:3: an MCP server has the keys command" in wrong.stderr
    missing = program.run("ask", "-n", "-m", "openai:gpt-5.2", "--mcp", "other", "Hi")
    assert "it has: notes, wrong" in missing.stderr
