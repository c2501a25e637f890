"""What a behaviour does to a request: pure, once, and never to the caller's own messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.prepare.behaviour import behave
from interlingua.spec.behaviour import RETRIED, Behaviour, RetrySettings
from interlingua.spec.content import Text, ToolCall
from interlingua.spec.contracts import NEUTRAL_PROFILE, Profile
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.request import BuiltinTool, Request, ToolChoice, ToolDefinition
from interlingua.spec.response import Warning

ADDENDUM = "Call tools; do not describe them."
READ = ToolDefinition(name="Read", description="Read a file")


def named(*names):
    return tuple(ToolDefinition(name=name) for name in names)


def sent(request, behaviour, profile=NEUTRAL_PROFILE):
    return behave(request, behaviour, profile).request


def names(request):
    return [tool.name for tool in request.tools]


# The prompt addendum.

HISTORIES = {
    "no prompt": (Message.user("Hi."),),
    "one prompt": (Message.system("Be kind."), Message.user("Hi.")),
    "two prompts": (Message.system("A"), Message.developer("B"), Message.user("Hi.")),
    "blank prompt": (Message.system(" "), Message.user("Hi.")),
    "a conversation": (
        Message.system("A"),
        Message.user("Hi."),
        Message.assistant("Hello."),
        Message.system("Now be brief."),
        Message.user("Go on."),
    ),
}


@pytest.mark.parametrize("messages", HISTORIES.values(), ids=HISTORIES)
def test_the_addendum_ends_the_system_prompt(messages):
    """Once, also if the request is made so a second time; the caller's messages stay."""
    request = Request(model="m", messages=messages)
    behaviour = Behaviour(prompt_addendum=ADDENDUM)

    once = sent(request, behaviour)
    twice = sent(once, behaviour)

    assert request.messages == messages
    assert twice.messages == once.messages
    assert sum(message.text.count(ADDENDUM) for message in once.messages) == 1
    prompts = [each for each in once.messages if each.role in ("system", "developer")]
    first = [each for each in prompts if ADDENDUM in each.text]
    assert first[0].content[-1] == Text(ADDENDUM)
    before = [each.text for each in messages if each.role == "user"]
    assert [each.text for each in once.messages if each.role == "user"] == before


def test_a_prompt_that_has_it_already():
    """Is left as it is, and nothing is said to be added."""
    request = Request(model="m", messages=[Message.system(f"Be kind. {ADDENDUM}"), "Hi."])
    behaved = behave(request, Behaviour(prompt_addendum=f"{ADDENDUM}\n"), NEUTRAL_PROFILE)

    assert behaved.request.messages is request.messages
    assert behaved.addendum == ""


def test_a_model_without_system_prompts():
    """The user's first message has it: another message would be lost, or folded with a warning."""
    request = Request(model="m", messages="Hi.")
    messages = sent(
        request, Behaviour(prompt_addendum=ADDENDUM), Profile(system_prompt=False)
    ).messages

    assert [message.role for message in messages] == ["user"]
    assert messages[0].content == (Text("Hi."), Text(ADDENDUM))


def test_warnings_name_places_in_the_callers_request():
    """Whatever was added before them or left out between them."""
    tools = named("draw", "Read", "play")
    request = Request(model="m", messages="Hi.", tools=tools)
    behaviour = Behaviour(prompt_addendum=ADDENDUM, max_tools=1, core_tools=["Read"])
    behaved = behave(request, behaviour, NEUTRAL_PROFILE)
    paths = ["messages[1].content[0]", "messages[0]", "tools[0].parameters", "seed", None]

    later = [Warning(code="x", message="y", path=path) for path in paths]
    mapped = behaved.add_warnings(later)

    assert mapped[0].code == "tools_over_limit"
    expected = ["messages[0].content[0]", None, "tools[1].parameters", "seed", None]
    assert [warning.path for warning in mapped[1:]] == expected


# Tools.

NAMES = [f"{prefix}{number}" for prefix in ("pdf_", "slack_", "tool_") for number in range(8)]


