"""Three ways of asking for an object, and how the answers are read."""

import json

import pytest

from interlingua.api.objects.schema import ObjectSchema
from interlingua.api.objects.strategy import ObjectGoal, plan
from interlingua.api.tools.tool import Tool
from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.spec.content import Image, Refusal, Text, ToolCall
from interlingua.spec.contracts import NEUTRAL_PROFILE, Profile
from interlingua.spec.errors import NoObjectGeneratedError, UnsupportedError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request, ToolChoice
from interlingua.spec.response import FinishReason, Response

SCHEMA = ObjectSchema(
    {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
)
LOOKUP = Tool(name="lookup", execute=print)
OPEN = ObjectSchema(dict[str, int])
MODES = ("native", "tool", "prompt")


def goal(mode="native", profile=NEUTRAL_PROFILE, tools=(), **settings):
    return ObjectGoal(SCHEMA, mode, profile, tools=tools, **settings)


def ask(aim, *, is_last=False, messages=("Hello",), tools=(), **fields):
    added = () if aim.tool is None else (aim.tool,)
    definitions = tuple(tool.definition for tool in (*tools, *added))
    request = Request(model="m", messages=messages, tools=definitions or None, **fields)
    return aim.ask(request, is_last=is_last)


def answer(*parts, reason="stop"):
    message = Message(role="assistant", content=parts)
    return Response(message=message, finish_reason=FinishReason(reason=reason))


def said(text, **fields):
    return answer(Text(text=text), **fields)


def called(arguments=None, raw=None, name="answer", id="c", **fields):  # noqa: A002 -- the part's
    call = ToolCall(id=id, name=name, arguments=arguments or {}, raw_arguments=raw)
    return answer(call, **fields)


class Custom:
    """An adapter that is nobody's row."""

    name = "custom"

    async def complete(self, _):
        raise NotImplementedError

    def stream(self, _):
        raise NotImplementedError


# Which way.


def planned(provider, model, schema=SCHEMA, tools=(), **settings):
    client = Client({provider: HttpAdapter(provider, "key", **settings)})
    request = Request(model=model, provider=provider, tools=tools or None)
    return plan(client, request, schema, tools=tools).mode


@pytest.mark.parametrize(
    ("provider", "model", "mode"),
    [
        ("openai", "gpt-5.2", "native"),
        ("anthropic", "claude-haiku-4-5", "native"),
        ("anthropic", "claude-3-5-haiku-latest", "tool"),
        ("deepseek", "deepseek-chat", "tool"),
        ("gemini", "gemini-2.5-flash", "native"),
    ],
)
def test_the_profile_says_which_way(provider, model, mode):
    """The best that the model takes."""
    assert planned(provider, model) == mode


def test_tools_beside_it_may_leave_another_way():
    """Gemini 2.5 has no native way beside tools."""
    assert planned("gemini", "gemini-2.5-flash", tools=(LOOKUP.definition,)) == "tool"
    assert planned("gemini", "gemini-3-pro", tools=(LOOKUP.definition,)) == "native"


def test_a_schema_that_cannot_be_said_natively():
    """Anthropic's format is always closed, so an open object is asked for by a tool."""
    assert planned("openai", "gpt-5.2", OPEN) == "native"
    assert planned("anthropic", "claude-haiku-4-5", OPEN) == "tool"
    assert planned("anthropic", "claude-haiku-4-5", OPEN, strict=True) == "tool"


def test_a_model_without_tools():
    """The tool's way is not taken, whatever else the profile says."""
    profile = {"structured_output": ("tool", "prompt"), "tools": False}

    assert planned("openai", "gpt-5.2", profile=profile) == "prompt"


def test_no_way_at_all():
    """It is told before anything is sent."""
    with pytest.raises(UnsupportedError, match="does not support objects of this schema"):
        planned("openai", "gpt-5.2", profile={"structured_output": ()})
    with pytest.raises(UnsupportedError, match="together with tools"):
        planned(
            "openai",
            "gpt-5.2",
            tools=(LOOKUP.definition,),
            profile={"structured_output": ("native",), "structured_output_with_tools": False},
        )


def test_an_adapter_that_cannot_tell():
    """The neutral profile counts."""
    request = Request(model="m", provider="custom")

    assert plan(Client({"custom": Custom()}), request, SCHEMA).mode == "native"


# What is asked.


def test_native():
    """The format carries the schema."""
    asked = ask(goal("native"))

    assert asked.response_format.type == "json_schema"
    assert asked.response_format.json_schema == SCHEMA.wire_schema
    assert asked.response_format.strict
    assert asked.tools == ()
    assert asked.messages == (Message.user("Hello"),)


def test_tool():
    """The only tool, and it must be called."""
    aim = goal("tool")
    asked = ask(aim)

    assert asked.tools[0].parameters == SCHEMA.wire_schema
    assert asked.tools[0].strict
    assert asked.tool_choice == ToolChoice(mode="named", tool_name="answer")
    assert asked.response_format is None
    assert asked.messages == (Message.user("Hello"),)


def test_prompt():
    """The schema is in the instructions, after those that are there."""
    aim = goal("prompt")
    alone = ask(aim).messages
    beside = ask(aim, messages=(Message.system("Be terse."), Message.user("Hello"))).messages
    image = Image(url="https://example.com/x.png")
    after = ask(aim, messages=(Message.system([image]), Message.user("Hello"))).messages

    assert [message.role for message in alone] == ["system", "user"]
    assert alone[0].text.endswith(json.dumps(SCHEMA.wire_schema, separators=(",", ":")))
    assert beside[0].content == (Text(text=f"Be terse.\n\n{alone[0].text}"),)
    assert after[0].content == (image, *alone[0].content)
    assert len(beside) == len(after) == 2


@pytest.mark.parametrize("mode", MODES)
def test_after_the_last_round_no_tool_is_called(mode):
    """Nobody would run it."""
    choice = ask(goal(mode, tools=(LOOKUP,)), tools=(LOOKUP,), is_last=True).tool_choice

    named = ToolChoice(mode="named", tool_name="answer")
    assert choice == (named if mode == "tool" else ToolChoice(mode="none"))


@pytest.mark.parametrize(
    ("given", "choice"),
    [
        (None, ToolChoice(mode="required")),
        (ToolChoice(), ToolChoice(mode="required")),
        (
            ToolChoice(mode="none"),
            ToolChoice(mode="named", tool_name="answer", allowed=("answer",)),
        ),
        (
            ToolChoice(mode="named", tool_name="lookup"),
            ToolChoice(mode="named", tool_name="lookup"),
        ),
        (
            ToolChoice(allowed=("lookup",)),
            ToolChoice(mode="required", allowed=("lookup", "answer")),
        ),
    ],
)
def test_a_choice_beside_tools(given, choice):
    """Some tool is called until the answer is; a choice of the caller is kept."""
    aim = goal("tool", tools=(LOOKUP,))

    allowed = aim.allow_answer(given)
    assert ask(aim, tools=(LOOKUP,), tool_choice=allowed).tool_choice == choice


@pytest.mark.parametrize(
    ("profile", "fields", "choice"),
    [
        (Profile(tool_choice_modes=("auto", "required")), {}, ToolChoice(mode="required")),
        (Profile(tool_choice_modes=("auto", "none")), {}, None),
        (
            Profile(
                thinking_modes=("enabled", "disabled"),
                thinking_tool_choice={"enabled": ("auto", "none")},
            ),
            {"thinking_budget": 2048, "max_tokens": 4096},
            None,
        ),
    ],
)
def test_no_choice_is_forced_where_the_model_refuses_one(profile, fields, choice):
    """A model that cannot be forced, always or while it thinks, is told in words (field bug 24)."""
    asked = ask(goal("tool", profile), **fields)

    assert asked.tool_choice == choice
    assert ("tool answer" in asked.messages[0].text) == (choice is None)


def test_a_tool_called_answer():
    """The caller's keeps its name."""
    theirs = Tool(name="answer")

    assert goal("tool", tools=(theirs,)).tool.name == "answer_2"


@pytest.mark.parametrize(
    ("profile", "strict"),
    [
        (NEUTRAL_PROFILE, True),
        (Profile(strict_tools=False), None),
        (Profile(max_strict_tools=1), None),
        (Profile(max_strict_tools=2), True),
    ],
)
def test_strict_only_where_it_is_taken(profile, strict):
    """So that no warning tells of a mark that nobody asked for."""
    theirs = Tool(name="lookup", strict=True)

    assert goal("tool", profile, tools=(theirs,)).tool.strict is strict


# What is read.


@pytest.mark.parametrize("mode", MODES)
def test_words(mode):
    """Text is read in every way of asking: a model may not call the tool."""
    assert goal(mode).read(said('```json\n{"n": 1}\n```')).output == {"n": 1}


def test_calls():
    """The first call of the tool counts, and words beside it do not."""
    twice = answer(
        Text(text='{"n": 7}'),
        ToolCall(id="a", name="answer", arguments={"n": 1}),
        ToolCall(id="b", name="answer", arguments={"n": 2}),
    )

    assert goal("tool").read(twice).output == {"n": 1}


def test_a_call_that_is_no_answer():
    """Only the tool that was made for it gives the object."""
    with pytest.raises(NoObjectGeneratedError, match="called answer"):
        goal("native").read(called({"n": 1}))


@pytest.mark.parametrize(
    ("mode", "response", "message", "text"),
    [
        ("native", said("Well"), "contains no JSON", "Well"),
        ("native", said('{"n": "x"}'), 'n: "x" is not of type', '{"n": "x"}'),
        ("native", said('{"n": 1', reason="length"), "Raise max_tokens", '{"n": 1'),
        ("native", said("No", reason="content_filter"), "filtered or refused", "No"),
        ("native", answer(Refusal(text="I will not.")), "refused: I will not.", ""),
        ("native", said("", reason="cancelled"), "was cancelled", ""),
        ("native", said("", reason="error"), "ended the answer with an error", ""),
        ("native", called(name="lookup"), "called lookup instead", ""),
        ("tool", called({"n": "x"}), 'n: "x" is not of type', '{"n":"x"}'),
        ("tool", called(raw='{"n": 1', reason="length"), "Raise max_tokens", '{"n": 1'),
        ("tool", called({"n": 1}, reason="length"), "Raise max_tokens", '{"n":1}'),
        ("tool", called(raw="[1]"), "not of type", "[1]"),
    ],
)
def test_no_object(mode, response, message, text):
    """The error says why, and has the text, the response and each problem."""
    with pytest.raises(NoObjectGeneratedError, match=message) as caught:
        goal(mode).read(response)

    error = caught.value
    assert (error.text, error.response, error.partial) == (text, response, response)
    assert len(error.problems) == 1
    assert not error.retryable


def test_an_end_that_came_after_the_object():
    """What is whole is whole, though the model would have gone on."""
    assert goal().read(said('{"n": 1} and', reason="length")).output == {"n": 1}


# Asking again.


def test_in_words():
    """The problems, as the user says them."""
    (message,) = goal(max_validation_retries=1).review(said('{"n": "x"}'))

    assert message.role == "user"
    assert 'n: "x" is not of type' in message.text


def test_as_a_result():
    """A call is answered, and so are those beside it."""
    response = answer(
        ToolCall(id="a", name="lookup"), ToolCall(id="b", name="answer", arguments={"n": "x"})
    )
    (message,) = goal("tool", tools=(LOOKUP,), max_validation_retries=1).review(response)

    other, wrong = message.content
    assert message.role == "tool"
    assert (other.tool_call_id, other.is_error) == ("a", True)
    assert (wrong.tool_call_id, wrong.is_error) == ("b", True)
    assert 'n: "x" is not of type' in wrong.content


def test_as_often_as_is_said():
    """And not once more."""
    aim = goal(max_validation_retries=2)

    assert [bool(aim.review(said(text))) for text in "abc"] == [True, True, False]
    assert not goal().review(said("a"))


@pytest.mark.parametrize(
    "response",
    [
        said('{"n": 1}'),
        said('{"n": 1', reason="length"),
        said("No", reason="content_filter"),
        answer(Refusal(text="No")),
        called(name="lookup"),
    ],
)
def test_not_where_it_would_not_help(response):
    """It was right, cut off, refused, or is not over."""
    assert goal(max_validation_retries=1).review(response) == ()


def test_closing():
    """No call stays unanswered in a conversation that goes on."""
    (message,) = goal("tool").closing(called({"n": 1}))

    assert [(part.tool_call_id, part.is_error) for part in message.content] == [("c", False)]
    assert goal("native").closing(said('{"n": 1}')) == ()
