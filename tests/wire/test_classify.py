"""Error classification."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.conformance.strategies import json_values, words
from interlingua.spec import errors
from interlingua.spec.errors import (
    AccessDeniedError,
    AuthenticationError,
    ContentFilterError,
    ContextLengthError,
    InvalidRequestError,
    NotFoundError,
    ProviderError,
    ProviderTimeoutError,
    QuotaExceededError,
    RateLimitError,
    SDKError,
    ServerError,
)
from interlingua.wire.classify import (
    Fault,
    classify,
    error_text,
    make_error,
    read_body,
    read_fault,
    retry_headers,
    status_of,
)
from interlingua.wire.ratelimit_values import parse_retry_after
from interlingua.wire.secrets import redact

STATUSES = {
    400: InvalidRequestError,
    401: AuthenticationError,
    402: QuotaExceededError,
    403: AccessDeniedError,
    404: NotFoundError,
    405: InvalidRequestError,
    408: ProviderTimeoutError,
    409: InvalidRequestError,
    412: InvalidRequestError,
    413: ContextLengthError,
    422: InvalidRequestError,
    429: RateLimitError,
    499: ServerError,
    500: ServerError,
    502: ServerError,
    503: ServerError,
    504: ServerError,
    529: ServerError,
    599: ServerError,
}

# (status, type, code) -> class, from shared/wire/*.md
CODES = [
    (400, "invalid_request_error", "context_length_exceeded", ContextLengthError),
    (400, "invalid_request_error", "unsupported_parameter", InvalidRequestError),
    (400, "invalid_request_error", "tool_use_failed", InvalidRequestError),
    (400, "exceed_context_size_error", "400", ContextLengthError),
    (400, None, "content_filter", ContentFilterError),
    (400, None, "ResponsibleAIPolicyViolation", ContentFilterError),
    (400, "invalid_request_error", "invalid_prompt", ContentFilterError),
    (400, "invalid_request_error", "bio_policy", ContentFilterError),
    (400, None, "misalignment_policy_violation", ContentFilterError),
    (400, "INVALID_ARGUMENT", "400", InvalidRequestError),
    (400, "billing_error", "enforced_spend_limit_reached", QuotaExceededError),
    (401, "invalid_request_error", "invalid_api_key", AuthenticationError),
    (401, "authentication_error", None, AuthenticationError),
    (401, "UNAUTHENTICATED", "401", AuthenticationError),
    (402, "billing_error", None, QuotaExceededError),
    (402, None, "402", QuotaExceededError),
    (403, "permission_error", None, AccessDeniedError),
    (403, "PERMISSION_DENIED", "403", AccessDeniedError),
    (404, "not_found_error", None, NotFoundError),
    (404, "invalid_request_error", "model_not_found", NotFoundError),
    (404, "NOT_FOUND", "404", NotFoundError),
    (408, "timeout_error", None, ProviderTimeoutError),
    (409, "conflict_error", None, InvalidRequestError),
    (412, "memory_precondition_failed_error", None, InvalidRequestError),
    (413, "request_too_large", None, ContextLengthError),
    (413, "tokens", "rate_limit_exceeded", RateLimitError),
    (429, "rate_limit_error", None, RateLimitError),
    (429, "requests", "rate_limit_exceeded", RateLimitError),
    (429, "insufficient_quota", "insufficient_quota", QuotaExceededError),
    (429, "rate_limit_error", "enforced_spend_limit_reached", QuotaExceededError),
    (429, "rate_limit_error", "ramp_limit_exceeded", RateLimitError),
    (429, "RESOURCE_EXHAUSTED", "429", RateLimitError),
    (499, "CANCELLED", "499", ServerError),
    (500, "api_error", None, ServerError),
    (500, "server_error", "server_error", ServerError),
    (503, "UNAVAILABLE", "503", ServerError),
    (504, "timeout_error", None, ServerError),
    (504, "DEADLINE_EXCEEDED", "504", ServerError),
    (529, "overloaded_error", None, ServerError),
    # a vague type does not hide the status it comes with
    (400, "api_error", None, InvalidRequestError),
    (401, "api_error", None, AuthenticationError),
    (429, "api_error", None, RateLimitError),
    (404, "server_error", None, NotFoundError),
    # in a stream, and in a 200, there is no status
    (None, "invalid_request_error", None, InvalidRequestError),
    (None, "overloaded_error", None, ServerError),
    (None, "rate_limit_error", None, RateLimitError),
    (None, "authentication_error", None, AuthenticationError),
    (None, "api_error", None, ServerError),
    (None, None, "server_error", ServerError),
    (None, None, "rate_limit_exceeded", RateLimitError),
    (None, None, "429", RateLimitError),
    (None, None, "400", InvalidRequestError),
    (None, None, "502", ServerError),
    (None, "INVALID_ARGUMENT", "400", InvalidRequestError),
    (None, "UNAUTHENTICATED", None, AuthenticationError),
    (None, "RESOURCE_EXHAUSTED", None, RateLimitError),
    (None, "DEADLINE_EXCEEDED", None, ProviderTimeoutError),
    (None, None, "timeout", ProviderTimeoutError),
    (None, None, "content_policy_violation", ContentFilterError),
    (None, None, "payment_required", QuotaExceededError),
    (None, None, "payload_too_large", InvalidRequestError),
    (None, None, None, ServerError),
    (200, None, "404", NotFoundError),
    (200, None, None, ServerError),
]

OVERFLOWS = {
    "anthropic": "prompt is too long: 1036683 tokens > 1000000 maximum",
    "anthropic output": "input length and `max_tokens` exceed context limit: 189136 + 20000 > "
    "204648, decrease input length or `max_tokens` and try again",
    "openai responses": "Your input exceeds the context window of this model. Please adjust your "
    "input and try again.",
    "openai chat": "This model's maximum context length is 128000 tokens. However, your messages "
    "resulted in 130211 tokens.",
    "openai configured": "Input tokens exceed the configured limit of 272000 tokens. Your "
    "messages resulted in 320019 tokens.",
    "gemini": "The input token count (1200293) exceeds the maximum number of tokens allowed "
    "(1048576).",
    "vertex": "Unable to submit request because the input token count is 1200000 but the model "
    "only supports up to 1048576.",
    "openrouter": "This endpoint's maximum context length is 32768 tokens. However, you requested "
    "about 42832 tokens (10000 of text input).",
    "xai": "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "groq": "Please reduce the length of the messages or completion.",
    "cerebras": "Please reduce the length of the messages or completion. Current length is 140001 "
    "while limit is 131072",
    "mistral": "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 "
    "maximum context length",
    "fireworks": "The prompt is too long: 140000, model maximum context length: 131071",
    "together": "The input (9001 tokens) is longer than the model's context length (8192 tokens).",
    "together tgi": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. "
    "Given: 4100 `inputs` tokens and 10 `max_new_tokens`",
    "tgi": "Input validation error: `inputs` must have less than 1024 tokens. Given: 2000",
    "vllm": "This model's maximum context length is 131072 tokens. However, you requested 351430 "
    "tokens (349382 in the messages, 2048 in the completion).",
    "vllm decoder": "The decoder prompt (length 5000) is longer than the maximum model length of "
    "4096. Make sure that `max_model_len` is no smaller.",
    "sglang": "Requested token count exceeds the model's maximum context length of 32768 tokens.",
    "llama.cpp": "the request exceeds the available context size, try increasing it",
    "lm studio": "The number of tokens to keep from the initial prompt is greater than the "
    "context length. Try to load the model with a larger context length.",
    "ollama": "prompt too long; exceeded max context length by 4 tokens",
    "bedrock": "Input is too long for requested model.",
    "bedrock count": "Number of input tokens exceeds maximum length",
    "moonshot": "Invalid request: Your request exceeded model token limit: 262144 (requested: "
    "291351)",
    "minimax": "invalid params, context window exceeds limit (2013)",
    "z.ai": "Prompt exceeds max length",
    "copilot": "prompt token count of 137500 exceeds the limit of 128000",
    "dashscope": "<400> InternalError.Algo.InvalidParameter: Range of input length should be "
    "[1, 98304]",
    "cohere": "too many tokens: total number of tokens in the prompt cannot exceed 4081",
}

NOT_OVERFLOWS = [
    "Invalid 'max_tokens': integer above maximum value. Expected a value <= 16384.",
    "max_tokens is too large: 200000. This model supports at most 16384 completion tokens.",
    "max_tokens: 70000 > 64000, which is the maximum allowed number of output tokens for x",
    "Invalid 'input[0].id': string too long. Expected a string with maximum length 64, but got 90",
    "Invalid 'tools': array too long. Expected an array with maximum length 128.",
    "messages: text content blocks must be non-empty",
    "image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes",
    "The author of this context must not be an authority",
]

RATE_LIMITS = [
    "Rate limit reached on tokens per min (TPM): Limit 30000. Reduce the length of the messages.",
    "This request would exceed your rate limit of 40,000 tokens per minute; prompt is too long.",
    "Request too large for model: exceeds the limit of 6000 tokens per minute",
    "Token limit exceeded",
    "Too many input tokens, please wait before trying again.",
]

KEYS = {
    "openai": "sk-proj-aBcD1234efGH5678ijKL90",
    "anthropic": "sk-ant-api03-aBcD1234_efGH5678-ijKL90",
    "openrouter": "sk-or-v1-0123456789abcdef0123456789abcdef",
    "google": "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "google token": "ya29.a0AfH6SMBx1234567890abcdefgh",
    "groq": "gsk_0123456789abcdefABCDEF",
    "xai": "xai-0123456789abcdefABCDEF",
    "hugging face": "hf_abcdefghijklmnopqrstuvwxyz",
    "together": "tgp_v1_abcdefghijklmnop",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl",
    "bearer": "Bearer 0123456789abcdef+/=",
    "header": "authorization: bearer dGhpc2lzYWtleQ",
}


def decode(status, body, headers=None):
    """What a dialect without rules of its own makes of an error response."""
    value, text = read_body(body)
    return make_error(status, headers or {}, read_fault(value), raw=value, text=text)


def secret_of(key):
    return key.split(" ")[-1]


@given(
    st.none() | st.integers(-1, 999),
    st.dictionaries(
        st.sampled_from(["retry-after", "X-Request-Id", "x-should-retry"]) | words, words
    ),
    st.binary() | json_values.map(lambda value: json.dumps(value).encode()),
)
def test_any_reply_is_an_error(status, headers, body):
    """Whatever comes is a provider's error with its status, and never raises."""
    error = decode(status, body, headers)

    assert isinstance(error, ProviderError)
    assert error.status_code == status
    assert error.message


