"""One conversation, six models of four dialects: every turn is what the next one accepts."""

import asyncio
import base64
import json

import pytest

from interlingua import Client, HttpAdapter, dialects, from_json, to_json
from interlingua.conformance.canonical import compare
from interlingua.providers.catalog.profiles import profile_for
from interlingua.spec.content import Image, Text, Thinking, ToolResult
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ToolDefinition
from interlingua.transport import CannedReply, CannedTransport
from support.oracles_requests import problems

PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)
SENTINEL = base64.b64encode(b"skip_thought_signature_validator").decode()
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = (
    ToolDefinition(name="get_map", description="A map of a city.", parameters=CITY),
    ToolDefinition(name="get_weather", description="The weather in a city.", parameters=CITY),
)
BEGINNING = (
    Message.system("You plan walks."),
    Message.user("Where should I walk today, Oslo or Bergen?"),
)

CLAUDE = ("anthropic_messages", "claude-opus-5-5", "anthropic")
GPT = ("openai_responses", "gpt-6.1-sol", "openai")
GEMINI = ("gemini_generate", "gemini-4-argon", "gemini")
KIMI = ("openai_chat", "kimi-k3", "moonshot")


def claude(thought, text, *calls):
    return {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": CLAUDE[1],
        "content": [
            {"type": "thinking", "thinking": thought, "signature": f"sig-{thought}"},
            {"type": "text", "text": text},
            *(
                {"type": "tool_use", "id": call_id, "name": name, "input": {"city": city}}
                for call_id, name, city in calls
            ),
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 10},
    }


def gpt(*items):
    return {
        "id": "resp_01",
        "object": "response",
        "created_at": 1763000000,
        "status": "completed",
        "model": GPT[1],
        "output": list(items),
        "usage": {"input_tokens": 10, "output_tokens": 10, "total_tokens": 20},
    }


REASONED = {
    "type": "reasoning",
    "id": "rs_01",
    "summary": [{"type": "summary_text", "text": "Bergen may be wet."}],
    "encrypted_content": "gAAAAAB-encrypted",
}

ANSWERS = [
    claude(
        "Look at both.",
        "I look at Oslo.",
        ("toolu_01", "get_map", "Oslo"),
        ("toolu_02", "get_weather", "Oslo"),
    ),
    gpt(
        REASONED,
        {
            "type": "function_call",
            "id": "fc_01",
            "call_id": "call_01",
            "name": "get_weather",
            "arguments": '{"city": "Bergen"}',
            "status": "completed",
        },
    ),
    {
        "responseId": "r1",
        "modelVersion": GEMINI[1],
        "candidates": [
            {
                "index": 0,
                "finishReason": "STOP",
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "Both once more.", "thought": True},
                        {
                            "functionCall": {"name": "get_map", "args": {"city": "Bergen"}},
                            "thoughtSignature": "c2lnbmVk",
                        },
                        {"functionCall": {"name": "get_weather", "args": {"city": "Oslo"}}},
                    ],
                },
            }
        ],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 10},
    },
    {
        "id": "chatcmpl-01",
        "object": "chat.completion",
        "created": 1763000000,
        "model": KIMI[1],
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "reasoning_content": "Only the map is missing.",
                    "content": "One more map.",
                    "tool_calls": [
                        {
                            "id": "get_map:0",
                            "type": "function",
                            "function": {"name": "get_map", "arguments": '{"city":"Oslo"}'},
                        }
                    ],
                },
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
    },
    claude("Oslo it is.", "Let me be sure.", ("toolu_03", "get_weather", "Oslo")),
    gpt(
        {
            "type": "message",
            "id": "msg_02",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Oslo.", "annotations": []}],
        }
    ),
]
TURNS = [CLAUDE, GPT, GEMINI, KIMI, CLAUDE, GPT]
RESULTS = [
    [(Text(text="Oslo:"), Image(data=PNG, media_type="image/png")), "no such station"],
    [{"sky": "rain", "degrees": 7}],
    ["a harbour", "sun"],
    ["a fjord"],
    ["still sun"],
    [],
]


