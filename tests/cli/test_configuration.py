"""The configuration file: which one wins, what is trusted, and how commands change it."""

import json
import re
from pathlib import Path

import pytest

from interlingua import Client
from interlingua.api.run.clients import get_default_client, set_default_client
from interlingua.simulator import Simulator, serve_in_thread
from interlingua.spec.request import Request
from support.cli import KEY, MODEL, Terminal

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "configuration.md"


@pytest.fixture
def folders(program, tmp_path):
    """The program in a folder that is not its home; returns that folder."""
    program.home = tmp_path / "cloned"
    program.home.mkdir()
    program.env["INTERLINGUA_HOME"] = str(tmp_path / "own")
    (tmp_path / "own").mkdir()
    return program.home


def model_of(program, *arguments, **variables):
    done = program.run(*arguments, "default", "--json", **variables)
    return json.loads(done.stdout)["model"]


def test_what_wins_over_what(program, folders, tmp_path):
    """--config, then the variable, then the working folder, then the user's folder."""
    names = ("flag", "variable", "here", "own")
    paths = dict(zip(names, (tmp_path / "a.yaml", tmp_path / "b.yaml"), strict=False))
    paths |= {"here": folders / "interlingua.yaml", "own": tmp_path / "own" / "interlingua.yaml"}
    for name, path in paths.items():
        path.write_text(f"default_model: openai:{name}\n")
    flag, variable = (
        ("--config", str(paths["flag"])),
        {"INTERLINGUA_CONFIG": str(paths["variable"])},
    )
    assert program.run("config", "trust", "--yes").returncode == 0

    assert model_of(program, INTERLINGUA_MODEL="openai:first") == "openai:first"
    assert model_of(program, *flag, **variable) == "openai:flag"
    assert model_of(program, **variable) == "openai:variable"
    assert model_of(program) == "openai:here"
    paths["here"].unlink()
    assert model_of(program) == "openai:own"
    assert model_of(program, INTERLINGUA_CONFIG="/dev/null") != "openai:own"


def test_a_file_of_the_working_folder_adds_to_the_users_own(program, folders, tmp_path):
    """What it does not set holds as the user has set it; of two with one name it wins."""
    own = "log: false\naliases: {a: openai:own, b: openai:own}\n"
    (tmp_path / "own" / "interlingua.yaml").write_text(own)
    (folders / "interlingua.yaml").write_text("aliases: {b: openai:here, c: openai:here}\n")
    program.run("config", "trust", "--yes")
    rows = json.loads(program.run("alias", "list", "--json").stdout)

    assert {row["alias"]: row["model"] for row in rows} == {
        "a": "openai:own", "b": "openai:here", "c": "openai:here",
    }  # fmt: skip
    assert program.run("ask", "-m", MODEL, "Hi").returncode == 0
    assert json.loads(program.run("log", "--json").stdout) == []


def test_a_prompt_never_goes_where_an_untrusted_file_says(program, folders):
    """No address, alias, default, template or server of it counts; a warning names the file."""
    simulator = Simulator(key=KEY)
    with serve_in_thread(simulator) as elsewhere:
        (folders / "interlingua.yaml").write_text(
            f"default_provider: openai\n"
            f"default_model: openai:evil\n"
            f"log: true\n"
            f"aliases: {{gpt-5.2: anthropic:evil}}\n"
            f"templates: {{t: Evil.}}\n"
            f"mcp_servers: {{notes: {{command: touch, args: [evil]}}}}\n"
            f"adapters:\n  openai: {{base_url: '{elsewhere.url}/v1'}}\n"
            f"models: {{gpt-5-nano: {{adapter: openai, wire_name: evil}}}}\n"
        )
        for arguments in (
            ("-m", "openai:gpt-5.2"), ("-m", "gpt-5.2"), ("-m", "gpt-5-nano"), (),
        ):  # fmt: skip
            done = program.run("ask", "--json", *arguments, "Hi")
            assert done.returncode == 0, done.stderr
            assert "evil" not in done.stdout.lower()
            assert done.stderr.count("interlingua.yaml is not used") == 1
            assert len([*filter(None, done.stderr.splitlines())]) <= 3
        assert program.run("ask", "-t", "t", "Hi").returncode == 2
        assert not simulator.script.requests
        program.run("config", "trust", "--yes")
        trusted = json.loads(program.run("ask", "--json", "Hi").stdout)

        assert trusted["model"] == "openai:evil"
        assert len(simulator.script.requests) == 1