fields = st.sampled_from(["error", "message", "detail", "type", "code", "status", "msg", "errors"])
error_bodies = st.recursive(
    st.none() | st.booleans() | st.integers(0, 999) | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(fields, inner, max_size=4),
    max_leaves=10,
)


@given(st.sampled_from([None, *STATUSES]), error_bodies)
def test_any_shape_of_body_is_an_error(status, body):
    """Error bodies of odd shapes are read without a crash, and their JSON is kept."""
    error = decode(status, json.dumps(body).encode())

    assert error.raw == (json.dumps(body) if body is None else body)


@given(words, st.sampled_from(list(STATUSES)))
def test_a_429_is_never_an_overflow(message, status):
    """Nothing that is said with a 429 makes it a context overflow."""
    for wording in (message, *OVERFLOWS.values()):
        for code in (None, "context_length_exceeded", "max_tokens_exceeded"):
            assert classify(429, Fault(wording, None, code)) is RateLimitError
    assert classify(status, Fault("")) in {STATUSES[status], ContextLengthError}


@given(st.text(), st.sampled_from(list(KEYS.values())), st.text())
def test_keys_are_redacted_from_any_text(before, key, after):
    """A key at the start of a word is gone, whatever stands around it."""
    assert secret_of(key) not in redact(f"{before} {key} {after}")


