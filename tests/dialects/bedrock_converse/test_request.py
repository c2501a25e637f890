"""Requests to Converse: settings by family, tools, media, cache points, and what is changed."""

import pytest

from interlingua import dialects
from interlingua.prepare.cache import cache_prefix_diff
from interlingua.providers.catalog.profiles import profile_for
from interlingua.spec.content import Audio, Document, Image, Text, Thinking, ToolCall, ToolResult
from interlingua.spec.contracts import WireCall
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ToolChoice, ToolDefinition

CONVERSE = dialects.get("bedrock_converse")
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
NEWER = "global.anthropic.claude-opus-5-5"
NOVA = "amazon.nova-pro-v1:0"
NOVA_2 = "us.amazon.nova-2-lite-v1:0"
OSS = "openai.gpt-oss-120b-1:0"
TOOL = ToolDefinition(name="f", parameters={"type": "object", "properties": {}})
HI = Message.user("Hi.")
CALL = Message(role="assistant", content=(ToolCall(id="t1", name="f"),))
RESULT = Message(role="tool", content=(ToolResult(tool_call_id="t1", content="ok"),))


def sent(model, *messages, **settings):
    """The call to a model, by its profile."""
    profile = profile_for(CONVERSE.NAME, model, CONVERSE.NAME)
    request = Request(model=model, messages=messages or (HI,), **settings)
    return CONVERSE.encode_request(request, profile)


def codes(call):
    return [warning.code for warning in call.warnings]


@pytest.mark.parametrize(
    ("model", "settings", "fields", "output"),
    [
        (CLAUDE, {"top_k": 5}, {"top_k": 5}, None),
        (NOVA, {"top_k": 5}, {"inferenceConfig": {"topK": 5}}, None),
        (
            CLAUDE,
            {"thinking_budget": 2000, "max_tokens": 4000},
            {"thinking": {"type": "enabled", "budget_tokens": 2000}},
            None,
        ),
        (CLAUDE, {"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}, None),
        (
            NEWER,
            {"reasoning_effort": "high"},
            {"thinking": {"type": "adaptive", "display": "summarized"}},
            {"effort": "high"},
        ),
        (
            NOVA_2,
            {"reasoning_effort": "low"},
            {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "low"}},
            None,
        ),
        (
            NOVA_2,
            {"reasoning_effort": "none"},
            {"reasoningConfig": {"type": "disabled"}},
            None,
        ),
        (OSS, {"reasoning_effort": "high"}, {"reasoning_effort": "high"}, None),
    ],
)
def test_what_a_family_has_beside_the_common_fields(model, settings, fields, output):
    """It is in `additionalModelRequestFields`, under the names of the family."""
    call = sent(model, **settings)

    assert call.body.get("additionalModelRequestFields") == fields
    assert call.body.get("outputConfig") == output
    assert not [code for code in codes(call) if code.endswith("_dropped")]


def test_a_model_without_top_k_is_not_sent_it():
    """Which field it would be is not known, so it is dropped with a warning."""
    call = sent("meta.llama3-3-70b-instruct-v1:0", top_k=5)

    assert "additionalModelRequestFields" not in call.body
    assert codes(call) == ["top_k_dropped"]


def test_options_are_merged_into_the_fields_of_the_model():
    """The caller's own fields stay beside ours."""
    own = {
        "additionalModelRequestFields": {"anthropic_beta": ["a"]},
        "serviceTier": {"type": "flex"},
    }
    call = sent(CLAUDE, top_k=5, provider_options={"bedrock_converse": own})

    assert call.body["additionalModelRequestFields"] == {"top_k": 5, "anthropic_beta": ["a"]}
    assert call.body["serviceTier"] == {"type": "flex"}
    assert call.warnings == ()


def test_labels_that_aws_refuses_are_dropped():
    """The others are `requestMetadata`."""
    call = sent(NOVA, metadata={"team": "docs", "odd": "a{b}", "number": 3})

    assert call.body["requestMetadata"] == {"team": "docs"}
    assert codes(call) == ["metadata_dropped"]


# Tools.


def test_the_tool_choice_none_sends_no_tools_and_earlier_calls_as_text():
    """Converse has no form for it, and refuses tool calls in a request without tools."""
    model = "mistral.mistral-large-2402-v1:0"
    call = sent(model, HI, CALL, RESULT, tools=(TOOL,), tool_choice=ToolChoice(mode="none"))

    assert "toolConfig" not in call.body
    assert call.body["messages"][1]["content"] == [{"text": "Called f with {}"}]
    assert call.body["messages"][2]["content"] == [{"text": "f returned: ok"}]
    assert codes(call) == ["call_as_text", "tools_withheld"]


def test_tools_in_the_options_are_tools_too():
    """Earlier calls stay calls."""
    config = {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {}}}}]}
    call = sent(
        NOVA, HI, CALL, RESULT, provider_options={"bedrock_converse": {"toolConfig": config}}
    )

    assert "toolUse" in call.body["messages"][1]["content"][0]
    assert call.warnings == ()


