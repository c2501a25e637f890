"""What the families of Bedrock accept: AWS's table of models and features, and what it prevents."""

import asyncio

import pytest

from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.catalog.profiles import profile_for
from interlingua.simulator import Simulator, serve_in_thread, tool_call
from interlingua.spec.content import Document, Image, Text
from interlingua.spec.errors import UnsupportedError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ToolDefinition
from interlingua.transport.canned import CannedTransport
from support.warning_codes import codes

PNG = Image(data=b"\x89PNG\r\n\x1a\n" + bytes(20), media_type="image/png")
PDF = Document(data=b"%PDF-1.4 0", media_type="application/pdf")
VIDEO = Document(data=b"\x00\x00\x00\x18ftypmp42", media_type="video/mp4")
TOOL = ToolDefinition(name="rain", parameters={"type": "object", "properties": {}})
YES, NO = True, False

# https://docs.aws.amazon.com/bedrock/latest/userguide/conversation-inference-supported-models-features.html
# system prompts, tools, tools in streams, images, documents
TABLE = {
    "ai21.j2-mid-v1": (NO, NO, NO, NO, NO),
    "ai21.jamba-instruct-v1:0": (YES, NO, NO, NO, NO),
    "ai21.jamba-1-5-large-v1:0": (YES, YES, YES, NO, YES),
    "amazon.nova-pro-v1:0": (YES, YES, YES, YES, YES),
    "us.amazon.nova-micro-v1:0": (YES, YES, YES, NO, NO),
    "amazon.titan-text-express-v1": (NO, NO, NO, NO, YES),
    "amazon.titan-text-premier-v1:0": (NO, NO, NO, NO, NO),
    "anthropic.claude-v2:1": (YES, NO, NO, NO, YES),
    "anthropic.claude-3-5-haiku-20241022-v1:0": (YES, YES, YES, NO, YES),
    "us.anthropic.claude-sonnet-4-20250514-v1:0": (YES, YES, YES, YES, YES),
    "cohere.command-text-v14": (NO, NO, NO, NO, YES),
    "cohere.command-light-text-v14": (NO, NO, NO, NO, NO),
    "cohere.command-r-plus-v1:0": (YES, YES, YES, NO, YES),
    "meta.llama2-70b-chat-v1": (YES, NO, NO, NO, YES),
    "meta.llama3-8b-instruct-v1:0": (YES, NO, NO, NO, YES),
    "us.meta.llama3-1-70b-instruct-v1:0": (YES, YES, NO, NO, YES),
    "us.meta.llama3-2-1b-instruct-v1:0": (YES, NO, NO, NO, YES),
    "us.meta.llama3-2-90b-instruct-v1:0": (YES, YES, NO, YES, YES),
    "mistral.mistral-7b-instruct-v0:2": (NO, NO, NO, NO, YES),
    "mistral.mixtral-8x7b-instruct-v0:1": (NO, NO, NO, NO, YES),
    "mistral.mistral-large-2402-v1:0": (YES, YES, NO, NO, YES),
    "mistral.mistral-large-2407-v1:0": (YES, YES, NO, NO, YES),
}
PROFILE_OF_ACCOUNT = "arn:aws:bedrock:us-east-1:1:application-inference-profile/abc"


@pytest.mark.parametrize("row", ["bedrock", "bedrock_converse"])
@pytest.mark.parametrize("model", TABLE)
def test_the_table_of_aws(row, model):
    """Both rows know it, for ids, inference profiles and ARNs."""
    prompts, tools, streamed, images, documents = TABLE[model]
    for name in (model, f"arn:aws:bedrock:us-east-1:1:inference-profile/{model}"):
        profile = profile_for("bedrock_converse", name, row)
        assert (profile.system_prompt, profile.tools) == (prompts, tools)
        assert (profile.streaming_tool_calls if tools else NO) is streamed
        assert bool(profile.image_types) is images
        assert bool(profile.document_types) is documents


@pytest.mark.parametrize("model", [PROFILE_OF_ACCOUNT, "newmaker.new-model-v1:0"])
def test_what_is_not_known_is_sent(model):
    """AWS decides about a model whose family is not known."""
    profile = profile_for("bedrock_converse", model, "bedrock")
    unknown = (profile.system_prompt, profile.tools, profile.streaming_tool_calls)
    assert unknown == (None, None, None)

    system, user = Message.system("Be kind."), Message.user([Text(text="Rain?"), PNG, PDF, VIDEO])
    sent = dry_run(model, (system, user), tools=(TOOL,))
    assert not sent.warnings
    (message,) = sent.body["messages"]
    assert [next(iter(block)) for block in message["content"]] == [
        *("text", "image", "document", "video")
    ]
    assert sent.body["system"]
    assert sent.body["toolConfig"]["tools"]