def test_a_file_is_accepted_by_its_content(program, folders):
    """One changed byte, or another folder, and it has to be accepted again."""
    path = folders / "interlingua.yaml"
    path.write_text("default_model: openai:one\n")
    assert program.run("config", "trust").returncode == 2  # nobody can be asked
    assert model_of(program) != "openai:one"
    program.run("config", "trust", "--yes")
    assert model_of(program) == "openai:one"
    path.write_text("default_model: openai:two\n")
    assert model_of(program) not in ("openai:one", "openai:two")
    path.write_text("default_model: openai:one\n")
    assert model_of(program) == "openai:one"
    other = folders / "other"
    other.mkdir()
    (other / "interlingua.yaml").write_text("default_model: openai:one\n")
    program.home = other
    assert model_of(program) != "openai:one"


def test_trust_shows_the_file_and_asks(program, folders):
    """On a terminal: what it sets, without keys, and a question."""
    (folders / "interlingua.yaml").write_text(
        "adapters:\n  openai: {base_url: 'http://there.example/v1', api_key: planted-key}\n"
    )
    terminal = Terminal(program, "config", "trust")
    terminal.expect("Use this file?")
    shown = terminal.printed
    terminal.type("n\n")
    assert terminal.close() == 0

    assert "there.example" in shown
    assert "the address of openai" in shown
    assert "planted-key" not in shown
    assert "is not used" in program.run("default").stderr


def test_what_may_be_a_secret_is_not_shown(program, folders):
    """Keys of any name, all headers and the environment of programs; the rest is shown."""
    (folders / "interlingua.yaml").write_text(
        "adapters:\n"
        "  openai:\n"
        "    api_key: planted-one, and more\n"
        "    api_key_env: SHOWN_VARIABLE\n"
        "    extra_headers: {X-Team: planted-two, Authorization: 'Bearer planted-three'}\n"
        "  gpu:\n    {type: openai_compatible, base_url: 'http://shown.example/v1', "
        "apiKey: planted-four}\n"
        "mcp_servers:\n"
        "  notes:\n"
        "    command: shown-program\n"
        "    env:\n"
        "      TOKEN: |\n"
        "        planted-five\n"
        "# shown-comment\n"
    )
    shown = program.run("config", "trust", "--yes").stdout

    assert "planted" not in shown
    for word in (
        "SHOWN_VARIABLE",
        "shown.example",
        "shown-program",
        "X-Team: …",
        "# shown-comment",
    ):
        assert word in shown


def test_trust_can_be_taken_back(program, folders):
    """Also if the file is not there any more; what was never accepted is an error."""
    (folders / "interlingua.yaml").write_text("default_model: openai:here\n")
    never = program.run("config", "trust", "--remove")
    program.run("config", "trust", "--yes")
    used = model_of(program)
    removed = program.run("config", "trust", "--remove")
    (folders / "interlingua.yaml").unlink()

    assert (never.returncode, "nothing to remove" in never.stderr) == (2, True)
    assert used == "openai:here"
    assert removed.stderr.endswith("interlingua.yaml is not used any more.\n")
    assert program.run("config", "trust", "--remove").returncode == 2
    assert model_of(program) != "openai:here"


def test_the_gateway_uses_the_same_files(program, folders, tmp_path):
    """The first one with a section `gateway`; one of the working folder only if it is trusted."""
    own, here, named = (
        tmp_path / "own" / "interlingua.yaml",
        folders / "interlingua.yaml",
        tmp_path / "named.yaml",
    )
    for path in (own, here, named):
        route = f"{path.parent.name}-{path.stem}"
        path.write_text(f"adapters: {{openai: {{}}}}\ngateway: {{routes: {{{route}: {MODEL}}}}}\n")

    def check(*arguments, **variables):
        done = program.run(*arguments, "serve", "--check", **variables)
        assert done.returncode == 0, done.stderr
        return done.stdout.partition(" ")[0], done.stderr

    route, notes = check()
    assert route == "own-interlingua"
    assert "is not used" in notes
    assert f"Configuration: {own}" in notes
    program.run("config", "trust", "--yes")
    assert check()[0] == "cloned-interlingua"
    assert check(INTERLINGUA_CONFIG=str(named))[0].endswith("-named")
    assert check("--config", str(named), INTERLINGUA_CONFIG=str(own))[0].endswith("-named")
    here.write_text("default_model: openai:x\n")
    program.run("config", "trust", "--yes")
    assert check()[0] == "own-interlingua"
    own.write_text("default_model: openai:x\n")
    assert "without a file" in check()[1]