@given(
    tools=st.lists(st.sampled_from(NAMES), unique=True, max_size=24),
    limit=st.integers(1, 12),
    core=st.sets(st.sampled_from(NAMES), max_size=4),
    skills=st.sets(st.sampled_from(["pdf", "tool_1"])),
    connectors=st.sets(st.sampled_from(["slack", "tool_2"])),
    question=st.sampled_from(["", "Make a pdf 3.", "slack 5 and tool 7", "Nothing of these."]),
)
def test_the_laws_of_a_selection(tools, limit, core, skills, connectors, question):
    """What is always sent is sent, the room is filled, the order is that of tiers and caller."""
    request = Request(
        model="m",
        messages=question or [],
        tools=named(*tools),
        active_skills=sorted(skills),
        active_connectors=sorted(connectors),
    )
    behaviour = Behaviour(max_tools=limit, core_tools=sorted(core))
    behaved = behave(request, behaviour, NEUTRAL_PROFILE)
    chosen = names(behaved.request)

    if len(tools) <= limit:
        assert chosen == tools
        assert behaved.warnings == ()
        return
    always = [name for name in tools if name in core]
    always += [
        name for name in tools if name not in core and name.startswith(tuple(sorted(skills)))
    ]
    assert chosen[: len(always)] == always
    assert len(chosen) == max(limit, len(always))
    places = [tools.index(name) for name in chosen[len(always) :]]
    drops = [at for at in range(1, len(places)) if places[at] < places[at - 1]]
    assert len(drops) <= 1  # two tiers, each in the caller's order
    for name in chosen[len(always) :][: drops[0]] if drops else ():
        assert name.startswith(tuple(sorted(connectors)))
    assert set(behaved.left_out) == {*tools} - {*chosen}
    assert [warning.code for warning in behaved.warnings] == ["tools_over_limit"] * bool(
        behaved.left_out
    )
    for name in behaved.left_out:
        assert name in behaved.warnings[0].message
    assert behave(request, behaviour, NEUTRAL_PROFILE) == behaved


MAIL = ToolDefinition(name="send_mail", description="Send an email to a person.")
WEATHER = ToolDefinition(name="getWeather", description="The forecast for a city.")
FILES = ToolDefinition(name="list_files", description="The names of the files in a folder.")
SLACK = ToolDefinition(name="slack_post", description="Post in a channel.")
ALL = (MAIL, WEATHER, FILES, SLACK)


@pytest.mark.parametrize(
    ("question", "limit", "expected"),
    [
        ("What is the weather?", 1, ["getWeather"]),
        ("List the file in here", 1, ["list_files"]),
        ("Email the forecast to the city", 2, ["send_mail", "getWeather"]),
        ("Go on.", 2, ["send_mail", "getWeather"]),
    ],
)
def test_the_rest_by_relevance(question, limit, expected):
    """To the last user message: words of names and descriptions, and then the caller's order."""
    request = Request(model="m", messages=question, tools=ALL)

    assert names(sent(request, Behaviour(max_tools=limit))) == expected


def test_tools_that_were_called_stay():
    """A conversation that goes on with "go on" does not lose the tool that it works with."""
    messages = [
        Message.user("Post it."),
        Message(role="assistant", content=(ToolCall(id="1", name="slack_post"),)),
        Message.tool_result("1", "done"),
        Message.user("Go on."),
    ]
    request = Request(model="m", messages=messages, tools=ALL)

    assert names(sent(request, Behaviour(max_tools=1))) == ["slack_post"]


def test_connectors_come_before_the_rest_if_they_have_to_do_with_it():
    """An active connector that has nothing to do with the message has no precedence."""
    behaviour = Behaviour(max_tools=1)
    post = Request(model="m", messages="Weather: post it", tools=ALL, active_connectors=["slack"])
    weather = Request(model="m", messages="The weather", tools=ALL, active_connectors=["slack"])

    assert names(sent(post, behaviour)) == ["slack_post"]
    assert names(sent(weather, behaviour)) == ["getWeather"]


def test_what_the_request_names_is_sent():
    """A tool that must or may be called, and tools of the provider itself."""
    behaviour = Behaviour(max_tools=1)
    search = BuiltinTool(dialect="x", data={"type": "search"})
    request = Request(model="m", messages="?", tools=(*ALL, search), tool_choice="list_files")
    allowed = ToolChoice(allowed=["slack_post", "send_mail"])

    assert names(sent(request, behaviour)) == ["list_files", ""]
    allowing = Request(model="m", messages="?", tools=ALL, tool_choice=allowed)
    assert names(sent(allowing, behaviour)) == ["send_mail", "slack_post"]


def test_many_tools_cost_no_more_than_they_are():
    """Twenty thousand of them are chosen from in a moment."""
    tools = tuple(ToolDefinition(name=f"slack_{i}", description=f"does {i}") for i in range(20_000))
    request = Request(model="m", messages="77", tools=tools, active_connectors=["slack"])

    assert "slack_77" in names(sent(request, Behaviour(max_tools=10)))


# The first turn.