def dry_run(model, messages="Rain?", **settings):
    transport = CannedTransport([])  # a call would be an error
    adapter = HttpAdapter("bedrock", "k", places={"region": "us-east-1"}, transport=transport)
    return adapter.dry_run(Request(model=model, messages=messages, **settings))


@pytest.mark.parametrize(
    ("model", "part"),
    [
        ("us.meta.llama3-1-70b-instruct-v1:0", PNG),
        ("mistral.mistral-large-2407-v1:0", PNG),
        ("us.deepseek.r1-v1:0", PNG),
        ("cohere.command-light-text-v14", PDF),
        ("mistral.mistral-small-2402-v1:0", PDF),
        ("amazon.nova-micro-v1:0", PDF),
        ("amazon.nova-micro-v1:0", VIDEO),
        ("us.mistral.pixtral-large-2502-v1:0", VIDEO),
        ("us.meta.llama4-maverick-17b-instruct-v1:0", VIDEO),
        ("qwen.qwen3-vl-235b-a22b", VIDEO),
        ("moonshotai.kimi-k2.5", VIDEO),
    ],
)
def test_media_that_a_family_cannot_read_are_refused(model, part):
    """The error is raised before anything is sent; `warn` sends the rest with a warning."""
    messages = (Message.user([Text(text="What is this?"), part]),)
    with pytest.raises(UnsupportedError, match="dropped"):
        dry_run(model, messages)
    sent = dry_run(model, messages, on_loss="warn")
    assert {f"{part.kind}_dropped"} <= set(codes(sent))


def test_claude_reads_no_video_in_converse():
    """Only Nova does; a document is read by both."""
    messages = (Message.user([Text(text="What is this?"), VIDEO]),)
    claude = HttpAdapter("bedrock_converse", "k", places={"region": "us-east-1"})
    model = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
    with pytest.raises(UnsupportedError, match="video/mp4"):
        claude.dry_run(Request(model=model, messages=messages))
    assert not dry_run("amazon.nova-pro-v1:0", messages).warnings


@pytest.mark.parametrize("model", [name for name, row in TABLE.items() if row[1] is NO])
def test_tools_that_a_family_cannot_call_are_refused(model):
    """So are those of a call that only AWS would refuse."""
    adapter = HttpAdapter("bedrock_converse", "k", places={"region": "us-east-1"})
    with pytest.raises(UnsupportedError, match="does not support tools"):
        adapter.dry_run(Request(model=model, messages="Rain?", tools=(TOOL,)))


@pytest.mark.parametrize("model", [name for name, row in TABLE.items() if row[0] is NO])
def test_a_system_prompt_that_a_family_has_not_is_folded(model):
    """It goes to the first message of the user, with a warning."""
    sent = dry_run(model, (Message.system("Be kind."), Message.user("Rain?")))
    assert "system_folded" in codes(sent)
    assert "system" not in sent.body
    assert sent.body["messages"][0]["content"][0] == {"text": "Be kind."}


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("us.meta.llama3-1-70b-instruct-v1:0", "converse"),
        ("mistral.mistral-large-2407-v1:0", "converse"),
        ("cohere.command-r-v1:0", "converse-stream"),
        ("amazon.nova-lite-v1:0", "converse-stream"),
        (PROFILE_OF_ACCOUNT, "converse-stream"),
    ],
)
def test_a_stream_with_tools_of_a_family_that_has_none_is_a_whole_answer(model, path):
    """It is delivered as events all the same."""
    app = Simulator(tool_call("rain"))
    request = Request(model=f"bedrock:{model}", messages="Rain?", tools=(TOOL,))

    async def work(url):
        settings = {"base_url": url, "places": {"region": "us-east-1"}}
        async with Client({"bedrock": HttpAdapter("bedrock", "k", **settings)}) as client:
            return [event async for event in client.stream(request)]

    with serve_in_thread(app) as server:
        events = asyncio.run(work(server.url))
    (received,) = app.script.received
    assert received.call.path.rpartition("/")[2] == path
    (call,) = events[-1].response.message.tool_calls
    assert call.name == "rain"
