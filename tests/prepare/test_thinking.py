"""Efforts, budgets and modes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from interlingua.prepare.thinking import (
    EFFORT_BUDGETS,
    EFFORTS,
    budget_below_max_tokens,
    budget_to_effort,
    drop_thinking,
    effort_to_budget,
    is_thinking,
    limit_budget,
    nearest_effort,
    thinking_mode,
    tools_before_thinking,
    zero_budget,
)
from interlingua.spec.contracts import Profile
from interlingua.spec.request import Request, ToolDefinition
from interlingua.spec.warnings import WarningList

efforts = st.sampled_from(EFFORTS)
some_efforts = st.lists(efforts, unique=True).map(tuple)
TOOL = ToolDefinition(name="look")


def run(rule, profile, **settings):
    """The request a rule makes of these settings, and its warnings as code and path."""
    losses = WarningList()
    request = rule(Request(**settings), profile, losses)
    return request, [(warning.code, warning.path) for warning in losses.warnings]


@given(efforts, some_efforts)
def test_the_effort_sent_is_a_known_one(effort, known):
    """Whatever is asked, only a known effort or none goes out, and a change is told."""
    request, told = run(nearest_effort, Profile(reasoning_efforts=known), reasoning_effort=effort)

    assert request.reasoning_effort in (*known, None)
    assert bool(told) == (effort not in known)
    if effort != "none" and effort not in known:
        assert request.reasoning_effort != "none"


@given(efforts, some_efforts)
def test_no_known_effort_is_nearer(effort, known):
    """The effort sent is as near as any, and the higher of two."""
    sent = run(nearest_effort, Profile(reasoning_efforts=known), reasoning_effort=effort)[0]
    rank = EFFORTS.index
    if sent.reasoning_effort is None or effort in known:
        return
    distance = abs(rank(sent.reasoning_effort) - rank(effort))

    for other in set(known) - {"none", sent.reasoning_effort}:
        away = abs(rank(other) - rank(effort))
        assert away > distance or (away == distance and rank(other) < rank(sent.reasoning_effort))


@pytest.mark.parametrize(
    ("effort", "known", "sent", "code"),
    [
        ("xhigh", ("low", "medium", "high", "max"), "max", "effort_raised"),  # Opus 4.6
        ("minimal", ("low", "medium", "high"), "low", "effort_raised"),  # Gemini 3.7
        ("max", ("low", "medium", "high"), "high", "effort_lowered"),  # Gemini
        ("minimal", ("none", "low", "max"), "low", "effort_raised"),  # GPT-5.6
        ("none", ("low", "medium", "high"), "low", "effort_raised"),  # GPT-6.1
        ("medium", ("low", "high"), "high", "effort_raised"),
    ],
)
def test_efforts_are_clamped(effort, known, sent, code):
    """An effort a model does not know becomes the nearest, with a warning (field bug 43)."""
    request, told = run(nearest_effort, Profile(reasoning_efforts=known), reasoning_effort=effort)

    assert request.reasoning_effort == sent
    assert told == [(code, "reasoning_effort")]


def test_a_map_beats_the_nearest():
    """DeepSeek documents what each unknown effort stands for."""
    profile = Profile(
        reasoning_efforts=("low", "high", "max"), effort_map={"xhigh": "high", "ultra": "max"}
    )

    assert run(nearest_effort, profile, reasoning_effort="xhigh")[0].reasoning_effort == "high"
    assert run(nearest_effort, profile, reasoning_effort="ultra")[0].reasoning_effort == "max"
    assert run(nearest_effort, profile, reasoning_effort="huge") == (
        Request(),
        [("reasoning_effort_dropped", "reasoning_effort")],
    )


@pytest.mark.parametrize("mode", ["disabled", "between_tools"])
def test_none_can_be_said_as_a_mode(mode):
    """Where thinking is turned off by a mode, the effort `none` stays for the encoder."""
    profile = Profile(reasoning_efforts=("low",), thinking_modes=("adaptive", mode))
    request, told = run(nearest_effort, profile, reasoning_effort="none")

    assert (request.reasoning_effort, told) == ("none", [])
    assert thinking_mode(request, profile) == mode


@pytest.mark.parametrize(
    ("settings", "modes", "mode"),
    [
        ({}, ("adaptive", "disabled"), None),
        ({"reasoning_effort": "low"}, ("adaptive", "enabled"), "adaptive"),
        ({"reasoning_effort": "low"}, ("enabled", "disabled"), None),
        ({"thinking_budget": 2048}, ("adaptive", "enabled"), "enabled"),
        ({"thinking_budget": -1}, ("enabled",), "enabled"),
        ({"thinking_budget": 0}, ("enabled", "disabled"), "disabled"),
        ({"reasoning_effort": "none"}, ("adaptive",), None),
        ({"reasoning_effort": "none"}, ("adaptive", "between_tools"), "between_tools"),
        ({"reasoning_effort": "low"}, None, None),
    ],
)
def test_thinking_mode(settings, modes, mode):
    """The mode is what the request asks for, in the words the model knows."""
    assert thinking_mode(Request(**settings), Profile(thinking_modes=modes)) == mode


def test_a_mode_among_the_options_counts():
    """A caller who speaks the dialect's own words is understood, by that dialect alone."""
    request = Request(provider_options={"openai_chat": {"thinking": {"type": "disabled"}}})
    profile = Profile(dialect="openai_chat", thinks_by_default=True)

    assert thinking_mode(request, profile) == "disabled"
    assert not is_thinking(request, profile)
    assert is_thinking(request, replace(profile, dialect="gemini_generate"))


