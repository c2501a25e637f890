"""Safe 36: system messages, media, names and settings in places that a target does not have."""

import json

import pytest

from interlingua import dialects
from interlingua.prepare.instructions import VERBOSITY_INSTRUCTIONS
from interlingua.providers.adapter import HttpAdapter
from interlingua.spec.content import Image, Text
from interlingua.spec.errors import UnsupportedError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ResponseFormat, ToolDefinition
from support.simulated import DIALECTS

every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))
both_modes = pytest.mark.parametrize("stream", [False, True])
PNG = Image(data=b"\x89PNG\r\n\x1a\n", media_type="image/png", detail="high")
USER = Message.user("hi")
SYSTEM = Message(role="system", content=(Text(text="see"), PNG))
ASSISTANT = Message(role="assistant", content=(Text(text="done"), PNG))


def told(provider, *messages, row=None, stream=False, **fields):
    """The messages as a server reads them, and the codes and paths of the warnings."""
    adapter = HttpAdapter(provider, "k", base_url="https://host.test/v1", profile=row or {})
    call = adapter.dry_run(
        Request(model="m", messages=messages or (USER,), **fields), stream=stream
    )
    codec = dialects.get(DIALECTS[provider])
    codes = [(warning.code, warning.path) for warning in call.warnings]
    path = "" if provider != "gemini" else "/v1beta/models/m:generateContent"
    wire = codec.encode_request(Request(model="m", messages="hi"))
    received = codec.decode_request(
        type(wire)(path=path or wire.path, body=json.loads(json.dumps(call.body)))
    )
    return received, codes


def texts(request):
    """The texts of the leading system messages."""
    prompts = [message for message in request.messages if message.role == "system"]
    return [part.text for message in prompts for part in message.content]


@every_provider
@both_modes
@pytest.mark.parametrize("blank", ["", "  \n"])
def test_an_empty_system_message_is_left_out(provider, stream, blank):
    """Alone, or beside another."""
    received, codes = told(provider, Message.system(blank), USER, stream=stream)
    assert texts(received) == []
    assert codes == [("empty_message_dropped", "messages[0]")]

    received, codes = told(provider, Message.system("a"), Message.system(blank), USER)
    assert texts(received) == ["a"]
    assert codes == [("empty_message_dropped", "messages[1]")]


@every_provider
def test_system_messages_stay_separate(provider):
    """Each keeps its own block, for cache marks and the way back."""
    received, codes = told(provider, Message.system("a"), Message.system("b"), USER)

    assert texts(received) == ["a", "b"]
    assert codes == []


@every_provider
def test_system_messages_are_joined_for_a_host_that_accepts_one(provider):
    """For a host that accepts only one, with a blank line between them."""
    row = {"single_system_prompt": True}
    prompts = (Message.system("a"), Message.system(""), Message.developer("b"))
    received, codes = told(provider, *prompts, USER, row=row)

    assert texts(received) == ["a\n\nb"]
    assert codes == [("empty_message_dropped", "messages[1]"), ("messages_merged", "messages[2]")]


def test_hosts_that_accept_one_system_message_are_known():
    """Chat templates of open models often do."""
    for provider in ("vllm", "llamacpp"):
        assert HttpAdapter(provider).profile_for("m").single_system_prompt


# Media.


@pytest.mark.parametrize("provider", ["openai_compatible", "anthropic", "gemini"])
@both_modes
def test_an_image_in_a_system_message_is_moved(provider, stream):
    """To the user's message, with a note."""
    received, codes = told(provider, SYSTEM, USER, stream=stream)

    assert texts(received) == ["see"]
    user = next(message for message in received.messages if message.role == "user")
    assert [part.kind for part in user.content] == ["image", "text"]
    assert ("media_moved", "messages[0].content[1]") in codes


@pytest.mark.parametrize("provider", ["openai_compatible", "anthropic", "gemini"])
def test_an_image_in_a_system_message_is_refused_by_profile(provider):
    """By profile: instructions apply to the current turn."""
    with pytest.raises(UnsupportedError, match="image in a message of the role system"):
        told(provider, SYSTEM, USER, row={"moves_media": False})


@pytest.mark.parametrize("provider", ["openai", "openai_compatible", "anthropic"])
def test_an_image_of_the_assistant_is_moved_to_the_next_user_message(provider):
    """It is moved to the user's next message; where it is not, it is lost with a warning."""
    received, codes = told(provider, USER, ASSISTANT, USER)
    assert [part.kind for part in received.messages[-1].content] == ["image", "text"]
    assert ("media_moved", "messages[1].content[1]") in codes

    received, codes = told(provider, USER, ASSISTANT, USER, row={"moves_media": False})
    assert "image" not in [part.kind for m in received.messages for part in m.content]
    assert ("image_dropped", "messages[1].content[1]") in codes


