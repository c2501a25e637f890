"""`interlingua translate` writes what another dialect would say, and what was lost."""

import json

import pytest
from msgspec.structs import replace

from interlingua import dialects
from interlingua.cli.translate import event_losses, response_losses
from interlingua.conformance.recordings import sample_cases
from interlingua.events import ProviderEvent

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


RICH = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-haiku-4-5",
    "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "abc"},
        {"type": "text", "text": "It rains.", "citations": [
            {"type": "char_location", "cited_text": "rain", "document_index": 0,
             "document_title": "Weather", "start_char_index": 0, "end_char_index": 4},
        ], "x_of_a_part": 1},
        {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}},
    ],
    "stop_reason": "pause_turn", "stop_sequence": None, "x_of_the_body": 5,
    "usage": {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 2,
              "cache_creation_input_tokens": 7},
}  # fmt: skip


def test_every_loss_of_a_response_is_named(bare):
    """Thinking, citations, ids, the finish reason, token counts and unknown fields."""

    def losses(target):
        arguments = ["--from", "anthropic_messages", "--to", target, "--json"]
        done = bare.run("translate", *arguments, stdin=json.dumps(RICH))
        document = json.loads(done.stdout)
        assert document["kind"] == "response"
        return {loss["path"]: loss["code"] for loss in document["losses"]}

    assert losses("anthropic_messages") == {}
    chat = losses("openai_chat")
    assert chat["content[0].signature"] == chat["content[1].citations"] == "lost"
    assert chat["content[1].x_of_a_part"] == chat["x_of_the_body"] == "lost"
    assert chat["finish_reason"] == "changed"
    gemini = losses("gemini_generate")
    assert gemini["usage.cache_write_tokens"] == "lost"


@pytest.mark.parametrize("name", dialects.names())
def test_nothing_is_lost_in_the_same_dialect(bare, name):
    """A translation to the dialect of the file reports nothing."""
    for case in sample_cases(dialects.get(name)):
        for content in (json.dumps(case.response), case.stream.decode()):
            done = bare.run("translate", "--from", name, "--to", name, "--json", stdin=content)
            assert json.loads(done.stdout)["losses"] == [], content


def test_lost_fields_of_any_answer():
    """Whatever part or field is missing afterwards is named, for every kind of part."""
    dialect = dialects.get("anthropic_messages")
    whole = dialect.decode_response(RICH)
    for index, part in enumerate(whole.message.content):
        content = [each for each in whole.message.content if each is not part]
        rest = replace(whole, message=replace(whole.message, content=tuple(content)))
        paths = [loss["path"] for loss in response_losses(whole, rest, "x")]
        assert any(path.startswith(f"content[{index}]") for path in paths), part
    assert response_losses(whole, whole, "x") == []


def test_events_that_only_the_source_has():
    """They are counted by their names."""
    events = [ProviderEvent(dialect="a", data={"type": "new"}, name="new")] * 2

    (loss,) = event_losses(events, "b")
    assert loss["message"] == "2 events 'new': b has no such"
    assert event_losses(events, "a") == []
