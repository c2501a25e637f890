"""Fixtures of the command line."""

import io
import os
import sys

import pytest

from interlingua.cli import main
from support.cli import KEY, Program, simulated


@pytest.fixture
def program(tmp_path):
    """The program, with a simulator that echoes."""
    with simulated() as server:
        yield Program(tmp_path, server.url)


@pytest.fixture
def bare(tmp_path):
    """The program without any key."""
    return Program(tmp_path)


@pytest.fixture
def run_here(tmp_path, monkeypatch, capsys):
    """
    Runs a command in this process; returns its exit code, stdout and stderr.

    Two providers are configured, so that none of them is taken for granted: give their address.
    """
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_BASE_URL"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("INTERLINGUA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("INTERLINGUA_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)

    def run(*arguments, stdin="", url=None):
        if url is not None:
            for name, base in (("OPENAI", f"{url}/v1"), ("ANTHROPIC", url)):
                monkeypatch.setenv(f"{name}_API_KEY", KEY)
                monkeypatch.setenv(f"{name}_BASE_URL", base)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), "utf-8"))
        code = main(arguments)
        return (code, *capsys.readouterr())

    return run
