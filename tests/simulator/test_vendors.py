"""The vendors' own clients talk to the simulator, over real HTTP on loopback."""

import anthropic
import openai
import pytest
from google import genai
from google.genai import errors as genai_errors

from interlingua.simulator import (
    Simulator,
    error,
    error_event,
    refusal,
    serve_in_thread,
    text,
    thinking,
    tool_call,
    tool_loop,
    usage,
)
from support.vendor_clients import KEY, QUESTION, VENDORS, Said, connect

ENDS = {
    "openai_chat": ("stop", "tool_calls", "stop"),
    "openai_responses": ("completed", "completed", "completed"),
    "anthropic_messages": ("end_turn", "tool_use", "refusal"),
    "gemini_generate": ("STOP", "STOP", "SAFETY"),
}
WAYS = ("complete", "stream")


class Stage:
    """One server for all tests, and one client for each key: they are slow to make."""

    def __init__(self):
        self.simulator = Simulator()
        self.url = ""
        self.clients = {}

    async def __call__(self, *asgi):
        await self.simulator(*asgi)

    def talk(self, dialect, simulator, key=KEY):
        """A vendor's client, connected to this simulator."""
        self.simulator = simulator
        found = (dialect.partition("_")[0], key)
        if found not in self.clients:
            self.clients[found] = connect(dialect, self.url, key)
        return VENDORS[dialect](self.clients[found])


@pytest.fixture(scope="module")
def stage():
    stage = Stage()
    with serve_in_thread(stage) as server:
        stage.url = server.url
        yield stage
        for client in stage.clients.values():
            client.close()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dialect", VENDORS)
def test_an_answer(stage, dialect, way):
    """Text, thinking, usage and the reason to stop arrive, whole and streamed."""
    turn = thinking("They want facts.") + text("Rain in Oslo, sun in Rome. ☀") + usage(40, 12)
    said = getattr(stage.talk(dialect, Simulator(turn)), way)()

    assert said == Said(
        "Rain in Oslo, sun in Rome. ☀", [], "They want facts.", (40, 12), ENDS[dialect][0]
    )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dialect", VENDORS)
def test_a_refusal(stage, dialect, way):
    """A refusal is told in the vendor's way."""
    said = getattr(stage.talk(dialect, Simulator(refusal("I will not."))), way)()

    assert (said.text, said.finish) == ("I will not.", ENDS[dialect][2])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dialect", VENDORS)
def test_a_tool_loop(stage, dialect, way):
    """The client is asked for two calls at once, returns their results, and gets the answer."""
    calls = thinking("I must look.") + text("One moment. ")
    calls += tool_call("get_weather", city="Oslo") + tool_call("get_weather", city="Rome")
    simulator = Simulator(tool_loop(calls, text("Rain and sun.")))
    vendor = stage.talk(dialect, simulator)
    asked = getattr(vendor, way)()
    vendor.give(["4 C, rain", "25 C, sun"])
    said = getattr(vendor, way)()

    assert asked.calls == [("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Rome"})]
    assert (asked.text, asked.finish) == ("One moment. ", ENDS[dialect][1])
    assert (said.text, said.calls) == ("Rain and sun.", [])
    first, second = simulator.script.requests
    assert first.messages[0].text == QUESTION
    ids = [part.id for m in second.messages for part in m.tool_calls]
    found = [p for m in second.messages for p in m.content if p.kind == "tool_result"]
    assert [part.tool_call_id for part in found] == ids
    assert [_result(part) for part in found] == ["4 C, rain", "25 C, sun"]


def _result(part):
    if isinstance(part.content, tuple):
        return "".join(each.text for each in part.content)
    return part.content


STATUSES = (400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529)
OPENAI_ERRORS = {
    400: openai.BadRequestError,
    401: openai.AuthenticationError,
    403: openai.PermissionDeniedError,
    404: openai.NotFoundError,
    409: openai.ConflictError,
    422: openai.UnprocessableEntityError,
    429: openai.RateLimitError,
}
CLAUDE_ERRORS = {
    400: anthropic.BadRequestError,
    401: anthropic.AuthenticationError,
    403: anthropic.PermissionDeniedError,
    404: anthropic.NotFoundError,
    409: anthropic.ConflictError,
    422: anthropic.UnprocessableEntityError,
    429: anthropic.RateLimitError,
}
MESSAGES = {
    ("openai", 401): "Incorrect API key",
    ("openai", 404): "The model `m` does not exist",
    ("openai", 429): "Rate limit reached for m",
    ("openai", 500): "The server had an error",
    ("anthropic", 401): "invalid x-api-key",
    ("anthropic", 404): "model: m",
    ("anthropic", 429): "rate limit",
    ("anthropic", 500): "Internal server error",
    ("anthropic", 529): "Overloaded",
    ("gemini", 404): "models/m is not found",
    ("gemini", 429): "You exceeded your current quota",
    ("gemini", 503): "overloaded",
}


