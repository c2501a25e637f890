"""`interlingua translate` writes what another dialect would say, and what was lost."""

import json

import pytest

from interlingua import dialects
from interlingua.conformance.samples import sample_cases

CHAT = {"model": "m", "seed": 7, "messages": [{"role": "user", "content": "Hi."}]}


def test_a_request_and_its_losses(bare, tmp_path):
    """The body is on stdout, the losses are on stderr; `--strict` makes them an error."""
    file = tmp_path / "request.json"
    file.write_text(json.dumps(CHAT))
    arguments = ["translate", str(file), "--from", "openai_chat", "--to", "anthropic_messages"]
    done = bare.run(*arguments)

    assert done.returncode == 0
    assert json.loads(done.stdout)["messages"] == [{"role": "user", "content": "Hi."}]
    assert "seed" in done.stderr
    assert bare.run(*arguments, "--strict").returncode == 1
    document = json.loads(bare.run(*arguments, "--json").stdout)
    assert document["kind"] == "request"
    assert any(loss["path"] == "seed" for loss in document["losses"])


@pytest.mark.parametrize("source", dialects.names())
@pytest.mark.parametrize("target", ["anthropic_messages", "openai_chat"])
def test_responses_and_streams(bare, source, target):
    """Both keep their text and calls, from every dialect, and are recognised."""
    case = sample_cases(dialects.get(source))[1]
    arguments = ["translate", "--from", source, "--to", target, "--json"]
    whole = json.loads(bare.run(*arguments, stdin=json.dumps(case.response)).stdout)
    stream = json.loads(bare.run(*arguments, stdin=case.stream.decode()).stdout)

    assert (whole["kind"], stream["kind"]) == ("response", "stream")
    answer = dialects.get(target).decode_response(whole["body"])
    assert answer.text == "I look."
    assert answer.tool_calls[0].arguments == {"city": "Oslo"}
    assert "Oslo" in stream["body"]


@pytest.mark.parametrize("source", dialects.names())
def test_requests_are_recognised(bare, source):
    """A request of any dialect is not taken for a response."""
    case = sample_cases(dialects.get(source))[0]
    arguments = ["translate", "--from", source, "--to", "openai_chat", "--json"]

    assert (
        json.loads(bare.run(*arguments, stdin=json.dumps(case.call.body)).stdout)["kind"]
        == "request"
    )


@pytest.mark.parametrize(
    ("content", "found"), [("{", "JSON"), ("5", "expected an object"), ("data: {\n\n", "")]
)
def test_bad_files_are_one_line(bare, content, found):
    """Never a traceback."""
    done = bare.run("translate", "--from", "openai_chat", "--to", "openai_responses", stdin=content)

    assert done.returncode not in (0, 70)
    assert found in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_missing_file_is_one_line(bare):
    """With the name of the file."""
    done = bare.run("translate", "nowhere.json", "--from", "openai_chat", "--to", "openai_chat")

    assert done.returncode == 2
    assert "nowhere.json" in done.stderr