def test_an_image_stays_where_the_format_has_a_place_for_it():
    """Gemini's models show images; OpenAI's instructions may hold them."""
    received, codes = told("gemini", USER, ASSISTANT, USER)
    assert [part.kind for part in received.messages[1].content] == ["text", "image"]
    assert codes == [("detail_dropped", "messages[1].content[1]")]
    received, codes = told("openai", SYSTEM, USER)
    assert [part.kind for part in received.messages[0].content] == ["text", "image"]
    assert codes == []


@every_provider
def test_detail_is_sent_or_a_warning_says_that_it_is_not(provider):
    """It is sent, or a warning says that it is not."""
    received, codes = told(provider, Message(role="user", content=(PNG,)))

    sent = [part.detail for part in received.messages[-1].content if part.kind == "image"]
    if sent != ["high"]:
        assert codes == [("detail_dropped", "messages[0].content[0]")]
    else:
        assert codes == []


@every_provider
def test_names_are_sent_or_a_warning_says_that_they_are_not(provider):
    """They are sent, or a warning says that they are not, in every message."""
    roles = ("system", "user", "assistant", "user")
    history = [Message(role=role, content="x", name=f"n{i}") for i, role in enumerate(roles)]
    received, codes = told(provider, *history)

    if all(message.name for message in received.messages):
        assert codes == []
    else:
        assert sorted(codes) == [("name_dropped", f"messages[{i}].name") for i in range(4)]


# Settings.


@every_provider
@pytest.mark.parametrize("verbosity", ["low", "medium", "high"])
def test_verbosity_becomes_an_instruction_by_profile(provider, verbosity):
    """If the profile says so; otherwise a warning."""
    received, codes = told(provider, row={"verbosity": "instruction"}, verbosity=verbosity)
    instruction = VERBOSITY_INSTRUCTIONS.get(verbosity)
    assert texts(received) == ([] if instruction is None else [instruction])
    assert codes == [("verbosity_as_instruction", "verbosity")]
    assert received.verbosity is None

    received, codes = told(provider, row={"verbosity": False}, verbosity=verbosity)
    assert texts(received) == []
    assert codes == [("verbosity_dropped", "verbosity")]


@every_provider
def test_asking_for_parallel_calls_loses_nothing_where_they_are_the_default(provider):
    """Asking for what happens anyway loses nothing."""
    tool = ToolDefinition(name="look", parameters={"type": "object", "properties": {}})
    received, codes = told(provider, tools=(tool,), parallel_tool_calls=True, on_loss="strict")

    assert received.parallel_tool_calls is True or codes == [
        ("parallel_tool_calls_implied", "parallel_tool_calls")
    ]


# Schemas.


def schema(**more):
    return {
        "type": "object",
        "properties": {"~standard": {"type": "string"}, "def": {"type": "string"}},
        "required": ["~standard", "def"],
        "additionalProperties": False,
        **more,
    }


@every_provider
@pytest.mark.parametrize("strict", [True, None])
def test_keys_that_no_target_knows_are_stripped(provider, strict):
    """Those that schema libraries leave are stripped; properties of the same names stay."""
    foreign = {"~standard": {"vendor": "zod"}, "def": {"type": "object"}}
    if strict:
        foreign |= {"$anchor": "here"}
    tool = ToolDefinition(name="look", parameters=schema(**foreign), strict=strict)
    form = ResponseFormat(type="json_schema", json_schema=schema(**foreign), strict=strict)
    received, codes = told(provider, tools=(tool,), response_format=form)

    (sent,) = received.tools
    for wire in (sent.parameters, received.response_format.json_schema):
        assert not {"~standard", "def"} & wire.keys()
        assert wire["properties"].keys() == {"~standard", "def"}
        # Gemini takes it; an unknown host may take any schema, and decides.
        assert "$anchor" not in wire or provider in ("gemini", "openai_compatible")
    assert "schema_not_strict" not in [code for code, _ in codes]


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_schema_that_uses_an_anchor_is_not_strict(provider):
    """A schema that refers to it cannot be strict."""
    linked = {"type": "object", "properties": {"a": {"$ref": "#b"}}, "required": ["a"]}
    linked |= {"$defs": {"b": {"$anchor": "b", "type": "string"}}, "additionalProperties": False}
    tool = ToolDefinition(name="look", parameters=linked, strict=True)

    assert ("schema_not_strict", "tools[0].parameters") in told(provider, tools=(tool,))[1]
