"""Behaviours of providers through a client: what is sent, what is answered, what is shown."""

import asyncio
import contextlib

import pytest

from interlingua import sync
from interlingua.api.run.generate import generate, stream
from interlingua.api.session.session import Session
from interlingua.api.tools.tool import tool
from interlingua.client.attempt_log import AttemptLog
from interlingua.client.client import Client
from interlingua.client.middleware.balance import Balance
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.provider import Provider
from interlingua.simulator import error, results, text, tool_call
from interlingua.spec.behaviour import Behaviour, RetrySettings
from interlingua.spec.content import ToolResult
from interlingua.spec.errors import ConfigurationError, SDKError, ServerError
from interlingua.spec.events import Finish, StreamStart
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import FinishReason, Response, Usage
from interlingua.transport.canned import CannedReply, CannedTransport
from interlingua.wire.json_text import dumps
from support.runs import MODES, run_in
from support.simulated import DIALECTS, KEY, MODELS, adapters, run, simulated

every_provider = pytest.mark.parametrize("provider", sorted(DIALECTS))
every_mode = pytest.mark.parametrize("mode", MODES)

ADDENDUM = "Plan with TodoWrite first. Read a file before you Edit it."
ACTIVE = Behaviour(prompt_addendum=ADDENDUM)


@tool(name="TodoWrite")
def todo_write(todos: list[str]) -> str:
    """Write the list of steps."""
    return f"{len(todos)} steps"


@tool(name="Read")
def read_file(path: str, offset: int | None = None) -> str:
    """Read a file."""
    return f"{path} from {offset}"


@tool(name="Edit")
def edit_file(path: str, text: str) -> str:
    """Edit a file."""
    return f"{path}: {text}"


def docile(request):
    """A model that plans, and reads before it edits, only if its prompt says so."""
    prompts = [each.text for each in request.messages if each.role in ("system", "developer")]
    plan = [tool_call("Edit", {"path": "/test/file.txt", "text": "typo"})]
    if any(ADDENDUM in prompt for prompt in prompts):
        todo = tool_call("TodoWrite", {"todos": ["read", "edit", "check"]})
        plan = [todo, tool_call("Read", {"path": "/test/file.txt", "offset": None}), *plan]
    done = sum(message.role == "assistant" for message in request.messages)
    return plan[done] if done < len(plan) else text("It is done.")


def behaving(peer, provider, behaviour):
    """The same peer, whose client has this behaviour at one provider."""
    peer.client = Client(peer.client.calls.adapters, behaviours={provider: behaviour})
    return peer


def order(result):
    return [call.name for message in result.messages for call in message.tool_calls]


# What a behaviour changes in a run.


@every_provider
@every_mode
def test_a_behaviour_makes_the_model_plan_and_read_before_it_edits(provider, mode):
    """With the behaviour the model plans and reads before it edits; without it, it does not."""
    options = {"tools": [todo_write, read_file, edit_file], "max_tool_rounds": 5}
    with simulated(docile) as peer:
        behaving(peer, provider, ACTIVE)
        on = run_in(mode, peer, provider, "Fix the typo on line 3.", **options)
        peer.client = Client(adapters(peer.server.url))
        off = run_in(mode, peer, provider, "Fix the typo on line 3.", **options)

    assert order(on) == ["TodoWrite", "Read", "Edit"]
    assert order(off) == ["Edit"]
    for result in (on, off):
        assert not any(ADDENDUM in message.text for message in result.messages)


@every_provider
def test_a_strict_schema_with_optional_parameters_gives_the_function_no_null(provider):
    """The strict simulator accepts it, and the function gets no null that it did not ask for."""
    behaviour = Behaviour(strict_tools=True)
    script = (tool_call("Read", {"path": "/test.txt", "offset": None}), text("Read."))
    with simulated(*script) as peer:
        result = run_in("whole", behaving(peer, provider, behaviour), provider, tools=[read_file])

    assert result.steps[0].tool_results[0].content == "/test.txt from None"


# The addendum.