def answers(calls, contents, turn):
    """A tool message; the second result of the first turn is a failure."""
    parts = [
        ToolResult(tool_call_id=call.id, content=content, is_error=turn == 0 and i == 1)
        for i, (call, content) in enumerate(zip(calls, contents, strict=True))
    ]
    return Message(role="tool", content=tuple(parts)) if parts else None


def ask(request, provider, answer):
    """The message of a real call, as a program keeps it: with its metadata, and through JSON."""
    reply = CannedReply(
        body=json.dumps(answer).encode(), headers={"content-type": "application/json"}
    )
    adapter = HttpAdapter(provider, "key", transport=CannedTransport([reply]))
    response = asyncio.run(Client({provider: adapter}, on_loss="warn").complete(request))
    assert response.message.metadata["model"] == request.model
    assert response.message.metadata["provider"] == provider
    return from_json(to_json(response.message), Message)


def converse():
    """The request of each turn, and the call that carries it."""
    history = BEGINNING
    for turn, (dialect, model, provider) in enumerate(TURNS):
        request = Request(model=model, messages=history, tools=TOOLS)
        profile = profile_for(dialect, model, provider)
        yield dialect, request, dialects.get(dialect).encode_request(request, profile)
        message = ask(request, provider, ANSWERS[turn])
        results = answers(message.tool_calls, RESULTS[turn], turn)
        history = (*history, message, *([results] if results else []))


CONVERSATION = list(converse())
FOREIGN = "foreign_thinking_dropped"

WARNINGS = [
    [],
    [
        (FOREIGN, "messages[2].content[0]"),
        ("tool_error_as_text", "messages[3].content[1]"),
    ],
    [
        (FOREIGN, "messages[2].content[0]"),
        (FOREIGN, "messages[4].content[0]"),
        ("unsigned_call_marked", "messages[2].content[2]"),
        ("unsigned_call_marked", "messages[4].content[1]"),
    ],
    [
        (FOREIGN, "messages[2].content[0]"),
        (FOREIGN, "messages[4].content[0]"),
        (FOREIGN, "messages[6].content[0]"),
        ("result_media_moved", "messages[3].content[0]"),
        ("tool_error_as_text", "messages[3].content[1]"),
    ],
    [
        ("call_id_mapped", "messages[8].content[2]"),
        (FOREIGN, "messages[4].content[0]"),
        (FOREIGN, "messages[6].content[0]"),
        (FOREIGN, "messages[8].content[0]"),
    ],
    [
        (FOREIGN, "messages[2].content[0]"),
        (FOREIGN, "messages[6].content[0]"),
        (FOREIGN, "messages[8].content[0]"),
        (FOREIGN, "messages[10].content[0]"),
        ("tool_error_as_text", "messages[3].content[1]"),
    ],
]
THINKING = [
    [],
    [],
    [SENTINEL, SENTINEL],
    [],
    ["sig-Look at both."],
    ["gAAAAAB-encrypted"],
]
CALLED = [
    ("get_map", "Oslo", "Oslo:"),
    ("get_weather", "Oslo", "no such station"),
    ("get_weather", "Bergen", '{"sky":"rain","degrees":7}'),
    ("get_map", "Bergen", "a harbour"),
    ("get_weather", "Oslo", "sun"),
    ("get_map", "Oslo", "a fjord"),
    ("get_weather", "Oslo", "still sun"),
]
ANSWERED = [0, 2, 3, 5, 6, 7]  # how many calls there have been before each turn

turns = pytest.mark.parametrize("turn", range(len(TURNS)))


@turns
def test_the_next_model_accepts_it(turn):
    """The body fits the request types of the vendor's SDK."""
    dialect, _, call = CONVERSATION[turn]

    assert problems(dialect, call.body, call.path) == []


@turns
def test_every_change_is_told(turn):
    """Exactly these warnings, each at its place in the history."""
    _, _, call = CONVERSATION[turn]

    assert [(warning.code, warning.path) for warning in call.warnings] == WARNINGS[turn]


@turns
def test_nothing_else_changes(turn):
    """Read again, it says the same, but for what the warnings tell."""
    dialect, request, call = CONVERSATION[turn]

    assert compare(request, dialects.get(dialect).decode_request(call), call.warnings) == []