@pytest.mark.parametrize(
    ("settings", "fields", "expected"),
    [
        ({}, {}, False),
        ({}, {"thinks_by_default": True}, True),
        ({"reasoning_effort": "none"}, {"thinks_by_default": True}, False),
        ({"reasoning_effort": "low"}, {}, True),
        ({"thinking_budget": 0}, {"thinks_by_default": True}, False),
        ({"thinking_budget": 1024}, {}, True),
        ({"reasoning_effort": "low"}, {"thinking": False}, False),
        # Opus 4.5 takes an effort without thinking
        ({"reasoning_effort": "low"}, {"thinking_modes": ("enabled", "disabled")}, False),
        (
            {"reasoning_effort": "none"},
            {"thinking_modes": ("adaptive",), "reasoning_efforts": ("none",)}
            | {"thinks_by_default": True},
            False,
        ),
        # a model that cannot be told not to
        (
            {"reasoning_effort": "none"},
            {"thinking_modes": ("adaptive",), "thinks_by_default": True},
            True,
        ),
    ],
)
def test_is_thinking(settings, fields, expected):
    """Whether a model thinks depends on what is asked and on what it does by default."""
    assert is_thinking(Request(**settings), Profile(**fields)) is expected


@pytest.mark.parametrize(
    ("settings", "codes"),
    [
        ({"reasoning_effort": "high"}, ["reasoning_effort_dropped"]),
        ({"reasoning_effort": "none"}, ["reasoning_effort_implied"]),
        ({"thinking_budget": 0}, ["thinking_budget_implied"]),
        (
            {"reasoning_effort": "none", "thinking_budget": 9},
            ["reasoning_effort_dropped", "thinking_budget_dropped"],
        ),
    ],
)
def test_a_model_that_cannot_think(settings, codes):
    """Effort and budget go; to ask for no thinking loses nothing."""
    request, told = run(drop_thinking, Profile(thinking=False), **settings)

    assert request == Request()
    assert [code for code, _ in told] == codes


def test_zero_budget():
    """A budget of nothing is no thinking, except where 0 is itself a budget."""
    profile = Profile(thinking_modes=("adaptive", "disabled"))
    assert run(zero_budget, profile, thinking_budget=0) == (
        Request(reasoning_effort="none"),
        [("zero_budget_as_effort", "thinking_budget")],
    )

    same = Request(thinking_budget=0)
    assert run(zero_budget, replace(profile, dynamic_budget=True), thinking_budget=0)[0] == same
    assert run(zero_budget, Profile(), thinking_budget=0)[0] == same


@given(st.integers(1, 200_000), some_efforts)
def test_a_budget_becomes_no_more_effort_than_it_allows(budget, known):
    """A known effort is chosen, and it costs no more than the budget if any does so."""
    profile = Profile(thinking_modes=("adaptive",), reasoning_efforts=known)
    request, told = run(budget_to_effort, profile, thinking_budget=budget)
    costs = [EFFORT_BUDGETS[name] for name in known if name != "none"] or EFFORT_BUDGETS.values()

    assert request.thinking_budget is None
    assert told == [("budget_as_effort", "thinking_budget")]
    assert EFFORT_BUDGETS[request.reasoning_effort] <= max(budget, min(costs))


@pytest.mark.parametrize(
    ("settings", "sent", "code"),
    [
        ({"thinking_budget": 10_000}, {"reasoning_effort": "medium"}, "budget_as_effort"),
        ({"thinking_budget": -1}, {}, "thinking_budget_implied"),
        (
            {"thinking_budget": 9, "reasoning_effort": "max"},
            {"reasoning_effort": "max"},
            "thinking_budget_dropped",
        ),
    ],
)
def test_budget_to_effort(settings, sent, code):
    """A model of efforts takes no budget; an effort that is given wins."""
    request, told = run(budget_to_effort, Profile(thinking_modes=("adaptive",)), **settings)

    assert request == Request(**sent)
    assert told == [(code, "thinking_budget")]


@pytest.mark.parametrize("modes", [None, ("enabled",), ("adaptive", "enabled")])
def test_a_budget_stays_where_it_is_taken(modes):
    """A model that takes budgets, or of which nothing is known, gets it."""
    assert run(budget_to_effort, Profile(thinking_modes=modes), thinking_budget=5) == (
        Request(thinking_budget=5),
        [],
    )


BUDGETS_ONLY = Profile(
    thinking_modes=("enabled",), reasoning_efforts=(), effort_budgets={"low": 1024, "high": 24576}
)


