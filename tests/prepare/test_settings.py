"""Requests narrowed to a profile."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from interlingua import dialects
from interlingua.conformance.strategies import requests
from interlingua.prepare.settings import RULES, adjust_settings, structured_output_mode
from interlingua.prepare.thinking import EFFORTS
from interlingua.providers.catalog.profiles import profile_for
from interlingua.spec.contracts import Profile
from interlingua.spec.errors import UnsupportedError, UnsupportedToolChoiceError
from interlingua.spec.request import (
    BuiltinTool,
    Request,
    ResponseFormat,
    ToolChoice,
    ToolDefinition,
)
from interlingua.spec.warnings import WarningList, check_losses
from support.run_profile import examples

TOOL = ToolDefinition(name="look")
FORCED = ToolChoice(mode="required")
NAMED = ToolChoice(mode="named", tool_name="look")
SCHEMA = ResponseFormat(type="json_schema", json_schema={"type": "object"})


def told_by(request, profile):
    """What clamping makes of a request, and its warnings as code and path."""
    losses = WarningList()
    clamped = adjust_settings(request, profile, losses)
    return clamped, [(warning.code, warning.path) for warning in losses.warnings]


def some(values):
    return st.none() | st.lists(st.sampled_from(values), unique=True).map(tuple)


MODES = ("auto", "none", "required", "named")
SETTINGS = ("temperature", "top_p", "top_k", "seed", "stop_sequences", "verbosity", "logprobs")
flags = st.sampled_from([None, True, False])
profiles = st.builds(
    Profile,
    dialect=st.sampled_from(["", "openai_chat"]),
    max_output_tokens=st.none() | st.integers(1, 9000),
    image_types=some(["image/png", "image/*"]),
    audio_types=some(["audio/wav"]),
    document_types=some(["application/pdf", "text/plain"]),
    tools=flags,
    tools_while_thinking=flags,
    tool_choice_modes=some(MODES),
    thinking_tool_choice=st.dictionaries(
        st.sampled_from(["adaptive", "enabled"]), st.just(("auto", "none"))
    ),
    tool_choice_without_tools=flags,
    parallel_tool_calls=flags,
    strict_tools=flags,
    max_strict_tools=st.none() | st.integers(0, 2),
    structured_output=some(["native", "tool", "prompt"]),
    structured_output_with_tools=flags,
    sampling=flags,
    sampling_versions=some(["1", "2"]),
    api_version=st.sampled_from([None, "1"]),
    max_temperature=st.none() | st.just(1.0),
    rejected_while_thinking=some(SETTINGS).map(lambda found: found or ()),
    penalties=flags,
    seed=flags,
    logprobs=flags,
    verbosity=flags,
    stop_sequences=st.none() | st.integers(0, 2),
    thinking=flags,
    thinks_by_default=st.booleans(),
    thinking_modes=some(["adaptive", "enabled", "disabled", "between_tools"]),
    reasoning_efforts=some(EFFORTS),
    min_thinking_budget=st.none() | st.just(1024),
    max_thinking_budget=st.none() | st.just(1500),
    dynamic_budget=st.booleans(),
    budget_below_max_tokens=st.booleans(),
)


any_request = requests()


@st.composite
def demanding_requests(draw):
    """Requests that also ask for what few models have."""
    request = draw(any_request)
    tools = request.tools and tuple(
        replace(tool, strict=draw(st.sampled_from([None, True, False]))) for tool in request.tools
    )
    choice = draw(st.sampled_from([None, ToolChoice(), FORCED, NAMED, ToolChoice(mode="none")]))
    options = draw(st.sampled_from([{}, {"openai_chat": {"logprobs": True, "top_logprobs": 0}}]))
    return replace(
        request,
        tools=tools,
        tool_choice=choice,
        reasoning_effort=draw(st.none() | st.sampled_from([*EFFORTS, "ultra"])),
        thinking_budget=draw(st.none() | st.sampled_from([-1, 0, 1, 2048, 100_000])),
        provider_options=options,
    )


@given(demanding_requests())
def test_a_neutral_profile_changes_nothing(request):
    """Where no limit is known, the very same request comes back."""
    losses = WarningList()

    assert adjust_settings(request, Profile(), losses) is request
    assert losses.warnings == []


@settings(max_examples=examples(50))
@given(demanding_requests(), profiles)
def test_no_change_without_a_warning(request, profile):
    """The same object comes back, or a warning says where it differs."""
    clamped, told = told_by(request, profile)

    assert bool(told) == (clamped is not request)
    assert all(path for _, path in told)


@settings(max_examples=examples(50))
@given(demanding_requests(), profiles)
def test_clamping_twice_changes_nothing_more(request, profile):
    """What came out goes through untouched."""
    clamped, _ = told_by(request, profile)
    again, told = told_by(clamped, profile)

    assert again is clamped
    assert told == []


@settings(max_examples=examples(50))
@given(demanding_requests(), profiles)
def test_input_is_not_changed(request, profile):
    """The caller's request stays as it was."""
    before = msgspec.json.encode(request)
    told_by(request, profile)

    assert msgspec.json.encode(request) == before


