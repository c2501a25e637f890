"""Wordings that say more than the status: blocked content, and models that do not exist."""

import pytest

from interlingua import dialects
from interlingua.spec.contracts import Frame
from interlingua.spec.errors import (
    AccessDeniedError,
    AuthenticationError,
    ContentFilterError,
    InvalidRequestError,
    NotFoundError,
    ProviderError,
    RateLimitError,
    ServerError,
)
from interlingua.wire.json_text import dump_text

FILTERED = [
    "Output blocked by content filtering policy",
    "Your request was rejected as a result of our safety system.",
    "Your prompt was flagged as potentially violating our usage policy. Please try again.",
    "The response was filtered due to the prompt triggering the content management policy.",
    "This prompt contains sensitive words that violate Google's Responsible AI practices.",
    "The prompt was blocked due to safety settings.",
    "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO",
    "Your chosen model requires moderation and your input was flagged for violence.",
    "Content Exists Risk",
    "Input data may contain inappropriate content.",
    "The request was rejected because it was considered high risk",
    "The system detected potentially unsafe or sensitive content in input or generation.",
]
NO_MODEL = [
    "The model `gpt-9` does not exist or you do not have access to it.",
    "The requested model 'gpt-9' does not exist.",
    "Model not found: grok-9",
    "Specified model not found: venice-9. Did you mean: venice-1?",
    'model "llama9" not found, try pulling it first',
    "acme/gpt-9 is not a valid model ID",
    "Invalid model: mistral-9",
    "Invalid model 'sonar-9'. Permitted models can be found in the documentation.",
    "Model Not Exist",
    "Not found the model kimi-9 or Permission denied",
    "Unknown Model, please check the model code.",
    "models/gemini-9 is not found for API version v1beta, or is not supported.",
    "Publisher Model `projects/p/locations/l/publishers/google/models/gemini-9` not found.",
    "The provided model identifier is invalid.",
    "The model `llama3-8b` has been decommissioned and is no longer supported.",
]
ERRORS = {
    "openai_chat": lambda text: {"error": {"message": text, "type": "invalid_request_error"}},
    "openai_responses": lambda text: {
        "type": "error",
        "error": {"message": text, "type": "invalid_request_error", "code": None},
    },
    "anthropic_messages": lambda text: {
        "type": "error",
        "error": {"message": text, "type": "invalid_request_error"},
    },
    "gemini_generate": lambda text: {
        "error": {"message": text, "code": 400, "status": "INVALID_ARGUMENT"}
    },
    "bedrock_converse": lambda text: {"message": text, "type": "validationException"},
}


def by_status(name, text, status=400):
    """The class of an error that comes as a status."""
    body = dump_text(ERRORS[name](text)).encode()
    return type(dialects.get(name).decode_error(status, {}, body))


def in_stream(name, text):
    """The class of an error that comes inside a stream."""
    decoder = dialects.get(name).stream_decoder()
    body = ERRORS[name](text)
    with pytest.raises(ProviderError) as caught:
        decoder.feed(Frame(data=dump_text(body), event=body.get("type")))
    return type(caught.value)


@pytest.mark.parametrize("text", FILTERED)
@pytest.mark.parametrize("name", dialects.names())
def test_wordings_of_safety_systems_are_a_content_filter_error(name, text):
    """The wordings of safety systems are a `ContentFilterError`, wherever they come."""
    assert by_status(name, text) is ContentFilterError
    assert by_status(name, text, 403) is ContentFilterError
    assert in_stream(name, text) is ContentFilterError


@pytest.mark.parametrize("text", NO_MODEL)
@pytest.mark.parametrize("name", dialects.names())
def test_wordings_for_a_missing_model_are_a_not_found_error(name, text):
    """The wordings for a missing model are a `NotFoundError`, wherever they come."""
    assert by_status(name, text) is NotFoundError
    assert by_status(name, text, 404) is NotFoundError
    assert in_stream(name, text) is NotFoundError


OTHERS = [
    (400, "max_tokens: must be at least 1", InvalidRequestError),
    (400, "Invalid value: 'model'. Supported values are: 'user'.", InvalidRequestError),
    (400, "Tool 'find' not found in the list of tools.", InvalidRequestError),
    (400, "messages.1: the file does not exist", InvalidRequestError),
    (400, "safety_settings[0].category: unknown value", InvalidRequestError),
    (403, "Your request was blocked.", AccessDeniedError),
    (401, "The model `gpt-9` does not exist: invalid key", AuthenticationError),
    (429, "Rate limit reached for the safety system", RateLimitError),
    (500, "The model is overloaded and the result was not found", ServerError),
]


@pytest.mark.parametrize(("status", "text", "expected"), OTHERS)
@pytest.mark.parametrize("name", dialects.names())
def test_other_wordings_keep_the_class_of_their_status(name, status, text, expected):
    """Texts that only mention a model or a block keep the class of their status."""
    body = ERRORS[name](text)
    if name == "gemini_generate":
        del body["error"]["status"]
    error = dialects.get(name).decode_error(status, {}, dump_text(body).encode())

    assert type(error) is expected


def test_error_events_of_the_vendors_have_their_class():
    """A failed response of OpenAI's Responses API, and an `api_error` of Anthropic."""
    failed = {
        "type": "response.failed",
        "response": {
            "id": "resp_1",
            "status": "failed",
            "output": [],
            "error": {"code": "server_error", "message": FILTERED[1]},
        },
    }
    overloaded = {"type": "error", "error": {"type": "api_error", "message": FILTERED[0]}}
    for name, data in (("openai_responses", failed), ("anthropic_messages", overloaded)):
        decoder = dialects.get(name).stream_decoder()
        with pytest.raises(ContentFilterError):
            decoder.feed(Frame(data=dump_text(data), event=data["type"]))


NGINX = """<html>
<head><title>502 Bad Gateway</title></head>
<body><center><h1>502 Bad Gateway</h1></center><hr><center>nginx</center></body>
</html>"""
CLOUDFLARE = (
    """<!DOCTYPE html>
<html lang="en-US"><head><title>api.test | 524: A timeout occurred</title>
<style>body{margin:0}</style></head><body>"""
    + "<div>quota &amp; model</div>" * 400
)
PAGES = {
    "nginx": (NGINX, "502 Bad Gateway"),
    "cloudflare": (CLOUDFLARE, "api.test | 524: A timeout occurred"),
    "bare": ("<body><p>Please&nbsp;log in.</p></body>", "Please log in."),
    "empty": ("<html></html>", "without text"),
}


@pytest.mark.parametrize("name", dialects.names())
@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_a_gateway_is_shortened(name, page):
    """The message has the title of the page, and `raw` the page; its words do not classify it."""
    text, shown = PAGES[page]
    error = dialects.get(name).decode_error(502, {"content-type": "text/html"}, text.encode())

    assert error.message.endswith(f"An HTML page, probably of a gateway or proxy: {shown}")
    assert error.error_class == "server_error"
    assert text.startswith(error.raw[:1000])


@pytest.mark.parametrize("name", dialects.names())
def test_a_page_inside_an_error_body_is_shortened(name):
    """Proxies put the page that they got into a message of their own."""
    body = {"error": {"message": NGINX}}
    error = dialects.get(name).decode_error(502, {}, dump_text(body).encode())

    assert "502 Bad Gateway" in error.message
    assert "<" not in error.message