def test_a_json_object_is_a_json_block_and_other_json_is_text():
    """Models take only an object as `json`."""
    results = Message(
        role="tool",
        content=(
            ToolResult(tool_call_id="t1", content={"a": 1}),
            ToolResult(tool_call_id="t2", content=[1, 2], is_error=True),
        ),
    )
    calls = Message(
        role="assistant", content=(ToolCall(id="t1", name="f"), ToolCall(id="t2", name="f"))
    )
    call = sent(NOVA, HI, calls, results, tools=(TOOL,))

    first, second = (block["toolResult"] for block in call.body["messages"][2]["content"][:2])
    assert first == {"toolUseId": "t1", "content": [{"json": {"a": 1}}]}
    assert second == {"toolUseId": "t2", "content": [{"text": "[1,2]"}], "status": "error"}


# Messages.


def test_the_user_speaks_first():
    """A placeholder stands before the message of the assistant."""
    call = sent(NOVA, Message.system("Be brief."), Message.assistant("Hello."), HI)

    roles = [message["role"] for message in call.body["messages"]]
    assert roles == ["user", "assistant", "user"]
    assert codes(call) == ["user_turn_added"]


def test_messages_of_one_role_become_one():
    """A later system message is text of the user, and joins it."""
    call = sent(NOVA, HI, Message.system("Now in French."), Message.user("Go on."))

    (message,) = call.body["messages"]
    texts = [block["text"] for block in message["content"] if "text" in block]
    assert texts == ["Hi.", "Now in French.", "Go on."]


# Media.


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("report.pdf", "report"),
        ("a_b.c.pdf", "a-b-c"),
        ("Q3  (final) [v2]", "Q3 (final) [v2]"),
        ("…", "Document 1"),
        ("x" * 300, "x" * 200),
    ],
)
def test_the_name_of_a_document_has_the_characters_that_aws_accepts(name, expected):
    """A warning tells the name that was sent."""
    document = Document(data=b"%PDF-1.7", media_type="application/pdf", file_name=name)
    call = sent(NOVA, Message.user((Text("Read."), document)))

    assert call.body["messages"][0]["content"][1]["document"]["name"] == expected
    assert codes(call) == ["document_renamed"]


def test_documents_without_a_name_are_numbered():
    """The numbers do not change when the conversation goes on, and are not read as names."""
    documents = (Document(text="One."), Document(text="Two."))
    call = CONVERSE.encode_request(Request(model="m", messages=(Message.user(documents),)))
    names = [block["document"]["name"] for block in call.body["messages"][0]["content"][:2]]
    back = CONVERSE.decode_request(call)

    assert names == ["Document 1", "Document 2"]
    assert [part.file_name for part in back.messages[0].content[:2]] == [None, None]
    assert [part.text for part in back.messages[0].content[:2]] == ["One.", "Two."]
    assert CONVERSE.encode_request(back).body == call.body


@pytest.mark.parametrize(
    ("part", "kind", "form"),
    [
        (Image(b"\x89PNG\r\n\x1a\n"), "image", "png"),
        (Image(file_id="s3://bucket/cat.webp"), "image", "webp"),
        (Audio(b"x", media_type="audio/mpeg"), "audio", "mp3"),
        (Document(b"x", media_type="video/mp4"), "video", "mp4"),
        (Document(file_id="s3://bucket/clip.mov"), "video", "mov"),
        (Document(b"a,b", media_type="text/csv"), "document", "csv"),
        (Document(text="# a", media_type="text/markdown"), "document", "md"),
    ],
)
def test_media_are_blocks_of_their_kind(part, kind, form):
    """By their media type, or by the suffix of their place in S3."""
    call = CONVERSE.encode_request(
        Request(model="m", messages=(Message.user((Text("Look."), part)),))
    )
    block = call.body["messages"][0]["content"][1]

    assert block[kind]["format"] == form
    assert call.warnings == ()


def test_an_image_by_url_is_not_sent():
    """The adapter fetches it before; the codec alone drops it with a warning."""
    image = Image("https://example.com/cat.png")
    call = CONVERSE.encode_request(
        Request(model="m", messages=(Message.user((Text("Look."), image)),))
    )

    assert call.body["messages"][0]["content"] == [{"text": "Look."}]
    assert codes(call) == ["image_dropped"]


# Cache points.


