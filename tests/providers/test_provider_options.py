"""Safe 8: provider options add to a request; what is unknown in them is told."""

import pytest

from interlingua.providers.adapter import HttpAdapter
from interlingua.spec.errors import UnsupportedToolChoiceError
from interlingua.spec.request import Request, ToolChoice, ToolDefinition
from support.simulated import DIALECTS, MODELS

every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))
BUILTIN = {
    "openai": {"type": "web_search"},
    "openai_compatible": {"type": "web_search"},
    "anthropic": {"type": "web_search_20260318", "name": "web_search"},
    "gemini": {"googleSearch": {}},
    "bedrock_converse": {"systemTool": {"name": "nova_grounding"}},
}
TOOL = ToolDefinition(name="look", parameters={"type": "object", "properties": {}})


def with_tools(provider, *tools):
    """The option or the field of a body that has these tools."""
    field = {"tools": list(tools)}
    return {"toolConfig": field} if provider == "bedrock_converse" else field


def tools_in(provider, body):
    return (body["toolConfig"] if provider == "bedrock_converse" else body)["tools"]


def dry_run(provider, *, adapter_options=None, stream=False, **fields):
    settings = {"options": adapter_options} if adapter_options else {}
    adapter = HttpAdapter(provider, "k", base_url="https://host.test/v1", **settings)
    request = Request(model=MODELS[provider], messages="hi", provider=provider, **fields)
    return adapter.dry_run(request, stream=stream)


@every_provider
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("by", ["provider", "dialect"])
def test_tools_among_the_options_are_added(provider, stream, by):
    """To `tools=`, and to the tools of the adapter's own options."""
    name = provider if by == "provider" else DIALECTS[provider]
    more = {"type": "house_tool"}
    call = dry_run(
        provider,
        stream=stream,
        tools=[TOOL],
        adapter_options=with_tools(provider, more),
        provider_options={name: with_tools(provider, BUILTIN[provider]) | {"auto_cache": False}},
    )

    first, *others = tools_in(provider, call.body)
    assert "look" in str(first)
    assert others == [more, BUILTIN[provider]]
    assert call.warnings == ()


@every_provider
def test_tools_among_the_options_alone_are_the_tools(provider):
    """A choice among them is a choice."""
    options = {provider: with_tools(provider, BUILTIN[provider]) | {"auto_cache": False}}
    call = dry_run(provider, tool_choice=ToolChoice(mode="required"), provider_options=options)

    assert tools_in(provider, call.body) == [BUILTIN[provider]]
    chosen = {**call.body, **call.body.get("toolConfig", {})}
    assert {"tool_choice", "toolChoice", "functionCallingConfig"} & chosen.keys()


@every_provider
def test_a_misspelt_provider_is_told_the_right_name(provider):
    """Its options are not sent; the warning has the right name."""
    call = dry_run(provider, provider_options={f"{provider}s": {"metadata": {}}})

    (warning,) = call.warnings
    assert warning.code == "options_unknown"
    assert warning.path == f"provider_options.{provider}s"
    assert f"did you mean {provider!r}?" in warning.message


def test_options_for_other_providers_are_no_mistake():
    """A request may go to any of several."""
    assert dry_run("openai", provider_options={"anthropic": {"betas": ["x"]}}).warnings == ()


@pytest.mark.parametrize(
    ("provider", "name", "meant"),
    [
        ("openai", "service_teir", "service_tier"),
        ("openai_compatible", "logit_bais", "logit_bias"),
        ("anthropic", "contianer", "container"),
        ("gemini", "safetySetings", "safetySettings"),
        ("bedrock_converse", "guardrailConfg", "guardrailConfig"),
    ],
)
def test_a_misspelt_option_is_sent_with_a_note(provider, name, meant):
    """It is sent, because it may be new, with a note."""
    call = dry_run(provider, provider_options={provider: {name: "x"}})

    (warning,) = call.warnings
    assert call.body[name] == "x"
    assert (warning.code, warning.path) == (
        "option_unknown",
        f"provider_options.{DIALECTS[provider]}.{name}",
    )
    assert f"did you mean {meant!r}?" in warning.message


@pytest.mark.parametrize("name", ["betas", "beta_headers", "beta_features"])
@pytest.mark.parametrize(("flags", "header"), [("one-flag", "one-flag"), (["a", "b"], "a,b")])
def test_a_string_is_one_beta_flag(name, flags, header):
    """A string is one flag, and no name of theirs is sent in the body."""
    call = dry_run("anthropic", provider_options={"anthropic": {name: flags}})

    assert call.headers["anthropic-beta"] == header
    assert name not in call.body
    assert call.warnings == ()


@every_provider
@pytest.mark.parametrize("mode", ["auto", "none"])
def test_a_choice_without_tools_is_omitted(provider, mode):
    """With a note: there is nothing to choose from."""
    call = dry_run(provider, tool_choice=ToolChoice(mode=mode))

    assert not {"tool_choice", "toolConfig"} & call.body.keys()
    assert [warning.code for warning in call.warnings] == ["tool_choice_implied"]


@every_provider
def test_a_forced_choice_without_tools_is_refused(provider):
    """Unless the caller accepts the loss: it is what the turn asks for."""
    choice = ToolChoice(mode="required")
    with pytest.raises(UnsupportedToolChoiceError, match="needs tools"):
        dry_run(provider, tool_choice=choice)

    call = dry_run(provider, tool_choice=choice, on_loss="warn")
    assert [warning.code for warning in call.warnings] == ["tool_choice_dropped"]
    assert not {"tool_choice", "toolConfig"} & call.body.keys()
