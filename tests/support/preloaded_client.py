"""
Asks the interpreter of `preloaded_server.py` for a program.

As a program of its own it is `python` in the place of another one: it passes on its own files,
variables and folder, and ends as the program does.
"""

import json
import os
import socket
import struct
import sys

LENGTH = struct.Struct("!I")


def ask(server, files, **request):
    """Have a program started at the address of a server; `files` are those that it gets."""
    body = json.dumps(request).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(server)
        socket.send_fds(connection, [LENGTH.pack(len(body))], files)
        connection.sendall(body)


def main(server, *arguments):
    """Run `python ARGUMENTS`; returns its exit code."""
    read, write = os.pipe()
    ask(server, [0, 1, 2, write], arguments=arguments, env=dict(os.environ), cwd=os.getcwd())  # noqa: PTH109
    os.close(write)
    with os.fdopen(read) as report:
        report.readline()  # the id of the process
        code = int(report.readline())
    return code if code >= 0 else 128 - code  # as shells count


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