@settings(max_examples=examples(50))
@given(demanding_requests(), profiles)
def test_what_comes_out_fits(request, profile):
    """Nothing goes out that the profile refuses outright."""
    clamped, _ = told_by(request, profile)

    if profile.tools is False:
        assert not clamped.tools
    if profile.sampling is False:
        assert (clamped.temperature, clamped.top_p, clamped.top_k) == (None, None, None)
    if profile.thinking is False:
        assert (clamped.reasoning_effort, clamped.thinking_budget) == (None, None)
    if profile.stop_sequences is not None:
        assert len(clamped.stop_sequences or ()) <= profile.stop_sequences
    if profile.tool_choice_modes is not None and clamped.tool_choice is not None:
        assert clamped.tool_choice.mode in profile.tool_choice_modes
    if profile.max_output_tokens is not None and clamped.max_tokens is not None:
        assert clamped.max_tokens <= profile.max_output_tokens


@settings(max_examples=examples(50))
@given(demanding_requests(), profiles)
def test_a_rule_whose_fields_are_not_said_has_nothing_to_do(request, profile):
    """Running each of them gives the same as running those that are about something said."""
    losses = WarningList()
    narrowed = request
    for rule, _ in RULES:
        narrowed = rule(narrowed, profile, losses)
    clamped, told = told_by(request, profile)

    assert narrowed == clamped
    assert [(warning.code, warning.path) for warning in losses.warnings] == told


def test_rules_are_named_once():
    """Each rule runs once, says what it is for, and is about fields that there are."""
    rules = [rule for rule, _ in RULES]

    assert len(rules) == len(set(rules))
    assert all(rule.__doc__ for rule in rules)
    assert {field for _, about in RULES for field in about} <= {
        *Request.__struct_fields__,
        "logprobs",  # a setting, though an option of the dialect
    }


# Settings.


def test_no_temperature_while_thinking():
    """A model that thinks takes no temperature: it goes, with a warning (field bug 43)."""
    profile = Profile(rejected_while_thinking=("temperature", "top_p"))
    request = Request(temperature=0.2, top_p=0.5, seed=7, reasoning_effort="low")

    clamped, told = told_by(request, profile)

    assert clamped == Request(seed=7, reasoning_effort="low")
    assert told == [("temperature_dropped", "temperature"), ("top_p_dropped", "top_p")]
    awake = replace(request, reasoning_effort="none")
    assert told_by(awake, profile)[0] is awake


def test_zero_is_sent_as_a_value():
    """Zeros survive where they are taken, and are told of where they are not (field bug 76)."""
    zeros = Request(temperature=0, top_p=0.0, top_k=0, seed=0, max_tokens=0, stop_sequences=())
    generous = Profile(max_output_tokens=9, stop_sequences=1, max_temperature=1)

    assert told_by(zeros, generous) == (zeros, [])
    assert [code for code, _ in told_by(zeros, Profile(sampling=False))[1]] == [
        "temperature_dropped",
        "top_p_dropped",
        "top_k_dropped",
    ]


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, False),
        ({"anthropic_messages": {"version": "2023-06-01"}}, True),
        ({"anthropic_messages": {"version": "2026-10-21"}}, False),
        ({"openai_chat": {"version": "2023-06-01"}}, False),
    ],
)
def test_sampling_depends_on_the_version(options, kept):
    """Sampling stays only in a version of the API that has it, which the request may name."""
    profile = Profile(
        dialect="anthropic_messages",
        api_version="2026-10-21",
        sampling_versions=("2023-06-01",),
    )
    request = Request(temperature=0.5, provider_options=options)

    assert (told_by(request, profile)[0] is request) == kept