@given(st.text())
def test_redaction_is_idempotent(text):
    """Text without keys stays as it is."""
    assert redact(redact(text)) == redact(text)


@given(st.floats(0, 10**9))
def test_retry_header_is_read_back(seconds):
    """What we tell a client to wait is what it reads."""
    headers = retry_headers(RateLimitError("x", retry_after=seconds))

    assert parse_retry_after(headers) == pytest.approx(seconds, abs=0.001)


@pytest.mark.parametrize(("status", "cls"), STATUSES.items())
def test_status(status, cls):
    """Without a code or known wording the status decides."""
    assert classify(status, Fault("something")) is cls
    assert type(decode(status, b'{"error": {"message": "something"}}')) is cls


# Each code alone: (500 and 418 have no row of their own, None is a stream) -> class
CODES_ALONE = {
    AuthenticationError: "authentication authentication_error invalid_api_key",
    AccessDeniedError: "permission_denied permission_error",
    NotFoundError: """model_not_found not_found not_found_error invalid_model model_decommissioned
        model_not_available DeploymentNotFound""",
    ContextLengthError: "context_length_exceeded max_tokens_exceeded exceed_context_size_error",
    QuotaExceededError: """insufficient_quota billing_error billing_hard_limit_reached
        enforced_spend_limit_reached payment_required""",
    ContentFilterError: """content_filter content_policy_violation ResponsibleAIPolicyViolation
        invalid_prompt moderation_blocked data_inspection_failed bio_policy
        misalignment_policy_violation""",
    RateLimitError: "rate_limit_error rate_limit_exceeded",
    ServerError: "overloaded_error provider_overloaded",
}
CODES_IN_STREAMS = {
    InvalidRequestError: "invalid_request_error invalid_request INVALID_ARGUMENT payload_too_large",
    ContextLengthError: "request_too_large",
    AuthenticationError: "UNAUTHENTICATED",
    RateLimitError: "RESOURCE_EXHAUSTED",
    ProviderTimeoutError: "DEADLINE_EXCEEDED timeout_error timeout",
    ServerError: "api_error server_error something_else",
}