def test_a_swap_takes_the_addendum_along_once():
    """A history that goes from provider to provider has no addendum; each request has its own."""
    first, second = Behaviour(prompt_addendum="Of A."), Behaviour(prompt_addendum="Of B.")
    with simulated(text("Fine.")) as peer:
        client = Client(
            peer.client.calls.adapters, behaviours={"anthropic": first, "openai": second}
        )
        messages = [Message.system("Be kind."), Message.user("Hi.")]

        async def talk(_):
            history = messages
            for provider in ("anthropic", "openai", "anthropic", "gemini", "openai"):
                model = f"{provider}:{MODELS[provider]}"
                result = await generate(model, messages=history, client=client)
                history = [*result.messages, Message.user("Go on.")]
            return history

        history = run(peer, talk)
        prompts = [
            "".join(each.text for each in request.messages if each.role in ("system", "developer"))
            for request in peer.app.script.requests
        ]

    assert [prompt.count("Of A.") for prompt in prompts] == [1, 0, 1, 0, 0]
    assert [prompt.count("Of B.") for prompt in prompts] == [0, 1, 0, 0, 1]
    assert history[0] == Message.system("Be kind.")
    assert not any("Of " in message.text for message in history)


def test_a_session_that_swaps_has_the_addendum_of_each_provider(tmp_path):
    """Each turn has the one of its own provider; what is saved has none."""
    with simulated(text("Fine.")) as peer:
        client = Client(
            peer.client.calls.adapters,
            behaviours={
                "anthropic": Behaviour(prompt_addendum="Of A."),
                "openai": Behaviour(prompt_addendum="Of B.", default_model=MODELS["openai"]),
            },
            default_provider="openai",
        )

        async def talk(_):
            session = Session(f"anthropic:{MODELS['anthropic']}", system="Be kind.", client=client)
            await session.send("Hi.")
            session.swap(f"openai:{MODELS['openai']}")
            await session.send("Go on.")
            default = Session(None, client=client)
            result = await default.send("Hi.")
            session.save(tmp_path / "session.json")
            return result.response.message.metadata["chosen_because"]

        reason = run(peer, talk)
        prompts = [request.messages[0].text for request in peer.app.script.requests]

    assert prompts == ["Be kind.Of A.", "Be kind.Of B.", "Of B."]
    assert "Of " not in (tmp_path / "session.json").read_text(encoding="utf-8")
    assert "default_model of openai" in reason


def test_it_is_applied_once_per_request_and_sent_by_every_attempt():
    """Retries send the same bytes."""
    with simulated(error(503), error(503), text("Fine.")) as peer:
        retry = RetrySettings(max_retries=2, base_delay=0)
        behaving(peer, "openai", Behaviour(prompt_addendum=ADDENDUM, retry=retry))
        response = run(peer, lambda client: client.complete(peer.ask("openai")))
        bodies = [exchange.call.body for exchange in peer.app.script.received]

    assert response.text == "Fine."
    assert len(bodies) == 3
    assert bodies[0] == bodies[1] == bodies[2]


def test_middleware_sees_the_callers_request():
    """And a request that it sends elsewhere gets the behaviour of its new provider alone."""
    seen = []

    async def move(request, call_next):
        seen.append(request)
        return await call_next(Request(model=f"openai:{MODELS['openai']}", messages="Moved."))

    behaviours = {
        "anthropic": Behaviour(prompt_addendum="Of A."),
        "openai": Behaviour(prompt_addendum="Of B."),
    }
    with simulated(text("Fine.")) as peer:
        peer.client = Client(peer.client.calls.adapters, behaviours=behaviours, middleware=[move])
        response = run(peer, lambda client: client.complete(peer.ask("anthropic")))
        (request,) = peer.app.script.requests

    assert [message.text for message in seen[0].messages] == ["Weather in Oslo?"]
    assert "Of B." in request.messages[0].text
    assert "Of A." not in request.messages[0].text
    assert response.message.metadata["chosen_because"] == (
        f"a middleware changed the model from anthropic:{MODELS['anthropic']}"
    )


# Tools that are left out.


