"""What docs/howto/gateway.md shows: the commands, what they print, and the file."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

from interlingua.gateway.config import ServerTimeouts, gateway_from_file
from interlingua.gateway.keys import hash_key
from interlingua.serving.client_application import MAX_BODY

PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "gateway.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
SERVE = [sys.executable, "-c", "from interlingua.cli import main; main()", "serve"]


def block(language, start):
    """The block of the page that begins so."""
    (found,) = [text for kind, text in BLOCKS if kind == language and text.startswith(start)]
    return found


def read(tmp_path, text, **environ):
    """The gateway of a file."""
    path = tmp_path / "interlingua.yaml"
    path.write_text(text.replace("sha256:…", hash_key("il_x")), encoding="utf-8")
    return gateway_from_file(path, environ)


def environment(tmp_path):
    return {**os.environ, "INTERLINGUA_HOME": str(tmp_path), "GEMINI_API_KEY": "k"}


def test_what_serve_prints(tmp_path):
    """The address, the key, once, and how to connect, as on the page."""
    said = []
    for _ in range(2):
        with subprocess.Popen(
            [*SERVE, "--port", "0"], stdout=subprocess.PIPE, text=True, env=environment(tmp_path)
        ) as program:
            lines = [program.stdout.readline() for _ in range(7)]
            program.terminate()
        said.append("".join(lines))
    shown = re.sub(r"\d+\.\d+\.\d+\.\d+:\d+", "127.0.0.1:4000", said[0])

    assert re.sub(r"il_[\w-]+", "il_…", shown) == block("text", "Serving on")
    assert "il_" not in said[1]
    assert "--new-key makes another" in said[1]


def test_the_file_is_valid(tmp_path):
    """It is read as it is, but for the hash of the key."""
    text = block("text", "adapters:\n  anthropic").replace("sha256:…", hash_key("il_x"))
    path = tmp_path / "interlingua.yaml"
    path.write_text(text, encoding="utf-8")

    assert set(yaml.safe_load(text)["gateway"]["routes"]) == {"claude-*", "fast", "default"}
    assert gateway_from_file(path, {"ANTHROPIC_API_KEY": "k", "GEMINI_API_KEY": "k"}).keys
    checked = subprocess.run(
        [*SERVE, "--config", str(path), "--check", "--json"],
        capture_output=True,
        text=True,
        check=True,
        env={**environment(tmp_path), "ANTHROPIC_API_KEY": "k"},
    )
    names = [row["name"] for row in json.loads(checked.stdout)["routes"]]
    assert sorted(names) == ["claude-*", "default", "fast"]
    said = subprocess.run(
        [*SERVE, "--config", str(path), "--check"],
        capture_output=True,
        text=True,
        check=True,
        env={**environment(tmp_path), "ANTHROPIC_API_KEY": "k"},
    )
    assert block("text", "claude-* ->") in said.stdout


def test_the_settings_of_the_server_are_valid(tmp_path):
    """The timeouts on the page are the defaults."""
    text = f"adapters: {{gemini: {{}}}}\n{block('text', 'gateway:')}"
    found = read(tmp_path, text, GEMINI_API_KEY="k")

    assert found.workers == 4
    assert found.cors == ("https://chat.example",)
    assert (found.timeouts, found.max_body) == (ServerTimeouts(), MAX_BODY)


def test_the_balanced_route_is_valid(tmp_path):
    """Its adapters are used as one."""
    text = block("text", "adapters:\n  openai")
    found = read(tmp_path, text, OPENAI_API_KEY="k", OPENAI_EU_KEY="k")

    assert found.routes.find("gpt-5").model == "openai+openai-eu:gpt-5.2"


def test_the_commands_exist(tmp_path):
    """Each command of the page is one that `serve --help` explains."""
    said = subprocess.run(
        [*SERVE, "--help"], capture_output=True, text=True, check=True, env=environment(tmp_path)
    )
    for option in re.findall(r"interlingua serve (--[\w-]+)", PAGE):
        assert option in said.stdout
    assert "interlingua serve" in block("text", "pip install")
    assert "ANTHROPIC_BASE_URL" in block("text", "ANTHROPIC_BASE_URL=")