def in_rows(table):
    return [(code, cls) for cls, codes in table.items() for code in codes.split()]


@pytest.mark.parametrize(("code", "cls"), in_rows(CODES_ALONE))
def test_a_specific_code_decides_whatever_the_status(code, cls):
    """A specific code decides, as code or as type, with a vague status and without one."""
    for status in (None, 418, 500):
        assert classify(status, Fault("something", None, code)) is cls
        assert classify(status, Fault("something", code, "vague")) is cls


@pytest.mark.parametrize(("code", "cls"), in_rows(CODES_IN_STREAMS))
def test_a_vague_code_decides_only_without_a_status(code, cls):
    """A vague code decides in a stream, where there is no status; else the status decides."""
    assert classify(None, Fault("something", code)) is cls
    assert classify(None, Fault("something", None, code)) is cls
    for status in (418, 500):
        assert classify(status, Fault("something", code)) is classify(status, Fault("something"))


@pytest.mark.parametrize(("status", "kind", "code", "cls"), CODES)
def test_code(status, kind, code, cls):
    """A code or type that says more than the status wins over it."""
    assert classify(status, Fault("something", kind, code)) is cls


@pytest.mark.parametrize("status", [400, 413, 422, 500, None])
@pytest.mark.parametrize("wording", OVERFLOWS.values(), ids=OVERFLOWS)
def test_an_overflow_is_known_by_its_wording(wording, status):
    """The wording of an overflow is known, whoever the host and whatever the vague type.

    Field bug 75.
    """
    for kind in (None, "invalid_request_error", "server_error", "api_error", "INVALID_ARGUMENT"):
        assert classify(status, Fault(wording, kind)) is ContextLengthError


def test_overflow_is_not_retried():
    """Sending the same again cannot help."""
    error = decode(400, json.dumps({"error": {"message": OVERFLOWS["anthropic"]}}).encode())

    assert error.retryable is False
    assert error.error_class == "context_overflow"


@pytest.mark.parametrize("wording", NOT_OVERFLOWS)
def test_not_an_overflow(wording):
    """Other limits, on output, strings and images, are invalid requests."""
    assert classify(400, Fault(wording, "invalid_request_error")) is InvalidRequestError


@pytest.mark.parametrize("wording", RATE_LIMITS)
def test_rate_limit_that_sounds_like_an_overflow(wording):
    """A 429 about tokens per minute is a rate limit, and retryable."""
    error = decode(429, json.dumps({"error": {"message": wording}}).encode())

    assert type(error) is RateLimitError
    assert error.retryable is True


@pytest.mark.parametrize(
    ("status", "cls"),
    [
        (401, AuthenticationError),
        (402, QuotaExceededError),
        (403, AccessDeniedError),
        (404, NotFoundError),
    ],
)
def test_context_window_of_a_plan(status, cls):
    """A plan without the large context window is no overflow."""
    assert classify(status, Fault("Your plan does not include the 1M context window.")) is cls


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>413 Request Entity Too Large</html>",
        b'{"error":{"type":"request_too_large","message":"too large"}}',
    ],
)
def test_a_413_is_an_overflow(body):
    """Too many tokens or too many bytes: whoever shortens the history has cured it.

    Field bug 75.
    """
    assert type(decode(413, body)) is ContextLengthError