@every_provider
@every_mode
def test_a_call_of_a_tool_left_out_is_answered_as_unknown(provider, mode):
    """It is not run, although the caller has passed it."""
    ran = []

    @tool
    def hidden_thing() -> str:
        """Something else."""
        ran.append(1)
        return "ran"

    def answer(request):
        return text("I see.") if results(request) else tool_call("hidden_thing")

    behaviour = Behaviour(max_tools=1, core_tools=["Read"])
    with simulated(answer) as peer:
        behaving(peer, provider, behaviour)
        result = run_in(mode, peer, provider, tools=[hidden_thing, read_file], max_tool_rounds=2)
        sent = [[each.name for each in request.tools] for request in peer.app.script.requests]

    assert ran == []
    assert sent == [["Read"], ["Read"]]
    (answered,) = [
        part
        for message in result.messages
        for part in message.content
        if isinstance(part, ToolResult)
    ]
    assert answered.is_error
    assert "Unknown tool 'hidden_thing'. Available tools: Read" in str(answered.content)
    warnings = [each for each in result.warnings if each.code == "tools_over_limit"]
    assert "hidden_thing" in warnings[0].message


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_call_of_a_tool_left_out_is_not_run_by_a_run_that_resumes(is_streamed):
    """A run waits for the approval of one call; the other one is answered as unknown after it."""
    ran = []

    @tool
    def hidden_thing() -> str:
        """Something else."""
        ran.append("hidden")
        return "ran"

    @tool(name="Pay", needs_approval=True)
    def pay() -> str:
        """Pay."""
        ran.append("paid")
        return "paid"

    def answer(request):
        calls = tool_call("hidden_thing") + tool_call("Pay")
        return text("I see.") if results(request) else calls

    async def ask(client, **options):
        options |= {"tools": [hidden_thing, pay], "client": client, "max_tool_rounds": 2}
        model = f"openai:{MODELS['openai']}"
        if not is_streamed:
            return await generate(model, **options)
        events = stream(model, **options)
        assert [event async for event in events]
        return events.result()

    async def work(client):
        paused = await ask(client, prompt="?")
        (waiting,) = paused.pending_approvals
        return await ask(client, resume=paused, approvals={waiting.id: True})

    with simulated(answer) as peer:
        behaving(peer, "openai", Behaviour(max_tools=1, core_tools=["Pay"]))
        result = run(peer, work)

    assert ran == ["paid"]
    answered = [
        part for each in result.messages for part in each.content if isinstance(part, ToolResult)
    ]
    assert sorted(part.is_error for part in answered) == [False, True]
    assert "Unknown tool 'hidden_thing'" in str([part.content for part in answered])


class Loud(HttpAdapter):
    """An adapter with a `complete` of its own."""

    async def complete(self, request, *, strict=False):
        return await super().complete(request, strict=strict)


@pytest.mark.parametrize("kind", ["balance", "subclass"])
@pytest.mark.parametrize("mode", ["whole", "stream"])
def test_adapters_that_behave_by_themselves(kind, mode):
    """Several keys of one provider, and a subclass: it is applied once, and known to the run."""
    ran = []

    @tool
    def hidden_thing() -> str:
        """Something else."""
        ran.append(1)
        return "ran"

    def answer(request):
        return text("I see.") if results(request) else tool_call("hidden_thing")

    behaviour = Behaviour(prompt_addendum=ADDENDUM, max_tools=1, core_tools=["Read"])
    with simulated(answer) as peer:
        one = HttpAdapter("openai", KEY, base_url=peer.server.url)
        adapter = Balance(one, HttpAdapter("openai", "sk-two", base_url=peer.server.url))
        if kind == "subclass":
            adapter = Loud("openai", KEY, base_url=peer.server.url)
        peer.client = Client({"openai": adapter}, behaviours={"openai": behaviour})
        result = run_in(mode, peer, "openai", tools=[hidden_thing, read_file])
        (first, _) = peer.app.script.requests

    assert ran == []
    assert [each.name for each in first.tools] == ["Read"]
    assert sum(message.text.count(ADDENDUM) for message in first.messages) == 1
    assert [each.code for each in result.steps[0].warnings].count("tools_over_limit") == 1


