"""`python -m interlingua.simulator`."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys

from interlingua.simulator import SIMULATED, Simulator, serve_in_thread
from interlingua.simulator.__main__ import main
from support.patience import PATIENCE


def test_it_serves_until_interrupted():
    """It says where, answers, and ends well."""
    environment = {**os.environ, "SIMULATOR_KEY": "planted"}
    command = [sys.executable, "-m", "interlingua.simulator", "--port", "0"]
    command += ["--key-env", "SIMULATOR_KEY", "--model", "m", "--strict"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            said = [process.stdout.readline() for _ in range(4)]
            port = int(re.search(r"127\.0\.0\.1:(\d+)", said[0])[1])
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
            body = {"model": "m", "input": "Hello?"}
            headers = {"authorization": "Bearer planted"}
            connection.request("POST", "/v1/responses", json.dumps(body), headers)
            answer = json.loads(connection.getresponse().read())
            connection.request("POST", "/v1/responses", json.dumps({**body, "x": 1}), headers)
            refused = connection.getresponse().status
            connection.close()
        finally:
            process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=PATIENCE)

    assert answer["output"][0]["content"][0]["text"] == f"{SIMULATED} You said: Hello?"
    assert refused == 400
    assert "simulated answers, no model" in said[0]
    assert (process.returncode, rest) == (0, ("", ""))
    assert "planted" not in "".join(said)


def test_a_port_that_is_taken(capsys):
    """Is told in a line, not a traceback."""
    with serve_in_thread(Simulator()) as server:
        assert main(["--port", str(server.port)]) == 1

    assert f"cannot listen on 127.0.0.1:{server.port}" in capsys.readouterr().err


def test_a_port_that_cannot_be(capsys):
    """The same."""
    assert main(["--port", "99999"]) == 2

    assert capsys.readouterr().err.startswith("Invalid port 99999")


def test_a_key_that_is_not_there(capsys, monkeypatch):
    """The variable must be set before it can be asked for."""
    monkeypatch.delenv("SIMULATOR_KEY", raising=False)

    assert main(["--key-env", "SIMULATOR_KEY"]) == 2
    assert "SIMULATOR_KEY is not set" in capsys.readouterr().err
