"""`interlingua simulate` serves until it is interrupted."""

import json
import signal
import sys

import pytest

from interlingua import HttpAdapter, Request
from interlingua.sync import Client


def first_object(stream):
    """The first JSON object that is printed."""
    text = ""
    for line in stream:
        text += line
        if line == "}\n":
            return json.loads(text)
    raise AssertionError(text)


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is no signal there")
def test_it_answers_and_ends_with_ctrl_c(bare):
    """Its address is printed, programs can use it, and Ctrl-C is no error."""
    with bare.start("simulate", "--port", "0", "--json", "--script", "echo") as process:
        try:
            url = first_object(process.stdout)["url"]
            with Client({"anthropic": HttpAdapter("anthropic", "k", base_url=url)}) as client:
                answer = client.complete(Request(model="anthropic:m", messages="Hi."))
        finally:
            process.send_signal(signal.SIGINT)
        code = process.wait()
        errors = process.stderr.read()

    assert answer.text.endswith("You said: Hi.")
    assert (code, errors) == (0, "")


def test_bad_settings_are_one_line(bare):
    """A key that is not set, a port that there is not."""
    for arguments in (["--key-env", "NOT_SET"], ["--port", "99999"], ["--host", "256.0.0.1"]):
        done = bare.run("simulate", *arguments)
        assert done.returncode not in (0, 70), done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr
