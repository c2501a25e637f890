"""
An interpreter that has imported the package, and forks itself for each program that it is sent.

`preloaded.py` starts it. For each program it is sent one request (`preloaded_client.py`): the
arguments, variables and folder as JSON, and four open files: stdin, stdout, stderr, and where to
write the id of the process and, at the end, its exit code. It ends when its own stdin does.
"""

import atexit
import contextlib
import fcntl
import gc
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import termios
import threading
from importlib import import_module

from preloaded_client import LENGTH  # this file is run, not imported

FILES = 4
NOT_PRELOADED = (
    "interlingua.__main__",  # is run
    "interlingua.conformance.plugin",  # pytest loads its plugins itself
    "interlingua.testing",
)
OTHERS = ("httptools", "rich.live", "rich.markdown", "rich.progress", "rich.table", "sqlite3")


def preload():
    """Import what programs use, so that they start at once."""
    import interlingua

    for module in pkgutil.walk_packages(interlingua.__path__, "interlingua."):
        if module.name not in NOT_PRELOADED:
            with contextlib.suppress(ImportError):  # of a package that is not installed
                import_module(module.name)
    for name in OTHERS:
        import_module(name)
    gc.freeze()  # or a collection in a child would copy everything


def receive(listener):
    """The next request and its files; None if stdin has ended."""
    ready, _, _ = select.select([listener, sys.stdin], [], [])
    if sys.stdin in ready:
        return None
    connection, _ = listener.accept()
    with connection:
        head, files, _, _ = socket.recv_fds(connection, LENGTH.size, FILES)
        (left,) = LENGTH.unpack(head)
        body = b""
        while len(body) < left:
            body += connection.recv(left - len(body))
    return json.loads(body), files


def fork(files):
    """
    True in the new process that is to be the program, False in the server.

    Between them is a process that waits for the program, and tells its exit code.
    """
    if os.fork():
        for file in files:
            os.close(file)
        return False
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *standard, report = files
    program = os.fork()
    if not program:
        os.close(report)
        return True
    for file in standard:
        os.close(file)
    with contextlib.suppress(BrokenPipeError):  # the test has ended
        os.write(report, b"%d\n" % program)
        _, status = os.waitpid(program, 0)
        os.write(report, b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def become(request, standard):
    """Have the files, variables, folder and arguments of the program, as if it was just started."""
    has_terminal = request.get("has_terminal")
    if has_terminal or request.get("has_own_session"):
        os.setsid()
    for number, file in enumerate(standard):
        os.dup2(file, number)
        os.close(file)
    if has_terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    sys.stdout.reconfigure(line_buffering=sys.stdout.isatty())
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])


def run(arguments):
    """Do what `python -m MODULE ...` or `python FILE ...` does."""
    first, *rest = arguments
    if first == "-m":
        sys.path.insert(0, os.getcwd())  # noqa: PTH109 -- a path is text here
        name, *rest = rest
        sys.argv = [name, *rest]
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(first)))  # noqa: PTH100, PTH120
        sys.argv = [first, *rest]
        runpy.run_path(first, run_name="__main__")


def end(code):
    """
    End as the interpreter does, but do not take its modules to pieces.

    That would take ten times as long as most programs, because each page of memory is copied first.
    """
    threading._shutdown()
    atexit._run_exitfuncs()
    gc.collect()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main():
    """Serve, and run programs in the children."""
    sys.path.remove(os.path.dirname(__file__))  # noqa: PTH120 -- a path is text here
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those between
    preload()
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        while (received := receive(listener)) is not None:
            request, files = received
            if fork(files):
                break
        else:
            os.killpg(0, signal.SIGTERM)  # this one, and programs that a test has left running
    become(request, files[:-1])
    try:
        run(request["arguments"])
    except SystemExit as error:
        if not isinstance(error.code, int):
            raise
        end(error.code)


if __name__ == "__main__":
    main()
