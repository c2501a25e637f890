"""What coding agents send comes back as it was, and reaches every other dialect."""

from copy import deepcopy

import pytest

from interlingua import dialects
from interlingua.spec.contracts import WireCall

NAMES = dialects.names()
HI = [{"role": "user", "content": "Hi."}]
BILLING = {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1; cc_entrypoint=cli;"}
MARK = {"internal_chat_message_metadata_passthrough": {"turn_id": "t1"}}
FUNCTION = {"type": "function", "name": "f", "strict": False, "parameters": {"type": "object"}}
SCHEMA = {"type": "object", "properties": {"model_choice": {"type": "string"}}}


def messages(**fields):
    """A body of Claude Code."""
    return {"model": "m", "max_tokens": 50, "messages": HI, **fields}


def responses(*items, **fields):
    """A body of Codex."""
    return {"model": "m", "input": [*items], "store": False, **fields}


def user_item(text="Hi.", **fields):
    content = [{"type": "input_text", "text": text}]
    return {"type": "message", "role": "user", "content": content, **fields}


ANTHROPIC = {
    "a system message among the messages": messages(
        messages=[
            *HI,
            {"role": "system", "content": "Be brief."},
            {"role": "assistant", "content": "Yes."},
            {"role": "user", "content": "Go on."},
        ]
    ),
    "a billing header before the prompt": messages(
        system=[BILLING, {"type": "text", "text": "You are an agent."}]
    ),
    "context management": messages(
        context_management={"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
    ),
    "effort": messages(output_config={"effort": "medium"}),
    "adaptive thinking": messages(thinking={"type": "adaptive", "display": "omitted"}),
    "a deferred tool": messages(
        tools=[
            {"name": "hunt", "input_schema": {"type": "object"}, "defer_loading": True},
            {"name": "find", "input_schema": {"type": "object"}},
        ]
    ),
}
CODEX = {
    "a developer item": responses(
        {
            "type": "message",
            "role": "developer",
            "content": [{"type": "input_text", "text": "Be brief."}],
        },
        user_item(),
    ),
    "metadata on items": responses(
        user_item(**MARK),
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}", **MARK},
        {"type": "function_call_output", "call_id": "c1", "output": "ok", **MARK},
        tools=[
            {"type": "function", "name": "f", "strict": False, "parameters": {"type": "object"}}
        ],
    ),
    "tool types": responses(
        user_item(),
        tools=[
            {"type": "custom", "name": "apply_patch", "description": "Patch."},
            {"type": "web_search", "external_web_access": False},
            {"type": "tool_search", "execution": "client", "parameters": {"type": "object"}},
            {
                "type": "namespace",
                "name": "mail",
                "description": "Mail.",
                "tools": [{**FUNCTION, "name": "send"}],
            },
        ],
        include=["reasoning.encrypted_content"],
        reasoning={"effort": "medium", "summary": "auto"},
        prompt_cache_key="thread",
        client_metadata={"thread": "1"},
    ),
}
GEMINI = {
    "the router's call": {
        "contents": [{"role": "user", "parts": [{"text": "Which model?"}]}],
        "generationConfig": {
            "temperature": 0,
            "responseMimeType": "application/json",
            "responseJsonSchema": SCHEMA,
            "thinkingConfig": {"thinkingBudget": 512},
        },
    },
}
CASES = [
    *(("anthropic_messages", "/v1/messages", name, body) for name, body in ANTHROPIC.items()),
    *(("openai_responses", "/v1/responses", name, body) for name, body in CODEX.items()),
    *(
        ("gemini_generate", "/v1beta/models/m:generateContent", name, body)
        for name, body in GEMINI.items()
    ),
]
IDS = [case[2] for case in CASES]


def meaning(body):
    """The body; in Responses, a text is the same as a list of this one text."""
    for item in body.get("input", ()):
        match item.get("content"):
            case [{"type": "input_text", "text": text, **rest}] if not rest:
                item["content"] = text
    return body


@pytest.mark.parametrize(("dialect", "path", "name", "body"), CASES, ids=IDS)
def test_it_comes_back_as_it_was(dialect, path, name, body):
    """Decoded and encoded in the same dialect, the body has the same meaning."""
    codec, body = dialects.get(dialect), deepcopy(body)
    request = codec.decode_request(WireCall(path=path, body=body))

    assert meaning(codec.encode_request(request).body) == meaning(body), name


@pytest.mark.parametrize("target", NAMES)
@pytest.mark.parametrize(("dialect", "path", "name", "body"), CASES, ids=IDS)
def test_it_reaches_every_other_dialect(dialect, path, name, body, target):
    """The user's words arrive, and nothing that only the first dialect knows is sent."""
    request = dialects.get(dialect).decode_request(WireCall(path=path, body=body))
    call = dialects.get(target).encode_request(request)
    sent = str(call.body)

    assert "Hi." in sent or "Which model?" in sent, name
    again = dialects.get(target).decode_request(call)
    assert again.messages, name
    if target != dialect:
        for foreign in ("internal_chat_message", "context_management", "client_metadata"):
            assert foreign not in sent, name
        assert "defer_loading" not in sent, name


def test_unknown_beta_flags_come_back_in_their_order():
    """They come back in the order in which they were sent, in one header (field bug 104)."""
    codec = dialects.get("anthropic_messages")
    flags = "claude-code-20250219,invented-2027-01-01"
    call = WireCall(
        path="/v1/messages?beta=true", body=messages(), headers={"anthropic-beta": flags}
    )

    assert codec.encode_request(codec.decode_request(call)).headers["anthropic-beta"] == flags


@pytest.mark.parametrize("target", [name for name in NAMES if name != "gemini_generate"])
def test_the_router_gets_its_schema_everywhere(target):
    """A call of Gemini CLI that needs JSON gets it from any model."""
    body = GEMINI["the router's call"]
    call = WireCall(path="/v1beta/models/m:generateContent", body=body)
    sent = dialects.get(target).encode_request(dialects.get("gemini_generate").decode_request(call))

    assert "model_choice" in str(sent.body)