def points(body):
    """Where cache points are."""
    tools = body.get("toolConfig", {}).get("tools", [])
    places = {"system": body.get("system", []), "tools": tools}
    places |= {i: message["content"] for i, message in enumerate(body["messages"])}
    return [name for name, blocks in places.items() if any("cachePoint" in b for b in blocks)]


def test_cache_points_follow_the_tools_the_system_text_and_the_last_message():
    """The models of Amazon take none after tools, and Llama none at all."""
    history = (Message.system("x" * 9000), HI, Message.assistant("Hello."), HI)

    assert points(sent(CLAUDE, *history, tools=(TOOL,)).body) == ["system", "tools", 2]
    assert points(sent(NOVA, *history, tools=(TOOL,)).body) == ["system", 2]
    assert points(sent("meta.llama3-3-70b-instruct-v1:0", *history).body) == []
    off = {"bedrock_converse": {"auto_cache": False}}
    assert points(sent(CLAUDE, *history, provider_options=off).body) == []


def test_a_point_of_the_caller_stays_and_its_life_is_that_of_the_points_before_it():
    """Points of one hour must precede those of five minutes."""
    body = {
        "messages": [
            {
                "role": "user",
                "content": [{"text": "Hi."}, {"cachePoint": {"type": "default", "ttl": "1h"}}],
            }
        ],
        "system": [{"text": "x" * 9000}],
    }
    request = CONVERSE.decode_request(WireCall(path=f"/model/{CLAUDE}/converse", body=body))
    call = CONVERSE.encode_request(request, profile_for(CONVERSE.NAME, CLAUDE))

    assert call.body["messages"] == body["messages"]
    assert call.body["system"][-1] == {"cachePoint": {"type": "default", "ttl": "1h"}}


def test_a_moved_cache_point_breaks_no_cache():
    """The next turn extends the prompt, though the last point is elsewhere."""
    history = (Message.system("x" * 9000), HI, Message.assistant("Hello."), HI)
    before, after = sent(CLAUDE, *history[:2]), sent(CLAUDE, *history)

    assert cache_prefix_diff(before, after, CONVERSE.FACTS) is None
    other = sent(CLAUDE, Message.system("y" * 9000), *history[1:])
    assert cache_prefix_diff(before, other, CONVERSE.FACTS).code == "system_changed"


# Thinking.


def test_redacted_thinking_is_that_of_anthropic():
    """The blob of Converse holds the text that Anthropic's own API has as `data`."""
    block = {"reasoningContent": {"redactedContent": "RXZBRkNv"}}
    body = {
        "messages": [
            {"role": "user", "content": [{"text": "x"}]},
            {"role": "assistant", "content": [block, {"text": "y"}]},
        ]
    }
    request = CONVERSE.decode_request(WireCall(path=f"/model/{CLAUDE}/converse", body=body))
    part = request.messages[1].content[0]

    assert (type(part), part.redacted, part.data) == (Thinking, True, "EvAFCo")
    assert CONVERSE.encode_request(request).body == body
    anthropic = dialects.get("anthropic_messages")
    profile = profile_for("anthropic_messages", "claude-sonnet-4-5", "anthropic")
    call = anthropic.encode_request(request, profile)
    assert call.body["messages"][1]["content"][0] == {"type": "redacted_thinking", "data": "EvAFCo"}


def test_bytes_that_are_no_text_stay_as_they_are():
    """A blob of another model is carried in base64."""
    block = {"reasoningContent": {"redactedContent": "/////w=="}}
    body = {"messages": [{"role": "assistant", "content": [block, {"text": "y"}]}]}
    request = CONVERSE.decode_request(WireCall(path=f"/model/{NOVA}/converse", body=body))

    again = CONVERSE.encode_request(request).body["messages"][-1]["content"][0]
    assert again == block


def test_results_and_the_next_words_are_one_message_in_their_order():
    """That is the usual form; other dialects have them apart again, in the same order."""
    call = ToolCall(id="c1", name="look", arguments={})
    asked = [Text("Next?"), Image(b"\x89PNG\r\n\x1a\n", media_type="image/png")]
    messages = (
        Message.user("Hi."),
        Message.assistant([call]),
        Message.tool_result("c1", "42"),
        Message.user(asked),
    )
    made = CONVERSE.encode_request(Request(model="m", messages=messages))
    read = CONVERSE.decode_request(made)

    assert made.warnings == ()
    assert [[*block] for block in made.body["messages"][2]["content"]] == [
        ["toolResult"],
        ["text"],
        ["image"],
    ]
    assert CONVERSE.encode_request(read).body == made.body
    for name in dialects.names():
        dialect = dialects.get(name)
        crossed = dialect.encode_request(read)
        parts = [p for m in dialect.decode_request(crossed).messages[2:] for p in m.content]
        assert [part.kind for part in parts] == ["tool_result", "text", "image"]
        assert crossed.warnings == ()