CLAUDE = Profile(
    dialect="anthropic_messages",
    api_version="2026-10-21",
    sampling=True,
    sampling_versions=("2023-06-01",),
)


@pytest.mark.parametrize("setting", ["temperature", "top_p", "top_k"])
def test_the_version_that_has_sampling_is_used(setting):
    """Where the model is known to have one, and the caller did not choose."""
    options = {"anthropic_messages": {"betas": ["x"]}}
    request = Request(**{setting: 0}, provider_options=options)
    adjusted, codes = told_by(request, CLAUDE)

    assert getattr(adjusted, setting) == 0
    assert codes == [("api_version_chosen", setting)]
    assert adjusted.provider_options["anthropic_messages"] == {
        "betas": ["x"],
        "version": "2023-06-01",
    }


def test_no_other_version_is_used_without_need():
    """A value without effect needs none, nor does one that is dropped while the model thinks."""
    assert told_by(Request(temperature=1), CLAUDE)[1] == [("temperature_implied", "temperature")]
    thinks = replace(CLAUDE, rejected_while_thinking=("temperature",), thinks_by_default=True)
    adjusted, codes = told_by(Request(temperature=0.5), thinks)
    assert codes == [("temperature_dropped", "temperature")]
    assert adjusted.provider_options == {}


@pytest.mark.parametrize("stream", [False, True])
def test_temperature_reaches_claude(stream):
    """In the header and in the body; newer models have none."""
    for model, is_sent in (("claude-haiku-4-5", True), ("claude-opus-5", False)):
        profile = profile_for("anthropic_messages", model, "anthropic")
        request = Request(model=model, messages="hi", temperature=0.5)
        call = dialects.get("anthropic_messages").encode_request(request, profile, stream=stream)
        version = "2023-06-01" if is_sent else "2026-10-21"
        assert call.headers["anthropic-version"] == version
        assert ("temperature" in call.body) == is_sent


@pytest.mark.parametrize(
    ("fields", "settings", "code"),
    [
        ({"sampling": False}, {"temperature": 1}, "temperature_implied"),
        ({"sampling": False}, {"top_p": 1.0}, "top_p_implied"),
        ({"penalties": False}, {"frequency_penalty": 0}, "frequency_penalty_implied"),
        ({"penalties": False}, {"presence_penalty": 0.5}, "presence_penalty_dropped"),
        ({"seed": False}, {"seed": 0}, "seed_dropped"),
        ({"verbosity": False}, {"verbosity": "low"}, "verbosity_dropped"),
        ({"stop_sequences": 0}, {"stop_sequences": ("a",)}, "stop_sequences_dropped"),
    ],
)
def test_a_setting_that_is_not_taken(fields, settings, code):
    """It goes; what the target does anyway is only noted."""
    clamped, told = told_by(Request(**settings), Profile(**fields))

    assert clamped == Request()
    assert told == [(code, next(iter(settings)))]


def test_logprobs_among_the_options():
    """Probabilities are asked for in the dialect's words; other options stay."""
    options = {"logprobs": True, "top_logprobs": 0, "store": False}
    request = Request(provider_options={"openai_chat": options, "gemini_generate": options})

    clamped, told = told_by(request, Profile(dialect="openai_chat", logprobs=False))

    assert clamped.provider_options == {"openai_chat": {"store": False}, "gemini_generate": options}
    assert told == [("logprobs_dropped", "provider_options.openai_chat")]


def test_logprobs_among_what_is_included():
    """Responses asks for them in a list, of which the rest stays."""
    include = ["reasoning.encrypted_content", "message.output_text.logprobs"]
    request = Request(
        provider="acme", provider_options={"acme": {"include": include}}, reasoning_effort="low"
    )

    clamped, _ = told_by(request, Profile(rejected_while_thinking=("logprobs",)))

    assert clamped.provider_options == {"acme": {"include": ["reasoning.encrypted_content"]}}
    assert len(include) == 2