def test_a_changed_file_of_the_working_folder_is_not_reloaded(program, folders, monkeypatch):
    """The gateway goes on with what was accepted: a reload is an error until it is trusted."""
    from interlingua.cli.configuration import HERE, ConfigFile, trust
    from interlingua.cli.serve import _renew
    from interlingua.errors import ConfigurationError
    from interlingua.gateway.source import Source

    monkeypatch.setenv("INTERLINGUA_HOME", program.env["INTERLINGUA_HOME"])
    path = folders / "interlingua.yaml"
    path.write_text("gateway: {}\n")
    file = ConfigFile(path, path.read_text(), HERE)
    source = Source(secret=b"", environ={}, path=str(path))
    trust(file)

    assert _renew(source, file).text == "gateway: {}\n"
    path.write_text("gateway: {port: 5000}\n")
    with pytest.raises(ConfigurationError, match="was changed"):
        _renew(source, file)
    assert _renew(source, file._replace(origin="--config")).text == "gateway: {port: 5000}\n"


def test_the_default_model_for_embeddings(program):
    """It is set, shown, used by `embed` and by a new collection, and removed."""
    missing = program.run("embed", "sea")
    wrong = program.run("default", "--embedding", "small")
    done = program.run("default", "--embedding", "openai:text-embedding-3-small")

    assert (missing.returncode, "default --embedding" in missing.stderr) == (2, True)
    assert (wrong.returncode, "names no provider" in wrong.stderr) == (2, True)
    assert "for embeddings is now openai:text-embedding-3-small." in done.stderr
    assert program.run("default", "--embedding").stdout == "openai:text-embedding-3-small\n"
    assert "default_embedding_model" in program.run("config", "show").stdout
    assert program.run("embed", "-d", "2", "sea").returncode == 0
    line = '{"id": "1", "text": "sea"}'
    assert program.run("embed-many", "notes", "-", stdin=line).returncode == 0
    assert program.run("default", "--embedding", "--remove").returncode == 0
    assert program.run("embed-many", "notes", "-", stdin=line).returncode == 0  # it knows its model
    assert program.run("embed-many", "others", "-", stdin=line).returncode == 2


def test_commands_change_single_lines(program, tmp_path):
    """Comments and order stay; the file is the user's alone."""
    path = tmp_path / "interlingua.yaml"
    path.write_text(
        "# mine\ndefault_model: openai:old  # why\naliases:\n  # short\n  a: openai:x\n"
    )
    program.run("default", "openai:gpt-5.2")
    program.run("alias", "set", "b", "openai:gpt-5.2")
    program.run("alias", "set", "c", "b")
    program.run("alias", "remove", "a")

    assert path.read_text() == (
        "# mine\ndefault_model: openai:gpt-5.2  # why\naliases:\n  # short\n"
        "  b: openai:gpt-5.2\n  c: openai:gpt-5.2\n"
    )
    program.run("default", "--remove")
    assert "default_model" not in path.read_text()


def test_a_new_file_is_private(program, tmp_path):
    """Others may not read what may have a key one day."""
    assert program.run("default", "openai:gpt-5.2").returncode == 0
    assert (tmp_path / "interlingua.yaml").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("default", "antropic:x"), "Did you mean anthropic:x?"),
        (("default", ""), "is empty"),
        (("default", "openai:x", "--remove"), "either MODEL or --remove"),
        (("alias", "set", "a:b", "openai:x"), "without a colon"),
        (("alias", "set", "a", "nosuch"), "nosuch"),
        (("alias", "remove", "a"), "no alias 'a'"),
        (("config", "trust"), "no interlingua.yaml in this folder that needs it"),
        (("config", "edit"), "needs a terminal"),
        (("--config", "nothing.yaml", "default"), "--config: nothing.yaml: No such file"),
    ],
)
def test_wrong_uses(bare, arguments, complaint):
    """Each is one line that says what to do; nothing is written."""
    done = bare.run(*arguments)

    assert done.returncode == 2
    assert complaint in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (bare.home / "interlingua.yaml").exists()