def test_overflow_in_plain_text():
    """A body that is no JSON is looked at too."""
    assert type(decode(400, b"prompt is too long: 9 tokens > 8 maximum")) is ContextLengthError


@pytest.mark.parametrize(
    "message",
    [
        "messages[0]: unknown author",
        "authentication header of the tool is missing",
        "The model is not authorized to use this tool; unauthorized",
        "OAuth redirect failed",
    ],
)
@pytest.mark.parametrize("status", [400, 422, 500])
def test_auth_in_a_message_is_not_auth(message, status):
    """A message that speaks of authors or authorization does not decide (field bug 75)."""
    assert classify(status, Fault(message)) is STATUSES[status]


@pytest.mark.parametrize(
    "message",
    [
        "API key not valid. Please pass a valid API key.",
        "Incorrect API key provided: xa***Ab. You can obtain an API key from https://console.x.ai.",
        "invalid x-api-key",
    ],
)
def test_a_bad_key_told_with_a_400_is_known_by_its_words(message):
    """Hosts that say 400 for a wrong key are known by their words."""
    assert classify(400, Fault(message, "INVALID_ARGUMENT", "400")) is AuthenticationError


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({"error": {"message": "m", "type": "t", "code": "c"}}, Fault("m", "t", "c")),
        ({"error": {"message": "m", "code": None}}, Fault("m")),
        ({"error": {"code": 429, "message": "m", "status": "S"}}, Fault("m", "S", "429")),
        ({"error": "m"}, Fault("m")),
        ({"error": "m", "type": "t", "code": 5}, Fault("m", "t", "5")),
        ({"type": "error", "error": {"type": "t", "message": "m"}}, Fault("m", "t")),
        ({"object": "error", "message": "m", "type": "t", "code": 400}, Fault("m", "t", "400")),
        ({"message": "m"}, Fault("m")),
        ({"detail": "m"}, Fault("m")),
        ({"detail": [{"loc": ["a"], "msg": "one"}, {"msg": "two"}]}, Fault("one; two")),
        ({"detail": ["m"]}, Fault("['m']")),
        ({"detail": [{"x": 1}]}, Fault("[{'x': 1}]")),
        ([{"error": {"message": "m", "status": "S", "code": 400}}], Fault("m", "S", "400")),
        (["m"], Fault("m")),
        ("m", Fault("m")),
        ({"error": {}}, Fault()),
        ({"error": None}, Fault()),
        ({"error": {"message": "", "code": True}}, Fault()),
        ({}, Fault()),
        ([], Fault()),
        (None, Fault()),
        (5, Fault()),
    ],
)
def test_read_fault(body, fault):
    """The shapes hosts use for errors, and what they say."""
    assert read_fault(body) == fault


@pytest.mark.parametrize(
    ("body", "message", "raw"),
    [
        (b"", "HTTP 500: no message", None),
        (b" \n", "HTTP 500: no message", " \n"),
        (
            b"<html>Bad</html>",
            "HTTP 500: An HTML page, probably of a gateway or proxy: Bad",
            "<html>Bad</html>",
        ),
        (b"gone \xff", "HTTP 500: gone \ufffd", "gone \ufffd"),
        (b"null", "HTTP 500: null", "null"),
        (b"{}", "HTTP 500: {}", {}),
        (b'{"error":{"message":"m"}}', "HTTP 500: m", {"error": {"message": "m"}}),
        (b'[{"error":"m"}]', "HTTP 500: m", [{"error": "m"}]),
    ],
)
def test_bodies(body, message, raw):
    """JSON is kept as it is; anything else as text, and is the message."""
    error = decode(500, body)

    assert str(error) == message
    assert error.raw == raw


def test_long_bodies_are_cut():
    """A page of HTML does not fill the log."""
    error = decode(502, b"<" * 100_000)

    assert len(error.message) < 2_100
    assert len(error.raw) == 2_000


@pytest.mark.parametrize("depth", [100, 400, 700, 900, 990, 100_000])
def test_deep_bodies(depth):
    """A body nested too deeply to read is kept as text, its keys redacted."""
    key = KEYS["openai"]
    for message in ('"m"', "[" * depth + json.dumps(f"\n{key}") + "]" * depth):
        body = f'{{"error":{{"message":{message}}},"x":{"[" * depth}"\\n{key}"{"]" * depth}}}'
        error = decode(500, body.encode())

        assert type(error) is ServerError
        assert key not in error.message
        assert key not in str(error.raw)[:2000]