def test_options_reach_the_selection():
    """Active skills and connectors are options of every function."""
    behaviour = Behaviour(max_tools=1)
    tools = [todo_write, read_file, edit_file]
    with simulated(text("Fine.")) as peer:
        behaving(peer, "openai", behaviour)
        run_in("whole", peer, "openai", "?", tools=tools, active_skills=["Edit"])
        run_in("stream", peer, "openai", "the file", tools=tools, active_connectors=("Read",))
        sent = [[each.name for each in request.tools] for request in peer.app.script.requests]

    assert sent == [["Edit"], ["Read"]]


# The first turn.


def test_the_first_turn_is_forced_once():
    """`required` until the model has answered, its own choice after that; in a run and later."""
    with simulated(tool_call("TodoWrite", {"todos": []}), text("Fine."), text("More.")) as peer:
        behaving(peer, "openai", Behaviour(force_first_turn=True))

        async def talk(client):
            model = f"openai:{MODELS['openai']}"
            first = await generate(model, "Plan.", tools=[todo_write], client=client)
            history = [*first.messages, Message.user("Go on.")]
            await generate(model, messages=history, tools=[todo_write], client=client)

        run(peer, talk)
        choices = [exchange.call.body.get("tool_choice") for exchange in peer.app.script.received]

    assert choices == ["required", None, None]


def test_it_gives_way_to_thinking():
    """With a warning, and without an error."""
    with simulated(text("Fine.")) as peer:
        behaving(peer, "anthropic", Behaviour(force_first_turn=True))
        request = peer.ask("anthropic", tools=[todo_write], thinking_budget=2000, max_tokens=4000)
        response = run(peer, lambda client: client.complete(request))
        (exchange,) = peer.app.script.received

    assert "first_turn_not_forced" in [warning.code for warning in response.warnings]
    assert "tool_choice" not in exchange.call.body


@every_mode
@pytest.mark.parametrize("effort", ["minimal", "high"])
def test_it_gives_way_to_an_effort_that_becomes_a_budget(effort, mode):
    """Which is seen only later: claude-haiku-4-5 thinks by a budget, and has no efforts."""
    with simulated(text("Fine.")) as peer:
        behaving(peer, "anthropic", Behaviour(force_first_turn=True))
        result = run_in(mode, peer, "anthropic", "?", tools=[todo_write], reasoning_effort=effort)
        (exchange,) = peer.app.script.received

    codes = [warning.code for warning in result.warnings]
    assert codes.count("first_turn_not_forced") == 1
    assert "tool_choice_relaxed" not in codes
    assert exchange.call.body["thinking"]["type"] == "enabled"
    assert "tool_choice" not in exchange.call.body


# Explain, and reading back.


def test_explain_shows_the_addendum_and_the_tools_left_out():
    """In fields of their own, and in the body as it would be sent; also what was forced."""
    behaviour = Behaviour(
        prompt_addendum=ADDENDUM, max_tools=1, core_tools=["Read"], force_first_turn=True
    )
    client = Client({"openai": HttpAdapter("openai", KEY)}, behaviours={"openai": behaviour})
    request = Request(model="gpt-5.2", messages="Hi.", tools=[todo_write, read_file, edit_file])

    shown = client.explain(request)

    assert shown.addendum == ADDENDUM
    assert shown.tools_left_out == ("TodoWrite", "Edit")
    assert shown.body["instructions"] == ADDENDUM
    assert [each["name"] for each in shown.body["tools"]] == ["Read"]
    assert shown.body["tool_choice"] == "required"
    assert [warning.code for warning in shown.warnings] == ["tools_over_limit"]
    bare = Client({"openai": HttpAdapter("openai", KEY)}).explain(request)
    assert (bare.addendum, bare.tools_left_out, bare.warnings) == ("", (), ())
    assert client.estimate_input_tokens(request) == shown.estimated_input_tokens
    assert shown.estimated_input_tokens < bare.estimated_input_tokens