@turns
def test_every_result_answers_its_call(turn):
    """In the body itself, by the dialect's own links, and in the order of the calls."""
    dialect, _, call = CONVERSATION[turn]

    expected = CALLED[: ANSWERED[turn]]
    if dialect.startswith("openai"):  # without a flag, the text tells the failure
        expected = [(*one, text.replace("no such", "Error: no such")) for *one, text in expected]
    assert LINKS[dialect](call.body) == expected


@turns
def test_thinking_goes_back_only_to_its_maker(turn):
    """A signature or an encrypted thought, to the model that made it, and to no other."""
    _, _, call = CONVERSATION[turn]
    proofs = ("signature", "thoughtSignature", "encrypted_content", "reasoning_content")

    found = [value for key, value in fields_of(call.body) if key in proofs]

    assert found == THINKING[turn]
    assert not any(key == "thought" for key, _ in fields_of(call.body))


@turns
def test_the_image_is_shown(turn):
    """Once, after the first turn, and nowhere else."""
    _, _, call = CONVERSATION[turn]

    shown = json.dumps(call.body).count(base64.b64encode(PNG).decode())

    assert shown == (turn > 0)


def test_the_conversation_ends():
    """The last answer follows on all that was said."""
    dialect, request, _ = CONVERSATION[-1]
    response = dialects.get(dialect).decode_response(ANSWERS[-1])

    assert response.text == "Oslo."
    assert sum(len(message.tool_calls) for message in request.messages) == len(CALLED)
    thoughts = [p for m in request.messages for p in m.content if isinstance(p, Thinking)]
    assert len(thoughts) == 5  # the history itself keeps them all


# Links, read from each wire.


def fields_of(value):
    """Every key and value of every object, in order."""
    for key, item in value.items() if isinstance(value, dict) else ():
        yield key, item
        yield from fields_of(item)
    for item in value if isinstance(value, list) else ():
        yield from fields_of(item)


def paired(calls, results):
    """Each call with its result; every result is of a call, and of one."""
    assert sorted(call_id for call_id, _ in results) == sorted(call[0] for call in calls)
    texts = dict(results)
    assert len(texts) == len(results)
    return [(name, city, texts[call_id]) for call_id, name, city in calls]


def text_of(content):
    return content if isinstance(content, str) else content[0]["text"]


def links_of_claude(body):
    blocks = [b for m in body["messages"] if isinstance(m["content"], list) for b in m["content"]]
    return paired(
        [(b["id"], b["name"], b["input"]["city"]) for b in blocks if b["type"] == "tool_use"],
        [(b["tool_use_id"], text_of(b["content"])) for b in blocks if b["type"] == "tool_result"],
    )


def links_of_gpt(body):
    items = body["input"]
    return paired(
        [
            (item["call_id"], item["name"], json.loads(item["arguments"])["city"])
            for item in items
            if item.get("type") == "function_call"
        ],
        [
            (item["call_id"], text_of(item["output"]))
            for item in items
            if item.get("type") == "function_call_output"
        ],
    )


def links_of_kimi(body):
    messages = body["messages"]
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    return paired(
        [
            (c["id"], c["function"]["name"], json.loads(c["function"]["arguments"])["city"])
            for c in calls
        ],
        [(m["tool_call_id"], text_of(m["content"])) for m in messages if m["role"] == "tool"],
    )


def links_of_gemini(body):
    parts = [part for content in body["contents"] for part in content["parts"]]
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    results = [part["functionResponse"] for part in parts if "functionResponse" in part]
    names = {call["id"]: call["name"] for call in calls}
    assert all(names[result["id"]] == result["name"] for result in results)
    return paired(
        [(call["id"], call["name"], call["args"]["city"]) for call in calls],
        [(result["id"], said_in(result["response"])) for result in results],
    )


def said_in(response):
    texts = [value for key, value in response.items() if key in ("output", "error")]
    return texts[0] if texts else json.dumps(response, separators=(",", ":"))


LINKS = {
    "anthropic_messages": links_of_claude,
    "openai_responses": links_of_gpt,
    "openai_chat": links_of_kimi,
    "gemini_generate": links_of_gemini,
}
