"""What a tool choice forbids stays forbidden in every round, in every mode."""

import pytest

from interlingua.api.objects.functions import generate_object
from interlingua.api.tools.tool import tool
from interlingua.simulator import text, tool_call
from interlingua.spec.content import ToolResult
from interlingua.spec.request import ToolChoice
from support.runs import MODES, named, run_in
from support.simulated import DIALECTS, run, simulated
from support.warning_codes import codes

every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))
every_mode = pytest.mark.parametrize("mode", MODES)


def make_tools(ran):
    @tool
    def look() -> str:
        """Look outside."""
        ran.append("look")
        return "rain"

    @tool
    def erase() -> str:
        """Erase everything."""
        ran.append("erase")
        return "gone"

    return [look, erase]


def results_of(result):
    return [
        part
        for message in result.messages
        for part in message.content
        if isinstance(part, ToolResult)
    ]


def tool_lists(peer):
    """The tools on the wire, request by request."""
    bodies = [exchange.call.body for exchange in peer.app.script.received]
    return [body.get("tools") or body.get("toolConfig", {}).get("tools") for body in bodies]


@every_provider
@every_mode
@pytest.mark.parametrize("kind", ["auto", "required"])
def test_allowed_tools_bind_every_round(provider, mode, kind):
    """A call outside of them is answered as unknown and not run; the tools stay the same."""
    ran = []
    choice = ToolChoice(mode=kind, allowed=("look",))
    answers = [tool_call("look") + tool_call("erase"), tool_call("erase"), text("done")]
    with simulated(*answers) as peer:
        result = run_in(
            mode, peer, provider, tools=make_tools(ran), tool_choice=choice, max_tool_rounds=3
        )
        lists = tool_lists(peer)
        asked = [request.tool_choice for request in peer.app.script.requests]

    assert ran == ["look"]
    assert result.text.endswith("done")
    refused = [each for each in results_of(result) if each.is_error]
    assert len(refused) == 2
    assert all("Unknown tool 'erase'. Available tools: look" in each.content for each in refused)
    assert len(lists) == 3
    assert lists[0] == lists[1] == lists[2]
    if provider in ("anthropic", "bedrock_converse"):  # they have no such choice
        assert "look" in str(lists[0])  # only the allowed tools are sent
        assert "erase" not in str(lists[0])
        assert "allowed_tools_narrowed" in codes(result)
    else:
        assert [each.allowed for each in asked[1:]] == [("look",)] * 2
    assert {each.mode for each in asked[1:] if each is not None} <= {"auto"}


@every_provider
@every_mode
def test_no_tool_runs_under_none(provider, mode):
    """A call under `none` is answered as unknown, in the first round and later."""
    ran = []
    with simulated(tool_call("look"), tool_call("erase"), text("done")) as peer:
        result = run_in(
            mode, peer, provider, tools=make_tools(ran), tool_choice="none", max_tool_rounds=3
        )
        asked = [request.tool_choice for request in peer.app.script.requests]
        lists = tool_lists(peer)

    assert ran == []
    assert result.text.endswith("done")
    assert [each.is_error for each in results_of(result)] == [True, True]
    if provider == "bedrock_converse":  # it has no choice `none`: no tools are sent
        assert lists == [None] * 3
        assert "tools_withheld" in codes(result)
    else:
        assert [each.mode for each in asked] == ["none"] * 3


@every_provider
@pytest.mark.parametrize("choice", ["none", ToolChoice(allowed=("look",))])
def test_an_object_is_given_under_a_restriction(provider, choice):
    """The tool that takes the object is no tool of the caller: it may be called."""
    ran = []
    profile = {"structured_output": ("tool",)}
    answers = [tool_call("erase"), tool_call("answer", n=1)]
    with simulated(*answers, profile=profile) as peer:
        result = run(
            peer,
            lambda client: generate_object(
                named(provider),
                "?",
                schema={"type": "object", "properties": {"n": {"type": "integer"}}},
                tools=make_tools(ran),
                tool_choice=choice,
                max_tool_rounds=3,
                client=client,
            ),
        )
        lists = tool_lists(peer)

    assert ran == []
    assert result.output == {"n": 1}
    assert lists[0] == lists[1]