def test_config_reads_back_what_is_set():
    """With keys redacted; an adapter of one's own has its name and behaviour."""
    behaviour = Behaviour(max_tools=3)
    adapter = HttpAdapter(
        "anthropic",
        KEY,
        base_url="https://proxy.example",
        default_headers={"x-team": "search", "authorization": "Bearer secret-of-mine"},
        timeout=9,
        max_retries=4,
        options={"service_tier": "auto"},
        profile={"tools": True},
        on_loss="warn",
    )
    client = Client({"mine": Plain(), "a": adapter}, behaviours={"a": behaviour, "mine": ACTIVE})

    config = client.config("a")
    assert client.adapter("a").name == config.name == "a"
    assert (config.provider, config.base_url) == ("anthropic", "https://proxy.example")
    assert (config.max_retries, config.on_loss) == (4, "warn")
    assert config.behaviour == behaviour
    assert config.options == {"service_tier": "auto"}
    assert config.profile == {"tools": True}
    assert config.timeouts.total == 9
    assert config.headers["x-team"] == "search"
    assert config.api_key
    assert KEY not in repr(config)
    assert "secret-of-mine" not in repr(config)
    assert client.config("mine").behaviour == ACTIVE
    assert sync.Client.wrap(client).config("a") == config
    assert adapter.behaviour is None  # the caller's own object is not changed
    with pytest.raises(ConfigurationError, match="'groq' is not configured"):
        client.config("groq")


def test_where_a_behaviour_may_be_given():
    """On a row, on an adapter, or for a client, which takes precedence."""
    row = Provider(
        name="house",
        dialect="openai_chat",
        base_url="https://house.example/v1",
        key_required=False,
        behaviour=Behaviour(max_tokens=1),
    )
    of_adapter = HttpAdapter(row, behaviour=Behaviour(max_tokens=2))
    client = Client(
        {"row": HttpAdapter(row), "adapter": of_adapter, "client": of_adapter},
        behaviours={"client": Behaviour(max_tokens=3)},
    )

    limits = {
        name: client.config(name).behaviour.max_tokens for name in ("row", "adapter", "client")
    }
    assert limits == {"row": 1, "adapter": 2, "client": 3}
    with pytest.raises(ConfigurationError, match="'hous' is neither an adapter"):
        Client({"house": HttpAdapter(row)}, behaviours={"hous": Behaviour()})
    later = Client.from_env({}, behaviours={"openai": ACTIVE})
    later._routing.environ = {"OPENAI_API_KEY": "k"}
    assert later.config("openai").behaviour == ACTIVE


# An adapter of one's own.


class Plain:
    """Answers without HTTP, and keeps what it was asked."""

    name = "mine"

    def __init__(self, failures=()):
        self.asked = []
        self.failures = list(failures)

    async def complete(self, request):
        self.asked.append(request)
        if self.failures:
            raise self.failures.pop(0)
        return Response(message=Message.assistant("Fine."), usage=Usage(input_tokens=1))

    async def stream(self, request):
        self.asked.append(request)
        if self.failures:
            raise self.failures.pop(0)
        yield StreamStart(model="m")
        yield Finish(finish_reason=FinishReason(reason="stop"), usage=Usage(input_tokens=1))


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_custom_adapter_has_behaviours_too(is_stream):
    """The client applies them: the addendum, the limit, the retries, the default model."""
    behaviour = Behaviour(
        prompt_addendum=ADDENDUM,
        max_tools=1,
        default_model="m",
        retry=RetrySettings(max_retries=1, base_delay=0),
    )
    adapter = Plain([ServerError("busy")])
    client = Client({"mine": adapter}, behaviours={"mine": behaviour})
    request = Request(messages="Hi.", tools=[read_file, edit_file])

    async def work():
        if not is_stream:
            return await client.complete(request)
        return [event async for event in client.stream(request)][-1].response

    response = asyncio.run(work())

    assert len(adapter.asked) == 2
    assert adapter.asked[1].model == "m"
    assert adapter.asked[1].messages[0] == Message.system(ADDENDUM)
    assert [each.name for each in adapter.asked[1].tools] == ["Read"]
    assert [warning.code for warning in response.warnings] == ["tools_over_limit", "price_unknown"]