def _expected(dialect, status):
    house = dialect.partition("_")[0]
    if house == "gemini":
        return genai_errors.ServerError if status >= 500 else genai_errors.ClientError
    table, module = (OPENAI_ERRORS, openai) if house == "openai" else (CLAUDE_ERRORS, anthropic)
    return table.get(status, module.InternalServerError if status >= 500 else module.APIStatusError)


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("dialect", VENDORS)
def test_errors(stage, dialect, status):
    """Each status is the vendor's own exception, with the vendor's own words."""
    vendor = stage.talk(dialect, Simulator(error(status)))
    for way in WAYS:
        with pytest.raises(_expected(dialect, status)) as raised:
            getattr(vendor, way)()
        told = getattr(raised.value, "status_code", None) or raised.value.code
        assert told == status
        words = MESSAGES.get((dialect.partition("_")[0], status), "")
        assert words in str(raised.value)


@pytest.mark.parametrize("dialect", VENDORS)
def test_wrong_key(stage, dialect):
    """A wrong key is refused in the vendor's words, and does not come back in them."""
    simulator = Simulator(text("hi"), key="the-right-one")
    vendor = stage.talk(dialect, simulator)
    with pytest.raises(Exception, match=r"(?i)key") as raised:
        vendor.complete()
    said = stage.talk(dialect, simulator, "the-right-one").complete()

    told = getattr(raised.value, "status_code", None) or raised.value.code
    assert told == (400 if dialect == "gemini_generate" else 401)
    assert KEY not in str(raised.value)
    assert said.text == "hi"
    assert all("the-right-one" not in str(each.call) for each in simulator.script.received)


LATE = {
    "openai_chat": openai.APIError,
    "anthropic_messages": anthropic.APIStatusError,
    "gemini_generate": genai_errors.APIError,
}
BROKEN = text("The beginning of") + error_event(529, "too many of you")


@pytest.mark.parametrize("dialect", LATE)
def test_an_error_in_the_stream(stage, dialect):
    """An error told after HTTP 200 is raised by the vendor's client."""
    vendor = stage.talk(dialect, Simulator(BROKEN))
    with pytest.raises(LATE[dialect], match="too many of you"):
        vendor.stream()


def test_an_error_in_a_stream_of_responses(stage):
    """This client raises an error event of one form, and yields one of the other."""
    told = []
    vendor = stage.talk("openai_responses", Simulator(BROKEN))
    stream = vendor.client.responses.create(model="m", input="hi", stream=True)
    try:
        told += [event.message for event in stream if event.type == "error"]
    except openai.APIError as error:
        told.append(error.message)

    assert told == ["too many of you"]


def test_other_endpoints():
    """Models, token counts and embeddings are there too."""
    with serve_in_thread(Simulator(models=["a", "b"])) as server:
        with openai.OpenAI(api_key=KEY, base_url=f"{server.url}/v1") as client:
            listed = [[model.id for model in client.models.list()]]
            vectors = client.embeddings.create(model="a", input=["x", "y", "x"]).data
            count = client.responses.input_tokens.count(model="a", input="Hello?").input_tokens
        with anthropic.Anthropic(api_key=KEY, base_url=server.url) as claude:
            listed.append([model.id for model in claude.models.list()])
            messages = [{"role": "user", "content": "Hello?"}]
            counted = claude.messages.count_tokens(model="a", messages=messages).input_tokens
        gemini = genai.Client(api_key=KEY, http_options={"base_url": server.url})
        listed.append([model.name.removeprefix("models/") for model in gemini.models.list()])
        total = gemini.models.count_tokens(model="a", contents="Hello?").total_tokens
        gemini.close()

    assert listed == [["a", "b"]] * 3
    assert vectors[0].embedding == vectors[2].embedding != vectors[1].embedding
    assert count == counted == total == len("a\nuser\nHello?") // 4 + 1
