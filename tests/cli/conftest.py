"""Fixtures of the command line."""

import pytest

from support.cli import Program, simulated


@pytest.fixture
def program(tmp_path):
    """The program, with a simulator that echoes."""
    with simulated() as server:
        yield Program(tmp_path, server.url)


@pytest.fixture
def bare(tmp_path):
    """The program without any key."""
    return Program(tmp_path)
