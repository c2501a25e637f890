import json
import signal
import subprocess
import sys

import pytest

from interlingua.local import host
from support.llama import send

SETTINGS = {
    "name": "a name",
    "template": "",
    "verbosity": 1,
    "context": 512,
    "slots": 1,
    "threads": 1,
    "embeddings": False,
}


def begin():
    return subprocess.Popen(
        [sys.executable, "-P", host.__file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def line(**settings):
    return json.dumps({"sys_path": sys.path, **SETTINGS, **settings}).encode() + b"\n"


def test_it_serves_until_stdin_ends(gguf):
    """The address comes on stdout; Ctrl-C is not for it; the end of stdin is its end."""
    with begin() as process:
        process.stdin.write(line(gguf=str(gguf)))
        process.stdin.flush()
        url = process.stdout.readline().decode().strip()
        process.send_signal(signal.SIGINT)

        status, headers, body = send(f"{url}/v1/models")
        said, logged = process.communicate(timeout=60)

    assert status == 200
    assert json.loads(body)["data"][0]["id"] == "a name"
    assert headers["Access-Control-Allow-Origin"] == ""
    assert (process.returncode, said, logged) == (0, b"", b"")


@pytest.mark.parametrize(
    "settings", [b"", b"nonsense\n", line(gguf="/nowhere.gguf"), line(gguf=5)], ids=str
)
def test_it_ends_where_it_cannot_serve(settings):
    """Bad settings give no address, a reason on stderr, and an end."""
    with begin() as process:
        said, logged = process.communicate(settings, timeout=60)

    assert process.returncode == 1
    assert said == b""
    assert logged