def test_a_wrong_file_is_an_error_with_its_line(bare):
    """Of every command that needs it; `doctor` tells it among the rest."""
    (bare.home / "interlingua.yaml").write_text("default_model: a\naliasses: {}\n")
    done = bare.run("ask", "Hi")

    assert done.returncode == 2
    assert "interlingua.yaml:2: Unknown key 'aliasses'" in done.stderr
    row = bare.run("doctor")
    assert (row.returncode, row.stdout.count("interlingua.yaml:2: Unknown key")) == (1, 1)


def test_edit_saves_only_what_is_valid(program, tmp_path):
    """The editor is opened again after a mistake, with what was written."""
    editor = tmp_path / "editor"
    editor.write_text(
        "#!/bin/sh\nif grep -q default_modle $1; then echo 'default_model: openai:b' > $1\n"
        "else echo 'default_modle: openai:a' > $1; fi\n"
    )
    editor.chmod(0o755)
    terminal = Terminal(program, "config", "edit", EDITOR=str(editor), VISUAL="")
    terminal.expect("Unknown key 'default_modle'")
    terminal.type("y\n")
    terminal.expect("Saved")
    assert terminal.close() == 0
    assert (tmp_path / "interlingua.yaml").read_text() == "default_model: openai:b\n"


def test_doctor_says_what_holds(program, folders):
    """The files with their order, the default model and the log, with reasons."""
    (folders / "interlingua.yaml").write_text("log: false\n")
    rows = {}
    for row in json.loads(program.run("doctor", "--json").stdout):
        rows.setdefault(row["check"], row)

    assert rows["configuration file"]["state"] == "not trusted"
    assert "there is a key for openai" in rows["default model"]["detail"]
    assert rows["log"]["state"] == "on"
    program.run("config", "trust", "--yes")
    done = json.loads(program.run("doctor", "--json").stdout)
    assert [row["state"] for row in done if row["check"] == "log"] == ["off"]


def test_the_file_of_the_page(program, tmp_path):
    """It is valid, and the command line and a program find in it what the page says."""
    (text,) = re.findall(
        r"^```yaml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    path = tmp_path / "page.yaml"
    path.write_text(text, encoding="utf-8")
    done = program.run("--config", str(path), "config", "show", "--json")
    rows = {row["setting"]: row["value"] for row in json.loads(done.stdout)}

    assert (rows["default_model"], rows["log"]) == ("sonnet", "off")
    assert rows["aliases.house"] == "gpu:llama-4"
    assert {"aliases.sonnet", "templates.commit", "mcp_servers.notes"} <= rows.keys()
    client = Client.from_file(path)
    assert client.explain(Request(model="house", messages="Hi.")).provider == "gpu"


# The library.


@pytest.fixture
def fresh_client(monkeypatch, tmp_path):
    """The module-level client, made anew, in an empty working folder."""
    monkeypatch.delenv("INTERLINGUA_CONFIG", raising=False)
    monkeypatch.setenv("INTERLINGUA_HOME", str(tmp_path / "own"))
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    (tmp_path / "own").mkdir()
    (tmp_path / "cloned").mkdir()
    monkeypatch.chdir(tmp_path / "cloned")
    set_default_client(None)
    yield get_default_client
    set_default_client(None)


@pytest.mark.parametrize("place", ["own", "cloned", "variable"])
def test_the_library_reads_the_users_file_and_never_that_of_the_working_folder(
    fresh_client, tmp_path, monkeypatch, place
):
    """The functions without `client=` have its default model."""
    path = tmp_path / place / "interlingua.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text("default_model: openai:gpt-5.2\n")
    if place == "variable":
        monkeypatch.setenv("INTERLINGUA_CONFIG", str(path))

    expected = "" if place == "cloned" else "openai:gpt-5.2"
    assert fresh_client().registry.default_model == expected