def test_fields():
    """Status, code, wait and request id are on the error."""
    error = decode(
        429,
        b'{"error":{"message":"slow","type":"rate_limit_error","code":"c"}}',
        {"Retry-After": "7", "X-Request-ID": "req_1"},
    )

    assert (error.status_code, error.error_code) == (429, "c")
    assert (error.retry_after, error.provider_request_id) == (7.0, "req_1")


def test_request_id_of_anthropic():
    """Either header names the request."""
    assert decode(500, b"", {"request-id": "req_1"}).provider_request_id == "req_1"


def test_dialect_may_know_better():
    """A dialect's own classification and wait win."""
    error = make_error(
        429,
        {"retry-after": "7"},
        Fault("m", "k"),
        error_type=QuotaExceededError,
        retry_after=34.4,
    )

    assert type(error) is QuotaExceededError
    assert (error.retry_after, error.error_code) == (34.4, "k")


@pytest.mark.parametrize(
    ("status", "headers", "retryable"),
    [
        (400, {}, False),
        (409, {}, True),
        (409, {"x-should-retry": "false"}, False),
        (429, {}, True),
        (429, {"x-should-retry": "false"}, False),
        (400, {"X-Should-Retry": "true"}, True),
        (503, {}, True),
    ],
)
def test_retryable(status, headers, retryable):
    """The status decides, a lock conflict is retried, and the provider's word wins."""
    assert decode(status, b"x", headers).retryable is retryable


@pytest.mark.parametrize("kind", ["image", "audio"])
def test_what_a_model_does_not_read_is_not_the_servers_fault(kind):
    """llama.cpp says it with a 500, and would say it again."""
    words = f"{kind} input is not supported - hint: you may need to provide the mmproj"
    body = {"error": {"code": 500, "message": words, "type": "server_error"}}
    error = decode(500, json.dumps(body).encode())

    assert type(error) is InvalidRequestError
    assert (error.status_code, error.retryable) == (500, False)


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("https://user:word@new.example.com:8443/v2?key=planted", "https://new.example.com:8443"),
        ("//new.example.com/x", "to new.example.com"),
        ("/v2/chat", "another path"),
        ("http://[oops", "another path"),
        (None, "without saying where"),
    ],
)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_final(status, location, said):
    """It says where to and what to do; asking again would lead to the same place."""
    headers = {"x-should-retry": "true"} | ({} if location is None else {"Location": location})
    error = decode(status, b"", headers)

    assert type(error) is InvalidRequestError
    assert (error.status_code, error.retryable) == (status, False)
    assert said in error.message
    assert "base_url" in error.message
    assert "planted" not in f"{error.message}{error.raw}"
    assert "word" not in error.message
    assert status_of(error) == 400  # who passes it on redirects nobody


def test_error_without_a_status():
    """An error told in a stream has only its message."""
    error = make_error(None, {}, Fault("Overloaded", "overloaded_error"))

    assert str(error) == "Overloaded"
    assert error.status_code is None
    assert error.retryable is True


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize(
    "template",
    [
        '{"error":{"message":"Incorrect API key provided: %s.","param":["%s"]}}',
        '{"error":{"message":"key:\\n%s\\tis wrong"}}',
        '{"error":"%s"}',
        '{"message":"x","headers":{"%s":"%s"}}',
        '[{"error":{"message":"https://example.com/?key=%s&alt=sse"}}]',
        '{"detail":[{"msg":"%s"}]}',
        '"%s"',
        "<html>%s</html>",
        "api_key_%s",
        '{"error":{"message":"%s"',
    ],
)
def test_keys_never_show(key, template):
    """A key that a provider echoes is in no message, repr or body of the error."""
    body = template.replace("%s", key)

    error = decode(401, body.encode())

    for shown in (str(error), repr(error), repr(error.args), repr(vars(error))):
        assert secret_of(key) not in shown
    assert "[redacted]" in repr(vars(error))


def test_escaped_key_never_shows():
    """JSON escapes do not hide a key from redaction."""
    error = decode(401, b'{"error":{"message":"bad sk\\u002dabcdefghijklmnopqrst"}}')

    assert str(error) == "HTTP 401: bad [redacted]"
    assert error.raw == {"error": {"message": "bad [redacted]"}}


