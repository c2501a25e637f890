"""
Programs as processes of their own that start in milliseconds.

Each is forked from an interpreter that has imported the package: it has its own files, variables,
folder, session, signals and end. What it does not show is what the imports of a fresh interpreter
do; for that, start one.
"""

import atexit
import contextlib
import functools
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support.patience import PATIENCE
from support.preloaded_client import ask

SERVER = Path(__file__).with_name("preloaded_server.py")
CLIENT = Path(__file__).with_name("preloaded_client.py")


class Process:
    """A running program, to be used like `subprocess.Popen`."""

    def __init__(self, report, stdin, stdout, stderr):
        self._report = report
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr
        self.pid = int(report.readline())
        self.returncode = None

    def poll(self):
        """The exit code, if it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout=PATIENCE):
        """The exit code, when it has ended."""
        if self.returncode is None:
            if not select.select([self._report], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            self.returncode = int(self._report.readline())
            self._report.close()
        return self.returncode

    def send_signal(self, number):
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self):
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, text=None, timeout=PATIENCE):
        """Write stdin, read stdout and stderr to their ends, and wait for the end."""
        watch = threading.Timer(timeout, self.kill)
        watch.start()
        try:
            with ThreadPoolExecutor(3) as pool:
                pool.submit(self._write, text)
                out, err = pool.map(_read, (self.stdout, self.stderr))
            code = self.wait()
        finally:
            watch.cancel()
        assert code != -signal.SIGKILL, f"it did not end in {timeout} s: {out} {err}"
        return out, err

    def _write(self, text):
        if self.stdin is not None:
            with contextlib.suppress(BrokenPipeError), self.stdin:
                self.stdin.write(text or "")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:  # or a failure of the test would wait for it
            self.kill()
        try:
            self.wait()
        finally:
            for stream in filter(None, (self.stdin, self.stdout, self.stderr)):
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


def _read(stream):
    if stream is None:
        return None
    with stream:
        return stream.read()


def start(
    arguments,
    *,
    env,
    cwd,
    stdin=subprocess.DEVNULL,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    has_own_session=False,
    has_terminal=False,
):
    """
    Start `python ARGUMENTS`, where these begin with `-m MODULE` or with a file.

    `has_terminal`: stdin is a terminal, and becomes the one that controls the process.
    """
    request = {
        "arguments": [str(each) for each in arguments],
        "env": env,
        "cwd": str(cwd),
        "has_own_session": has_own_session,
        "has_terminal": has_terminal,
    }
    with contextlib.ExitStack() as stack:
        pairs = [
            _open(stack, given, number) for number, given in enumerate((stdin, stdout, stderr))
        ]
        read, write = os.pipe()
        stack.callback(os.close, write)
        ask(_server(), [*(file for file, _ in pairs), write], **request)
        return Process(os.fdopen(read, encoding="utf-8"), *(stream for _, stream in pairs))


def _open(stack, given, number):
    """The file of the program, and the stream of the test at the other end of a pipe."""
    if given == subprocess.PIPE:
        read, write = os.pipe()
        file, other, mode = (read, write, "w") if number == 0 else (write, read, "r")
        stack.callback(os.close, file)
        return file, os.fdopen(other, mode, encoding="utf-8")
    if given == subprocess.DEVNULL:
        file = os.open(os.devnull, os.O_RDWR)
        stack.callback(os.close, file)
        return file, None
    return (given if isinstance(given, int) else given.fileno()), None


def command(*arguments):
    """A command for shells that is `python ARGUMENTS`."""
    return [sys.executable, "-I", "-S", str(CLIENT), _server(), *arguments]


@functools.cache
def _server():
    """The address of the interpreter, which is started at the first use."""
    folder = tempfile.mkdtemp(prefix="interlingua-")
    atexit.register(shutil.rmtree, folder)
    address = f"{folder}/server"
    # Coverage that is measured there would be written whole by each of the programs.
    variables = {name: os.environ[name] for name in os.environ if not name.startswith("COVERAGE")}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        server = subprocess.Popen(
            [sys.executable, SERVER, str(listener.fileno())],
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
            env={**variables, "PYTHONUTF8": "1"},
            start_new_session=True,
        )
    atexit.register(server.communicate)  # closes its stdin
    return address