# Retries.

OK = CannedReply(
    body=dumps(
        {
            "id": "c",
            "object": "chat.completion",
            "model": "m",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": "Fine."},
                }
            ],
        }
    )
)


def failing(*statuses, retry, **settings):
    """A client whose server fails so before it answers."""
    failures = [
        CannedReply(status=status, body=dumps({"error": {"message": f"{text}", "code": "x"}}))
        for status, text in statuses
    ]
    transport = CannedTransport([*failures, OK])
    adapter = HttpAdapter(
        "openai_compatible",
        KEY,
        base_url="http://house.example/v1",
        transport=transport,
        **settings,
    )
    client = Client({"house": adapter}, behaviours={"house": Behaviour(retry=retry)})
    return client, transport


@pytest.mark.parametrize(
    ("failure", "errors", "is_retried"),
    [
        ((503, "busy"), None, True),
        ((503, "busy"), ["server_error"], True),
        ((503, "busy"), ["rate_limit"], False),
        ((429, "slow"), ["rate_limit"], True),
        ((400, "wrong"), ["invalid_request"], False),
        ((400, "No tool output found for function call call_1."), ["tool_error"], True),
        ((400, "wrong"), ["tool_error"], False),
        ((400, "No tool call found for call_1."), None, False),
        ((408, "late"), ["timeout"], True),
        ((402, "pay"), ["rate_limit"], False),
    ],
)
@pytest.mark.parametrize("is_stream", [False, True])
def test_which_errors_are_retried(failure, errors, is_retried, is_stream):
    """Those that the behaviour lists, if they may succeed at all."""
    retry = RetrySettings(max_retries=1, base_delay=0, errors=errors)
    client, transport = failing(failure, retry=retry)

    async def work():
        if is_stream:
            return [event async for event in client.stream(Request(model="m", messages="?"))]
        return await client.complete(Request(model="m", messages="?"))

    with contextlib.suppress(SDKError):
        asyncio.run(work())
    assert len(transport.requests) == 1 + is_retried


@pytest.mark.parametrize(
    ("settings", "retry", "options", "attempts"),
    [
        ({}, RetrySettings(max_retries=2, base_delay=0), {}, 3),
        ({"max_retries": 1}, RetrySettings(base_delay=0), {}, 2),
        ({}, RetrySettings(base_delay=0), {}, 3),  # the default of the functions is 2
        ({}, RetrySettings(max_retries=0), {}, 1),
        ({}, RetrySettings(max_retries=4, base_delay=0), {"max_retries": 0}, 1),
    ],
)
def test_how_often(settings, retry, options, attempts):
    """The call's own policy, then the behaviour's, then the adapter's, then the default."""
    client, transport = failing(*[(503, "busy")] * 9, retry=retry, **settings)
    with pytest.raises(ServerError):
        asyncio.run(generate("m", "?", client=client, **options))

    assert len(transport.requests) == attempts


def test_the_delays():
    """Between the first and the longest; what a provider asks for may not be longer."""
    retry = RetrySettings(max_retries=3, base_delay=0.01, max_delay=0.02)
    client, transport = failing((503, ""), (503, ""), (503, ""), retry=retry)
    policy = AttemptLog(client.calls, "", None).policy_for("house", None, client.calls.adapters)

    delays = [policy.delay(ServerError("busy"), number, chance=lambda: 0.5) for number in range(4)]
    assert delays == [0.01, 0.02, 0.02, None]
    assert asyncio.run(client.complete(Request(model="m", messages="?"))).text == "Fine."
    assert len(transport.requests) == 4


# Streaming.


def test_streaming_off_reads_whole_answers():
    """The caller still gets events."""
    with simulated(text("Fine.")) as peer:
        behaving(peer, "openai", Behaviour(streaming=False))

        async def work(client):
            events = stream(f"openai:{MODELS['openai']}", "?", client=client)
            return [event.type async for event in events]

        types = run(peer, work)
        (exchange,) = peer.app.script.received

    assert not exchange.call.body.get("stream")
    assert types[0] == "stream_start"
    assert "text_delta" in types
