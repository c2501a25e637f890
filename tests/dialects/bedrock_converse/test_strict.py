"""The strict simulator refuses what AWS refuses, and botocore's client gets the exception."""

import contextlib

import botocore.session
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from interlingua.dialects.bedrock_converse.shapes import SHAPES, UNIONS
from interlingua.simulator import Simulator, error, serve_in_thread, text
from support.simulator_calls import call

MODEL = "us.amazon.nova-pro-v1:0"
ARN = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123"
HI = {"role": "user", "content": [{"text": "Hi."}]}
TOOL = {"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}


def use(number):
    return {"toolUse": {"toolUseId": f"t{number}", "name": "f", "input": {}}}


def result(number):
    return {"toolResult": {"toolUseId": f"t{number}", "content": [{"text": "ok"}]}}


def document(name):
    return {"document": {"format": "pdf", "name": name, "source": {"bytes": b"%PDF-1.7"}}}


def said(role, *blocks):
    return {"role": role, "content": list(blocks)}


CALLED = (HI, said("assistant", use(1), use(2)))
DECLARED = {"toolConfig": {"tools": [TOOL]}}


@contextlib.contextmanager
def client_of(app, service="bedrock-runtime"):
    """Botocore's own client, with keys of AWS."""
    with serve_in_thread(app) as server:
        client = botocore.session.get_session().create_client(
            service,
            region_name="us-east-1",
            endpoint_url=server.url,
            aws_access_key_id="AKIDEXAMPLE",
            aws_secret_access_key="a-secret",
            config=Config(retries={"total_max_attempts": 1}),
        )
        with contextlib.closing(client):
            yield client


REFUSED = {
    "two messages of one role": ([HI, HI], {}),
    "the assistant speaks first": ([said("assistant", {"text": "Hello."}), HI], {}),
    "a blank text": ([said("user", {"text": " "})], {}),
    "a message without content": ([HI, said("assistant"), HI], {}),
    "a result without a call": ([said("user", result(1))], DECLARED),
    "fewer results than calls": ([*CALLED, said("user", result(1))], DECLARED),
    "more results than calls": ([*CALLED, said("user", *map(result, (1, 2, 3)))], DECLARED),
    "calls without tools": ([*CALLED, said("user", result(1), result(2))], {}),
    "a dot in the name of a document": ([said("user", {"text": "x"}, document("a.b"))], {}),
    "two spaces in the name": ([said("user", {"text": "x"}, document("a  b"))], {}),
    "a document without a text": ([said("user", document("a"))], {}),
    "an image of the assistant": (
        [
            HI,
            said(
                "assistant", {"image": {"format": "png", "source": {"bytes": b"\x89PNG\r\n\x1a\n"}}}
            ),
            HI,
        ],
        {},
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_aws_refuses_is_refused(name):
    """It is a ValidationException, and says what is wrong."""
    messages, settings = REFUSED[name]
    app = Simulator(text("No."), strict=True)
    with client_of(app) as client, pytest.raises(ClientError) as caught:
        client.converse(modelId=MODEL, messages=messages, **settings)

    assert caught.value.response["Error"]["Code"] == "ValidationException"
    assert caught.value.response["Error"]["Message"].startswith(("messages", "tool"))


def refusal(body):
    """The name and the message of the exception for a body that botocore would not send."""
    app = Simulator(text("No."), strict=True)
    reply = call(app, f"/model/{MODEL}/converse", body, {"authorization": "Bearer k"})
    assert reply.status == 400
    return reply.headers["x-amzn-errortype"], reply.json["message"]


def with_block(**block):
    """A conversation whose last message has this block."""
    messages = [*CALLED, said("user", result(1), {**result(2), **block})]
    return {"messages": messages, **DECLARED}


def with_result(**fields):
    inner = {**result(2)["toolResult"], **fields}
    return with_block(toolResult=inner)


LAST = "messages[2].content[1]"
PNG = {"format": "png", "source": {"bytes": "iVBORw0KGgo="}}
MISSHAPEN = {
    "a field": ({"messages": [HI], "temprature": 1}, "temprature: Unknown parameter"),
    "a member of a message": (
        {"messages": [{**HI, "name": "ada"}]},
        "messages[0].name: Unknown parameter",
    ),
    "a member of a result": (with_result(sttus="error"), f"{LAST}.toolResult.sttus: Unknown"),
    "a word": (with_result(status="failed"), f"{LAST}.toolResult.status: Must be one of success"),
    "a number for a text": (with_result(type=1), f"{LAST}.toolResult.type: Expected a string"),
    "two members of a block": (with_block(text="x"), f"{LAST}: Must set one of"),
    "a block without a member": ({"messages": [said("user", {})]}, "messages[0].content[0]: Must"),
    "an unknown block": (
        {"messages": [said("user", {"hologram": {}})]},
        "messages[0].content[0].hologram: Unknown parameter",
    ),
    "a block in a result": (
        with_result(content=[use(3)]),
        f"{LAST}.toolResult.content[0].toolUse: Unknown parameter",
    ),
    "a result as a text": (with_result(content="ok"), f"{LAST}.toolResult.content"),
    "no base64": (
        {"messages": [said("user", {"image": {**PNG, "source": {"bytes": "?"}}})]},
        "messages[0].content[0].image.source.bytes: Expected bytes",
    ),
    "a missing member": (
        {"messages": [said("user", {"image": {"format": "png"}})]},
        "messages[0].content[0].image.source: Field required",
    ),
    "an URL": (
        {"messages": [said("user", {"image": {**PNG, "source": {"url": "https://a.example"}}})]},
        "messages[0].content[0].image.source.url: Unknown parameter",
    ),
    "a tool": (
        {"messages": [HI], "toolConfig": {"tools": [{"toolSpec": {**TOOL["toolSpec"], "x": 1}}]}},
        "toolConfig.tools[0].toolSpec.x: Unknown parameter",
    ),
    "a choice": (
        {"messages": [HI], "toolConfig": {"tools": [TOOL], "toolChoice": {"none": {}}}},
        "toolConfig.toolChoice.none: Unknown parameter",
    ),
    "a number as text": (
        {"messages": [HI], "inferenceConfig": {"maxTokens": "9"}},
        "inferenceConfig.maxTokens",
    ),
    "a label": ({"messages": [HI], "requestMetadata": {"a": 1}}, "requestMetadata.a: Expected"),
}


@pytest.mark.parametrize("name", MISSHAPEN)
def test_what_has_not_the_shape_is_refused(name):
    """Botocore would not send it; another client may. The message says where it is."""
    body, words = MISSHAPEN[name]
    kind, message = refusal(body)

    assert kind == "ValidationException"
    assert message.startswith(words)


def shape_of(shape):
    """The type of a shape of the service model, in the words of our table."""
    if getattr(shape, "is_document_type", False):
        return "any"
    match shape.type_name:
        case "structure":
            return shape.name
        case "list":
            return f"[{shape_of(shape.member)}]"
        case "map":
            return f"{{{shape_of(shape.value)}}}"
        case "string" if shape.enum:
            return f"={'|'.join(shape.enum)}"
    return {"string": "text", "boolean": "flag", "float": "number"}.get(
        shape.type_name, shape.type_name
    )


def members_of(shape):
    required = {*shape.required_members}
    return {
        name: shape_of(member) + ("!" if name in required else "")
        for name, member in shape.members.items()
        if name != "modelId"  # it is in the path
    }


def test_the_shapes_are_those_of_the_service_model():
    """Every member of every shape that a request can have, and which shapes are unions."""
    model = botocore.session.get_session().get_service_model("bedrock-runtime")
    whole = model.operation_model("ConverseStream").input_shape

    for name, members in SHAPES.items():
        shape = whole if name == "Request" else model.shape_for(name)
        assert members_of(shape) == members, name
        assert bool(shape.metadata.get("union")) == (name in UNIONS), name
    used = {kind.strip("[]{}!") for members in SHAPES.values() for kind in members.values()}
    plain = {"text", "blob", "flag", "integer", "number", "any"}
    assert {kind for kind in used if kind[0] != "="} - plain == SHAPES.keys() - {"Request"}


def test_what_aws_accepts_is_answered():
    """Whole and as a stream, by ARN, with tools, documents and a system prompt."""
    asked = {
        "messages": [
            said("user", {"text": "Hi."}, document("Report (2025) [a-b]")),
            said("assistant", use(1), use(2)),
            said("user", result(2), result(1)),
        ],
        "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
        **DECLARED,
    }
    with client_of(Simulator(text("Whole."), text("In pieces."), strict=True)) as client:
        whole = client.converse(modelId=ARN, **asked)
        streamed = list(client.converse_stream(modelId=MODEL, **asked)["stream"])
        counted = client.count_tokens(modelId=MODEL, input={"converse": {"messages": [HI]}})

    assert whole["output"]["message"]["content"] == [{"text": "Whole."}]
    deltas = [event["contentBlockDelta"]["delta"]["text"] for event in streamed[1:-3]]
    assert "".join(deltas) == "In pieces."
    assert streamed[-1]["metadata"]["usage"]["outputTokens"] > 0
    assert counted["inputTokens"] > 0


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (403, "AccessDeniedException"),
        (404, "ResourceNotFoundException"),
        (408, "ModelTimeoutException"),
        (424, "ModelErrorException"),
        (429, "ThrottlingException"),
        (500, "InternalServerException"),
        (503, "ServiceUnavailableException"),
    ],
)
def test_scripted_errors_have_the_names_of_aws(status, name):
    """Botocore raises the exception of its service model."""
    with client_of(Simulator(error(status))) as client, pytest.raises(ClientError) as caught:
        client.converse(modelId=MODEL, messages=[HI])

    assert type(caught.value).__name__ == name


def test_a_client_of_the_service_bedrock_lists_the_models():
    """Botocore reads the list and one model at the same address."""
    app = Simulator(text("ok"), models=["amazon.nova-lite-v1:0", "meta.llama3-8b-instruct-v1:0"])
    with client_of(app, "bedrock") as client:
        listed = client.list_foundation_models()["modelSummaries"]
        one = client.get_foundation_model(modelIdentifier="amazon.nova-lite-v1:0")["modelDetails"]

    assert [model["modelId"] for model in listed] == [
        *("amazon.nova-lite-v1:0", "meta.llama3-8b-instruct-v1:0")
    ]
    assert one == listed[0]
    assert one["modelArn"].endswith("::foundation-model/amazon.nova-lite-v1:0")