def test_logprobs_that_are_not_asked_for():
    """`logprobs: false` asks for nothing."""
    request = Request(provider_options={"openai_chat": {"logprobs": False, "top_logprobs": None}})

    assert told_by(request, Profile(dialect="openai_chat", logprobs=False))[0] is request


# Lengths.


def test_max_tokens_are_lowered():
    """More than the model can give is not asked for."""
    clamped, told = told_by(Request(max_tokens=200_000), Profile(max_output_tokens=128_000))

    assert clamped.max_tokens == 128_000
    assert told == [("max_tokens_lowered", "max_tokens")]


def test_stop_sequences_are_cut():
    """The first ones stay, and the path names the first that went."""
    request = Request(stop_sequences=("a", "b", "c"))

    clamped, told = told_by(request, Profile(stop_sequences=2))

    assert clamped.stop_sequences == ("a", "b")
    assert told == [("stop_sequences_cut", "stop_sequences[2]")]


def test_temperature_is_brought_into_scale():
    """Claude's temperatures end at 1."""
    clamped, told = told_by(Request(temperature=1.5), Profile(max_temperature=1))

    assert clamped.temperature == 1
    assert told == [("temperature_lowered", "temperature")]


# Tools.


@pytest.mark.parametrize("choice", [FORCED, NAMED])
def test_forced_choice_is_relaxed(choice):
    """A model that refuses to be forced chooses itself; strict clients get an error."""
    request = Request(tools=(TOOL,), tool_choice=choice)
    losses = WarningList()

    clamped = adjust_settings(request, Profile(tool_choice_modes=("auto", "none")), losses)

    assert clamped == Request(tools=(TOOL,), tool_choice=ToolChoice())
    assert losses.warnings[0].path == "tool_choice"
    with pytest.raises(UnsupportedToolChoiceError, match="tool_choice_relaxed"):
        check_losses(losses.warnings, request, "strict")


def test_a_forced_choice_while_thinking_is_refused_before_sending():
    """Claude cannot be forced while it thinks to a budget: that is said before it is sent.

    Field bug 24.
    """
    profile = Profile(
        thinking_modes=("adaptive", "enabled"), thinking_tool_choice={"enabled": ("auto", "none")}
    )
    request = Request(tools=(TOOL,), tool_choice=FORCED, thinking_budget=2048)

    clamped, told = told_by(request, profile)

    assert clamped.tool_choice == ToolChoice()
    assert told == [("tool_choice_relaxed", "tool_choice")]
    adaptive = replace(request, thinking_budget=None, reasoning_effort="high")
    assert told_by(adaptive, profile)[0] is adaptive


def test_a_choice_keeps_its_list():
    """The tools that may be called stay the same."""
    choice = ToolChoice(mode="required", allowed=("look",))
    request = Request(tools=(TOOL,), tool_choice=choice)

    clamped, _ = told_by(request, Profile(tool_choice_modes=("auto",)))

    assert clamped.tool_choice == ToolChoice(allowed=("look",))


def test_a_choice_that_cannot_be_said_at_all():
    """Where not even `auto` is known, nothing is said."""
    request = Request(tools=(TOOL,), tool_choice=FORCED)

    assert told_by(request, Profile(tool_choice_modes=()))[0].tool_choice is None


def test_no_tools_where_none_cannot_be_said():
    """A model that does not know `none` is not shown the tools."""
    request = Request(tools=(TOOL,), tool_choice=ToolChoice(mode="none"), parallel_tool_calls=True)

    clamped, told = told_by(request, Profile(tool_choice_modes=("auto",)))

    assert clamped == Request()
    assert told == [("tools_withheld", "tool_choice")]


@pytest.mark.parametrize(
    ("choice", "code"), [(ToolChoice(), "tool_choice_implied"), (FORCED, "tool_choice_dropped")]
)
def test_a_choice_among_no_tools(choice, code):
    """Chat refuses a choice without tools."""
    request = Request(tool_choice=choice, parallel_tool_calls=True)

    clamped, told = told_by(request, Profile(tool_choice_without_tools=False))

    assert clamped == Request()
    assert [found for found, _ in told] == [code, "parallel_tool_calls_implied"]