@pytest.mark.parametrize(
    ("settings", "sent", "code"),
    [
        ({"reasoning_effort": "low"}, {"thinking_budget": 1024}, "effort_as_budget"),
        ({"reasoning_effort": "ultra"}, {}, "reasoning_effort_dropped"),
        ({"reasoning_effort": "none"}, {"thinking_budget": 128}, "effort_raised"),
        (
            {"reasoning_effort": "low", "thinking_budget": 7},
            {"thinking_budget": 7},
            "reasoning_effort_dropped",
        ),
    ],
)
def test_effort_to_budget(settings, sent, code):
    """A model of budgets takes no effort; a budget that is given wins."""
    profile = replace(BUDGETS_ONLY, min_thinking_budget=128)
    request, told = run(effort_to_budget, profile, **settings)

    assert request == Request(**sent)
    assert told == [(code, "reasoning_effort")]


def test_an_effort_stays_where_it_is_taken():
    """`none` stays where thinking can be turned off, and any effort where efforts are known."""
    can_stop = replace(BUDGETS_ONLY, thinking_modes=("enabled", "disabled"))
    knows = replace(BUDGETS_ONLY, reasoning_efforts=("low",))

    assert run(effort_to_budget, can_stop, reasoning_effort="none")[1] == []
    assert run(effort_to_budget, knows, reasoning_effort="high")[1] == []


def test_tools_before_thinking():
    """GPT-6 on Chat calls tools only without thinking: it stops thinking."""
    profile = Profile(tools_while_thinking=False, thinks_by_default=True)
    request, told = run(tools_before_thinking, profile, tools=(TOOL,), thinking_budget=5)

    assert request == Request(tools=(TOOL,), reasoning_effort="none")
    assert told == [("thinking_off_for_tools", "reasoning_effort")]
    always = replace(profile, reasoning_efforts=("low",))
    assert run(tools_before_thinking, always, tools=(TOOL,)) == (
        Request(),
        [("tools_dropped", "tools")],
    )
    assert run(tools_before_thinking, profile, reasoning_effort="low")[1] == []
    assert run(tools_before_thinking, profile, tools=(TOOL,), reasoning_effort="none")[1] == []


@pytest.mark.parametrize(
    ("budget", "fields", "sent"),
    [
        (100, {"min_thinking_budget": 1024}, 1024),
        (-1, {"min_thinking_budget": 1024}, 1024),
        (-1, {"min_thinking_budget": 128, "dynamic_budget": True}, -1),
        (0, {"min_thinking_budget": 128, "thinking_modes": ("enabled",)}, 128),
        (0, {"min_thinking_budget": 512, "thinking_modes": ("enabled", "disabled")}, 0),
        (0, {"min_thinking_budget": 512}, 0),
        (99_999, {"max_thinking_budget": 24_576}, 24_576),
        (2048, {"min_thinking_budget": 1024, "max_thinking_budget": 4096}, 2048),
    ],
)
def test_limit_budget(budget, fields, sent):
    """A budget is brought into the model's range, and 0 and -1 keep their sense."""
    request, told = run(limit_budget, Profile(**fields), thinking_budget=budget)

    assert request.thinking_budget == sent
    assert bool(told) == (sent != budget)


CLAUDE = Profile(budget_below_max_tokens=True, min_thinking_budget=1024, max_output_tokens=64_000)


@given(st.integers(1024, 200_000), st.none() | st.integers(1, 64_000))
def test_an_answer_always_fits(budget, limit):
    """However small the limit and large the budget, the budget sent is below the limit.

    Field bug 44.
    """
    request, told = run(budget_below_max_tokens, CLAUDE, thinking_budget=budget, max_tokens=limit)
    sent = request.max_tokens or CLAUDE.max_output_tokens

    assert 1024 <= request.thinking_budget < sent
    assert bool(told) == (budget >= (limit or CLAUDE.max_output_tokens))


@pytest.mark.parametrize(
    ("settings", "sent", "codes"),
    [
        ((8000, 4000), (2000, 4000), ["thinking_budget_lowered"]),
        ((4096, 1500), (1024, 1500), ["thinking_budget_lowered"]),
        ((1024, 1000), (1024, 2024), ["max_tokens_raised"]),
        ((4096, 100), (1024, 1124), ["thinking_budget_lowered", "max_tokens_raised"]),
        ((64_000, None), (32_000, None), ["thinking_budget_lowered"]),
        ((4096, 0), (4096, 0), []),  # only fills the cache
    ],
)
def test_the_budget_gives_way_first(settings, sent, codes):
    """The limit is raised only where the least budget does not fit into it (field bug 44)."""
    budget, limit = settings
    request, told = run(budget_below_max_tokens, CLAUDE, thinking_budget=budget, max_tokens=limit)

    assert (request.thinking_budget, request.max_tokens) == sent
    assert [code for code, _ in told] == codes


def test_no_room_at_all():
    """Where not even the least budget fits the model, there is none."""
    profile = replace(CLAUDE, max_output_tokens=512)
    request, told = run(budget_below_max_tokens, profile, thinking_budget=2048, max_tokens=512)

    assert request.thinking_budget is None
    assert [code for code, _ in told] == ["thinking_budget_lowered", "thinking_budget_dropped"]
