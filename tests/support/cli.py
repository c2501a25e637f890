"""The command line as a process of its own, against a simulator on loopback."""

import os
import subprocess
import sys
from pathlib import Path

from interlingua.simulator import Simulator, serve_in_thread

KEY = "sk-planted-key-of-a-test"
MODEL = "openai:gpt-5.2"


class Program:
    """Runs `python -m interlingua` in a home of its own, with one simulated provider."""

    def __init__(self, home: Path, url: str | None = None) -> None:
        names = ("PATH", "PYTHONPATH", "PYTHONHASHSEED", "SYSTEMROOT", "XDG_CACHE_HOME")
        self.home = home
        self.env = {name: os.environ[name] for name in names if name in os.environ}
        self.env |= {"INTERLINGUA_HOME": str(home), "HOME": str(home), "PYTHONUTF8": "1"}
        if url is not None:
            self.env |= {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{url}/v1"}
            self.env |= {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": url}

    def run(self, *arguments, stdin="", **variables):
        """Run a command to its end."""
        return subprocess.run(
            self.command(*arguments),
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env={**self.env, **variables},
            cwd=self.home,
        )

    def start(self, *arguments, **options):
        """Start a command."""
        return subprocess.Popen(
            self.command(*arguments),
            **{
                "stdin": subprocess.DEVNULL,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                **options,
            },
            text=True,
            env=self.env,
            cwd=self.home,
        )

    @staticmethod
    def command(*arguments):
        """The command as a list."""
        return [sys.executable, "-m", "interlingua", *arguments]


def simulated(*answers):
    """A server with these answers, as a context manager."""
    return serve_in_thread(Simulator(*answers, key=KEY))