def test_tools_are_dropped_with_their_choice():
    """A model without tools gets none, and one warning says so."""
    request = Request(tools=(TOOL,), tool_choice=FORCED, parallel_tool_calls=False)

    assert told_by(request, Profile(tools=False)) == (Request(), [("tools_dropped", "tools")])


@pytest.mark.parametrize(
    ("asked", "code"),
    [(True, "parallel_tool_calls_dropped"), (False, "parallel_tool_calls_implied")],
)
def test_parallel_calls(asked, code):
    """Where calls come one at a time, only the wish for more is a loss."""
    clamped, told = told_by(Request(parallel_tool_calls=asked), Profile(parallel_tool_calls=False))

    assert clamped.parallel_tool_calls is None
    assert told == [(code, "parallel_tool_calls")]


def test_strict_tools():
    """The mark goes from each tool that has it; the other tools stay the same objects."""
    builtin = BuiltinTool(dialect="openai_chat", data={})
    tools = (replace(TOOL, strict=True), TOOL, replace(TOOL, strict=False), builtin)

    clamped, told = told_by(Request(tools=tools), Profile(strict_tools=False))

    assert clamped.tools == (TOOL, TOOL, TOOL, builtin)
    assert clamped.tools[1] is TOOL
    assert told == [("strict_dropped", "tools[0].strict"), ("strict_implied", "tools[2].strict")]


@pytest.mark.parametrize("name", dialects.names())
def test_tools_that_lose_strict_are_told_once(name):
    """One warning names them, however many there are."""
    tools = tuple(replace(TOOL, name=f"tool_{i}", strict=True) for i in range(3))
    request = Request(model="m", messages="Hi", tools=tools)
    wire = dialects.get(name).encode_request(request, Profile(strict_tools=False))
    (warning,) = [each for each in wire.warnings if each.code == "strict_dropped"]

    assert (warning.path, "tool_0, tool_1, tool_2" in warning.message) == ("tools[0].strict", True)


def test_too_many_strict_tools():
    """Claude takes twenty; the others lose the mark."""
    tools = tuple(ToolDefinition(name=f"t{i}", strict=True) for i in range(22))

    clamped, told = told_by(Request(tools=tools), Profile(max_strict_tools=20))

    assert [tool.strict for tool in clamped.tools] == [True] * 20 + [None] * 2
    assert [path for _, path in told] == ["tools[20].strict"]


# Content.


@pytest.mark.parametrize(
    ("ways", "fields", "mode"),
    [
        (None, {}, "native"),
        (("native", "tool"), {}, "native"),
        (("tool", "prompt"), {}, "tool"),
        (("prompt",), {}, "prompt"),
        (("native", "tool"), {"structured_output_with_tools": False}, "tool"),
    ],
)
def test_structured_output(ways, fields, mode):
    """The best way that the model supports; the settings stay."""
    profile = Profile(structured_output=ways, **fields)
    request = Request(response_format=SCHEMA, tools=(TOOL,))

    assert told_by(request, profile) == (request, [])
    assert structured_output_mode(request, profile) == mode


def test_no_way_to_keep_to_a_schema():
    """Then the schema goes, and that is a loss; plain JSON is not concerned."""
    profile = Profile(structured_output=())
    plain = Request(response_format=ResponseFormat(type="json"))

    clamped, told = told_by(Request(response_format=SCHEMA), profile)

    assert clamped.response_format is None
    assert told == [("response_format_dropped", "response_format")]
    assert told_by(plain, profile)[0] is plain
    assert structured_output_mode(plain, profile) is None


def test_strict_clients_get_every_loss_at_once():
    """One error lists all that a target cannot say."""
    request = Request(temperature=0.5, seed=7, reasoning_effort="low")
    losses = WarningList()
    adjust_settings(request, Profile(sampling=False, seed=False, thinking=False), losses)

    with pytest.raises(UnsupportedError) as caught:
        check_losses(losses.warnings, request, "strict")

    for code in ("temperature_dropped", "seed_dropped", "reasoning_effort_dropped"):
        assert code in caught.value.message