def test_the_first_turn_is_forced_once():
    """`required` before the first answer, the model's choice after it."""
    behaviour = Behaviour(force_first_turn=True)
    first = Request(model="m", messages="Hi.", tools=[READ])
    later = Request(model="m", messages=["Hi.", Message.assistant("Yes?"), "Go"], tools=[READ])

    assert sent(first, behaviour).tool_choice == ToolChoice(mode="required")
    assert sent(later, behaviour).tool_choice is None
    assert sent(Request(model="m", messages="Hi."), behaviour).tool_choice is None


@pytest.mark.parametrize("choice", ["auto", "none", "Read"])
def test_what_the_caller_chose_is_kept(choice):
    """A choice in the request takes precedence."""
    request = Request(model="m", messages="Hi.", tools=[READ], tool_choice=choice)

    assert sent(request, Behaviour(force_first_turn=True)).tool_choice == request.tool_choice


THINKING = Profile(
    thinking=True,
    thinking_modes=("enabled",),
    reasoning_efforts=(),
    thinking_tool_choice={"enabled": ("auto", "none")},
)
ADAPTIVE = Profile(
    thinking=True,
    thinking_modes=("adaptive", "disabled"),
    thinking_tool_choice={"adaptive": ("auto", "none")},
)


@pytest.mark.parametrize(
    ("profile", "fields"),
    [
        (Profile(tool_choice_modes=("auto",)), {}),
        (THINKING, {"thinking_budget": 2000}),
        (THINKING, {"reasoning_effort": "low"}),
        (ADAPTIVE, {"thinking_budget": 2000}),
    ],
    ids=["never", "while thinking", "an effort as a budget", "a budget as an effort"],
)
def test_it_gives_way_where_the_profile_forbids_it(profile, fields):
    """With a warning: the caller has not asked for it, so it is no error."""
    request = Request(model="m", messages="Hi.", tools=[READ], **fields)
    behaved = behave(request, Behaviour(force_first_turn=True), profile)

    assert behaved.request.tool_choice is None
    assert [warning.code for warning in behaved.warnings] == ["first_turn_not_forced"]
    assert behave(
        Request(model="m", messages="Hi.", tools=[READ]), Behaviour(force_first_turn=True), THINKING
    ).request.tool_choice == ToolChoice(mode="required")


# Defaults.


@pytest.mark.parametrize(
    ("field", "value", "own"),
    [("max_tokens", 100, 7), ("temperature", 0.0, 1.0), ("parallel_tool_calls", False, True)],
)
def test_defaults_are_below_the_request(field, value, own):
    """A value that the request sets, also a falsy one, takes precedence."""
    behaviour = Behaviour(**{field: value})
    open_request = Request(model="m", messages="?", tools=[READ])
    set_request = Request(model="m", messages="?", tools=[READ], **{field: own})

    assert getattr(sent(open_request, behaviour), field) == value
    assert getattr(sent(set_request, behaviour), field) == own


def test_settings_of_tools_need_tools():
    """Without tools there is nothing to call in parallel."""
    request = Request(model="m", messages="?")

    assert sent(request, Behaviour(parallel_tool_calls=True, strict_tools=True)) == request


@pytest.mark.parametrize("strict", [True, False])
def test_strict_tools(strict):
    """Each tool that leaves it open; others keep their own, and custom tools have none."""
    open_tool, own = READ, ToolDefinition(name="Edit", strict=not strict)
    custom = ToolDefinition(name="patch", type="custom")
    request = Request(model="m", messages="?", tools=[open_tool, own, custom])

    tools = sent(request, Behaviour(strict_tools=strict)).tools
    assert [tool.strict for tool in tools] == [strict, not strict, None]


# The records.


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"max_tools": 0}, "behaviour.max_tools must be an integer of 1 or more, not 0."),
        ({"max_tools": "20"}, "behaviour.max_tools must be an integer of 1 or more, not '20'."),
        ({"core_tools": [1]}, "core_tools"),
        ({"retry": {"errors": ["rate_limits"]}}, "Did you mean 'rate_limit'"),
        (
            {"retry": {"max_retries": -1}},
            "retry.max_retries must be an integer of 0 or more, not -1.",
        ),
        ({"model_map": {"a": 1}}, "model_map"),
    ],
)
def test_a_wrong_value_is_told(fields, message):
    """With the name of the field."""
    with pytest.raises(ConfigurationError) as caught:
        Behaviour(**fields)
    assert message in caught.value.message


def test_lists_and_mappings_are_taken():
    """A list of names, one name, and a mapping for the retries."""
    behaviour = Behaviour(core_tools="Read", retry={"errors": ["timeout"]})

    assert behaviour.core_tools == ("Read",)
    assert behaviour.retry == RetrySettings(errors=["timeout"])
    assert "timeout" in RETRIED