def test_key_in_a_stream_never_shows():
    """A body that did not come through `read_body` is redacted too, and left as it was."""
    key = KEYS["openai"]
    raw = {"error": {"message": f"bad {key}"}, key: [key, 5]}

    error = make_error(None, {}, read_fault(raw), raw=raw)

    assert str(error) == "bad [redacted]"
    assert error.raw == {"error": {"message": "bad [redacted]"}, "[redacted]": ["[redacted]", 5]}
    assert raw == {"error": {"message": f"bad {key}"}, key: [key, 5]}


@pytest.mark.parametrize(
    "text",
    [
        "task-abcdefghijklmnop failed",
        "disk_encryption_is_not_enabled",
        "the bearer of bad news",
        "sk-short",
        "AIza",
        "model claude-sonnet-4-5-20250929",
    ],
)
def test_what_is_no_key_stays(text):
    """Words that only resemble a key are not touched."""
    assert redact(text) == text


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("SDKError", 500),
        ("ProviderError", 500),
        ("AuthenticationError", 401),
        ("AccessDeniedError", 403),
        ("NotFoundError", 404),
        ("InvalidRequestError", 400),
        ("RateLimitError", 429),
        ("ServerError", 500),
        ("ContentFilterError", 400),
        ("ContextLengthError", 400),
        ("QuotaExceededError", 402),
        ("ProviderTimeoutError", 408),
        ("RequestTimeoutError", 504),
        ("AbortError", 499),
        ("NetworkError", 502),
        ("StreamError", 502),
        ("DecodeError", 502),
        ("MismatchError", 502),
        ("BudgetExceededError", 402),
        ("RunLimitError", 500),
        ("StoreError", 500),
        ("CircuitOpenError", 503),
        ("InvalidToolCallError", 500),
        ("NoObjectGeneratedError", 500),
        ("ConfigurationError", 400),
        ("UnsupportedError", 400),
        ("UnsupportedToolChoiceError", 400),
    ],
)
def test_status_of(name, status):
    """Each class has a status a server says it with."""
    assert status_of(getattr(errors, name)("x")) == status


def test_status_of_every_class_is_tested():
    """The table above has every class of the tree."""
    tested = {name for name, _ in test_status_of.pytestmark[0].args[1]}

    assert tested == {
        name
        for name, cls in vars(errors).items()
        if isinstance(cls, type) and issubclass(cls, SDKError)
    }


def test_status_of_the_provider_wins():
    """The provider's own status is passed on; an error of another kind is a 500."""
    assert status_of(ServerError("x", status_code=529)) == 529
    assert status_of(InvalidRequestError("x", status_code=422)) == 422
    assert status_of(ValueError("x")) == 500


@pytest.mark.parametrize(
    ("seconds", "headers"),
    [
        (None, {"retry-after": "1"}),
        (0, {"retry-after": "0"}),
        (0.0, {"retry-after": "0"}),
        (7.0, {"retry-after": "7"}),
        (34.4, {"retry-after": "34.4"}),
        (1_728_000.0, {"retry-after": "1728000"}),
        (float("inf"), {"retry-after": "1"}),
        (float("nan"), {"retry-after": "1"}),
        (-1.0, {"retry-after": "1"}),
    ],
)
def test_retry_headers(seconds, headers):
    """A delay is written in plain digits, zero too; a rate limit without one gets a second."""
    assert retry_headers(RateLimitError("x", retry_after=seconds)) == headers


def test_retry_headers_of_other_errors():
    """An error that knows no wait tells none."""
    assert retry_headers(ValueError("x")) == {}
    assert retry_headers(ServerError("x", retry_after=float("nan"))) == {}


def test_words_of_an_error():
    """The status that was put before the message is not said twice."""
    error = make_error(404, {}, Fault("gone"))

    assert (str(error), error_text(error)) == ("HTTP 404: gone", "gone")
    assert error_text(ValueError("HTTP 404: gone")) == "HTTP 404: gone"


def test_retry_headers_say_what_the_kind_does_not():
    """An error that may be tried again against its kind, or must not, says so."""
    assert retry_headers(InvalidRequestError("x", retryable=True)) == {"x-should-retry": "true"}
    assert retry_headers(ServerError("x", retryable=False)) == {"x-should-retry": "false"}
    assert retry_headers(ServerError("x")) == {}
