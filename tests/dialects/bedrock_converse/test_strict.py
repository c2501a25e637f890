"""The strict simulator refuses what AWS refuses, and botocore's client gets the exception."""

import contextlib

import botocore.session
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from interlingua.simulator import Simulator, error, serve_in_thread, text

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


def test_an_unknown_field_is_refused():
    """Botocore would not send it; another client may."""
    import json
    import urllib.error
    import urllib.request

    body = json.dumps({"messages": [HI], "temprature": 1}).encode()
    with serve_in_thread(Simulator(text("No."), strict=True)) as server:
        url = f"{server.url}/model/{MODEL}/converse"
        request = urllib.request.Request(url, body, method="POST")  # noqa: S310 -- loopback
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request)  # noqa: S310 -- loopback
        reply = caught.value
        with reply:
            assert reply.headers["x-amzn-errortype"] == "ValidationException"
            assert json.loads(reply.read())["message"] == "temprature: Unknown parameter"


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
