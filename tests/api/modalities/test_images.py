"""`generate_image`, `edit_image` and `stream_image`, over HTTP against the simulator."""

import asyncio
import base64

import pytest
from google import genai
from google.genai import types as genai_types
from openai import BadRequestError, OpenAI
from openai.types import ImagesResponse
from openai.types.responses import Response as OpenAIResponse

from interlingua import (
    AbortController,
    BuiltinTool,
    Client,
    Image,
    Message,
    RetryPolicy,
    edit_image,
    generate,
    generate_image,
    stream,
    sync,
)
from interlingua.api.modalities.images import fetch_images
from interlingua.errors import (
    AbortError,
    BudgetExceededError,
    ConfigurationError,
    ContentFilterError,
    DecodeError,
    InvalidRequestError,
    RequestTimeoutError,
    StreamError,
    UnsupportedError,
)
from interlingua.media import save_image, stream_image
from interlingua.middleware import Budget
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import Simulator, error, latency, serve_in_thread, text
from interlingua.simulator.operations.modalities import REFUSED, make_png
from interlingua.spec.modalities.images import ImageResult
from interlingua.sync import media as sync_media
from interlingua.transport import CannedReply, CannedTransport
from interlingua.wire.image_size import ImageSize, read_image_size
from support.blocking import blocking
from support.servers import Server
from support.simulated import KEY, run, settled, simulated
from support.warning_codes import codes

SSE = {"content-type": "text/event-stream"}
PNG = make_png(ImageSize(64, 32), b"\x80\x10\x20")
MODELS = {
    "image model": "openai:gpt-image-2",
    "chat model": "openai:gpt-5.2",
    "compatible server": "openai_compatible:house-images",
    "gemini": "gemini:gemini-3-pro-image",
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def calls_of(peer):
    return [exchange.call for exchange in peer.app.script.received]


def form_of(call):
    return {part.name: part.content for part in call.form}


@every_model
def test_an_image_has_the_shape_that_was_asked_for(model):
    """Its bytes are a real file, whose size in pixels is read."""
    with simulated() as peer:
        result = run(peer, lambda c: generate_image(model, "A cat.", aspect_ratio="16:9", client=c))

    assert result.operation == "generate"
    assert result.image.media_type == "image/png"
    assert (result.items[0].width, result.items[0].height) == (1280, 720)
    assert read_image_size(result.items[0].data) == (1280, 720)
    assert result.usage.output_tokens > 0
    assert result.model == model.partition(":")[2]


@every_model
@pytest.mark.parametrize(("count", "operation"), [(1, "edit"), (2, "composite")])
def test_images_are_edited_and_combined(model, count, operation, tmp_path):
    """The images arrive as bytes, wherever they come from."""
    path = tmp_path / "cat.png"
    path.write_bytes(PNG)
    images = [path, Image(data=PNG)][:count]

    with simulated() as peer:
        result = run(peer, lambda c: edit_image(model, "At night.", images, client=c))
        (call,) = calls_of(peer)

    assert result.operation == operation
    if call.form:
        assert [part.content for part in call.form if isinstance(part.content, bytes)] == [
            PNG
        ] * count
    else:
        assert str(call.body).count(base64.b64encode(PNG).decode()) == count


@pytest.mark.parametrize("model", [MODELS["image model"], MODELS["chat model"]])
def test_a_mask_is_sent(model):
    """A form has it as a file, the tool of a chat as an address."""
    with simulated() as peer:
        result = run(peer, lambda c: edit_image(model, "A roof.", PNG, mask=PNG, client=c))
        (call,) = calls_of(peer)

    assert result.operation == "edit_masked"
    if call.form:
        assert form_of(call)["mask"] == PNG
    else:
        mask = call.body["tools"][0]["input_image_mask"]["image_url"]
        assert mask.endswith(base64.b64encode(PNG).decode())


def test_an_image_by_url_or_file_id_is_sent_as_such():
    """The form takes only bytes, so the JSON form of the endpoint is used."""
    images = [Image(url="https://example.com/a.png"), Image(file_id="file-1"), Image(data=PNG)]

    with simulated() as peer:
        run(peer, lambda c: edit_image(MODELS["image model"], "Join.", images, client=c))
        (call,) = calls_of(peer)

    url, file, data = call.body["images"]
    assert (url, file) == ({"image_url": "https://example.com/a.png"}, {"file_id": "file-1"})
    assert data["image_url"].startswith("data:image/png;base64,")


@pytest.mark.parametrize("model", [MODELS["image model"], MODELS["compatible server"]])
@pytest.mark.parametrize("images", [(), PNG], ids=["generate", "edit"])
def test_a_stream_shows_unfinished_images(model, images):
    """Each is an image with its number; the result has the finished one, usage and cost."""

    async def work(client):
        async with stream_image(model, "A cat.", images, partial_images=3, client=client) as items:
            seen = [item async for item in items]
        return seen, items.result()

    with simulated() as peer:
        seen, result = run(peer, work)

    assert [(item.index, item.width) for item in seen] == [(0, 1024), (1, 1024), (2, 1024)]
    assert len({item.image.data for item in seen} | {result.image.data}) == 4
    assert result.operation == ("edit" if images else "generate")
    assert result.usage.output_image_tokens
    assert (result.cost is None) == ("price_unknown" in [each.code for each in result.warnings])


def test_a_chat_model_streams_unfinished_images():
    """The events of the hosted tool are unfinished images too."""
    item = {"type": "image_generation_call", "id": "ig_1", "status": "completed"}
    done = {**item, "result": base64.b64encode(PNG).decode()}
    partial = {
        "type": "response.image_generation_call.partial_image",
        "output_index": 0,
        "partial_image_index": 1,
        "partial_image_b64": base64.b64encode(PNG).decode(),
    }
    answer = {"id": "resp_1", "model": "gpt-5.2", "status": "completed", "output": [done]}
    events = [
        {"type": "response.created", "response": {**answer, "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        partial,
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.completed", "response": answer},
    ]

    async def work(chunks):
        client = canned(CannedReply(body=tuple(chunks), headers=SSE))
        async with client, stream_image(MODELS["chat model"], "A cat.", client=client) as items:
            return [item async for item in items], items.result()

    body = b"".join(b"data: " + dumps(event) + b"\n\n" for event in events)
    for size in (len(body), 7):
        chunks = [body[i : i + size] for i in range(0, len(body), size)]
        seen, result = asyncio.run(work(chunks))
        assert [(item.index, item.width, item.height) for item in seen] == [(1, 64, 32)]
        assert result.image.data == PNG

    with pytest.raises(StreamError):
        asyncio.run(work([body[: body.index(b"response.completed")]]))


def dumps(value):
    import json

    return json.dumps(value).encode()


def canned(*replies, provider="openai"):
    return Client({provider: HttpAdapter(provider, KEY, transport=CannedTransport(replies))})


def reply_of(body):
    return CannedReply(body=dumps(body), headers={"content-type": "application/json"})


# Hosts that differ.

HOSTS = {
    "xai": (
        {"size": "2048x1152"},
        {"aspect_ratio": "16:9", "resolution": "2k", "response_format": "b64_json"},
        ["image_size_changed"],
    ),
    "together": (
        {"aspect_ratio": "16:9"},
        {"width": 1280, "height": 720, "response_format": "base64"},
        [],
    ),
    "deepinfra": ({"size": "512x512"}, {"size": "512x512", "response_format": "b64_json"}, []),
    "nebius": ({"size": "512x512"}, {"size": "512x512", "response_format": "b64_json"}, []),
    "venice": ({"size": "512x512"}, {"size": "512x512", "response_format": "b64_json"}, []),
    "openai": ({"size": "512x512"}, {"size": "512x512"}, []),
    "openrouter": (
        {"aspect_ratio": "3:2", "size": "2K"},
        {
            "modalities": ["image", "text"],
            "image_config": {"aspect_ratio": "3:2", "image_size": "2K"},
        },
        [],
    ),
    "vercel": ({}, {"modalities": ["image", "text"]}, []),
}


@pytest.mark.parametrize("provider", HOSTS)
def test_each_host_gets_its_own_fields(provider):
    """Sizes are in the terms of the host, and `response_format` is sent only where it is taken."""
    options, fields, warned = HOSTS[provider]
    model = f"{provider}:{'gpt-image-2' if provider == 'openai' else 'a-model'}"
    app = Simulator(key=KEY)
    with serve_in_thread(app) as server:
        app_url = server.url if provider == "openai" else f"{server.url}/v1"
        client = Client({provider: HttpAdapter(provider, KEY, base_url=app_url)})

        async def work():
            async with client:
                return await generate_image(model, "A cat.", client=client, **options)

        result = asyncio.run(work())
        (call,) = [exchange.call for exchange in app.script.received]

    assert {name: call.body.get(name) for name in fields} == fields
    assert provider != "openai" or "response_format" not in call.body
    assert result.items[0].width
    assert codes(result) == warned


@pytest.mark.parametrize("count", [1, 2])
def test_xai_edits_by_json(count):
    """One image is `image`, several are `images`, each as an address."""
    app = Simulator()
    with serve_in_thread(app) as server:
        client = Client({"xai": HttpAdapter("xai", KEY, base_url=f"{server.url}/v1")})

        async def work():
            async with client:
                return await edit_image(
                    "xai:grok-imagine-image", "Join.", [PNG] * count, client=client
                )

        result = asyncio.run(work())
        (call,) = [exchange.call for exchange in app.script.received]

    sent = call.body.get("images") or [call.body["image"]]
    assert [link["type"] for link in sent] == ["image_url"] * count
    assert result.operation == ("edit" if count == 1 else "composite")


def test_the_cost_that_xai_reports_counts():
    """As recorded: 0.07 dollars for an image."""
    body = {"data": [{"b64_json": "aGVsbG8="}], "usage": {"cost_in_usd_ticks": 700_000_000}}

    async def work():
        async with canned(reply_of(body), provider="xai") as client:
            return await generate_image("xai:grok-imagine-image-pro", "A cat.", client=client)

    result = asyncio.run(work())

    assert result.cost.total == pytest.approx(0.07)
    assert result.cost.source == "provider"
    assert result.usage.images == 1


def test_imagen_is_paid_by_the_image():
    """The earlier models have an endpoint of their own, and a price for each image."""
    with simulated() as peer:
        result = run(
            peer,
            lambda c: generate_image(
                "gemini:imagen-3.0-generate-001", "A cat.", count=2, format="jpeg", client=c
            ),
        )
        (call,) = calls_of(peer)

    assert call.path == "/v1beta/models/imagen-3.0-generate-001:predict"
    assert call.body["parameters"]["sampleCount"] == 2
    assert (len(result.items), result.usage.images) == (2, 2)
    assert result.cost.total == pytest.approx(0.08)


@pytest.mark.parametrize(("quality", "dollars"), [("low", 0.026), ("high", 0.4), ("xhigh", None)])
def test_an_image_is_priced_by_its_size_and_quality(quality, dollars):
    """Where no tokens are reported, the catalog's price of such an image counts, if it has one."""
    body = {"data": [{"b64_json": "aGVsbG8="}] * 2, "size": "1024x1536", "quality": quality}

    async def work():
        async with canned(reply_of(body)) as client:
            return await generate_image("openai:gpt-image-1.5", "A cat.", count=2, client=client)

    result = asyncio.run(work())

    assert (result.cost and result.cost.total) == (dollars and pytest.approx(dollars))
    assert codes(result) == []
    assert (result.cost is None) == bool(result.warnings)


def test_an_unknown_price_is_none_with_a_warning():
    """Never 0."""
    with simulated() as peer:
        result = run(
            peer, lambda c: generate_image(MODELS["compatible server"], "A cat.", client=c)
        )

    assert result.cost is None
    assert [warning.code for warning in result.warnings] == ["price_unknown"]


def test_a_chat_model_says_that_its_image_is_billed_apart():
    """Its usage does not contain the tokens of the image model."""
    with simulated() as peer:
        result = run(peer, lambda c: generate_image(MODELS["chat model"], "A cat.", client=c))

    assert codes(result) == ["image_price_apart"]


# URLs.


def url_reply(server):
    return reply_of({"created": 1, "data": [{"url": f"{server}/x.png", "revised_prompt": "Two."}]})


def test_a_url_is_not_fetched_unless_it_is_asked_for():
    """The result has the URL, and says how to get the bytes."""

    async def work():
        async with canned(url_reply("https://images.example"), provider="openai") as client:
            return await generate_image("openai:dall-e-2", "A cat.", client=client)

    result = asyncio.run(work())

    assert result.image.url == "https://images.example/x.png"
    assert result.revised_prompt == "Two."
    with pytest.raises(ConfigurationError, match="download=True"):
        _ = result.items[0].data


@pytest.mark.parametrize("how", ["download", "save"])
def test_an_address_that_is_not_public_is_not_fetched(how, tmp_path):
    """A provider's answer cannot make the program read the network around it."""

    async def work():
        async with canned(url_reply("http://127.0.0.1:9"), provider="openai") as client:
            result = await generate_image(
                "openai:dall-e-2", "A cat.", download=how == "download", client=client
            )
            await save_image(result.items[0], tmp_path / "x.png")

    with pytest.raises(ConfigurationError, match=r"127\.0\.0\.1"):
        asyncio.run(work())
    assert list(tmp_path.iterdir()) == []


def test_the_bytes_of_a_url_are_fetched_without_the_key(tmp_path):
    """They take the place of the URL, and their size is read."""
    head = f"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: {len(PNG)}\r\n\r\n"

    async def script(connection):
        await connection.read_request()
        await connection.send(head.encode() + PNG)

    async def work(address):
        async with canned(url_reply(address), provider="openai") as client:
            made = await generate_image("openai:dall-e-2", "A cat.", client=client)
        return await fetch_images(made, allowed=lambda _: True)

    with Server(script) as server:
        result = asyncio.run(work(server.url))
        (request,) = server.connections[0].requests

    assert "authorization" not in request.headers
    assert KEY not in str(request.headers)
    assert (result.items[0].data, result.items[0].width, result.items[0].height) == (PNG, 64, 32)
    assert asyncio.run(save_image(result.image, tmp_path / "x.png")) == len(PNG)
    assert (tmp_path / "x.png").read_bytes() == PNG


# Errors.

WRONG = {
    "prompt": {"prompt": " "},
    "count": {"count": 0},
    "compression": {"compression": 101},
    "background": {"background": "blue"},
    "format": {"format": "bmp"},
    "size": {"size": "large"},
    "aspect_ratio": {"aspect_ratio": "wide"},
    "has not the aspect_ratio": {"size": "1024x1024", "aspect_ratio": "16:9"},
    "Unknown option 'sise'": {"sise": "1K"},
}


@pytest.mark.parametrize("message", WRONG)
def test_wrong_options_are_refused_before_anything_is_sent(message):
    """The error names the option."""
    options = {"prompt": "A cat.", **WRONG[message]}
    with simulated() as peer, pytest.raises(ConfigurationError, match=message):
        run(peer, lambda c: generate_image(MODELS["image model"], client=c, **options))
    assert peer.app.script.received == ()


@pytest.mark.parametrize("images", [[], "cat.png", [7], ["cat.png"]])
def test_wrong_images_are_refused(images):
    """The name of a file is no image: content may come from strangers."""
    with simulated() as peer, pytest.raises(ConfigurationError, match="image"):
        run(peer, lambda c: edit_image(MODELS["image model"], "At night.", images, client=c))
    assert peer.app.script.received == ()


UNABLE = {
    "openai:gpt-image-2": {"quality": "ultra"},
    "openai:gpt-5.2": {"count": 2},
    "gemini:gemini-3-pro-image": {"aspect_ratio": "17:9"},
    "gemini:gemini-2.5-flash-image": {"size": "4K"},
    "anthropic:claude-haiku-4-5": {},
}


@pytest.mark.parametrize("model", UNABLE)
def test_what_a_model_cannot_do_is_refused_before_anything_is_sent(model):
    """Also a provider that makes no images, with the names of those that do."""
    with simulated() as peer, pytest.raises(UnsupportedError) as caught:
        run(peer, lambda c: generate_image(model, "A cat.", client=c, **UNABLE[model]))

    assert peer.app.script.received == ()
    assert "anthropic" not in model or "openai, gemini, xai" in str(caught.value)


@every_model
def test_a_refused_prompt_is_a_content_filter_error(model):
    """Whether an endpoint answers 400 or a chat model declines."""
    with simulated() as peer, pytest.raises(ContentFilterError) as caught:
        run(peer, lambda c: generate_image(model, f"A {REFUSED}.", client=c))

    assert caught.value.provider == model.partition(":")[0]
    assert caught.value.model == model.partition(":")[2]


@pytest.mark.parametrize("model", [MODELS["chat model"], MODELS["gemini"]])
def test_a_chat_model_that_only_writes_is_an_error(model):
    """The error shows what it said, and has the answer."""
    with simulated(text("I would rather not.")) as peer, pytest.raises(DecodeError) as caught:
        run(peer, lambda c: generate_image(model, "A cat.", client=c))

    assert "I would rather not." in str(caught.value)
    assert caught.value.partial.text == "I would rather not."


@pytest.mark.parametrize(
    "body", [{}, [], {"data": []}, {"data": [{}]}, {"data": [{"b64_json": "?"}]}, {"data": 7}]
)
def test_a_reply_without_images_is_an_error(body):
    """Never a short success."""

    async def work():
        async with canned(reply_of(body)) as client:
            await generate_image("openai:gpt-image-2", "A cat.", client=client)

    with pytest.raises(DecodeError):
        asyncio.run(work())


def test_failures_are_retried():
    """As calls are."""
    with simulated(error(500), error(429, retry_after=0), latency()) as peer:
        policy = RetryPolicy(max_retries=2, base_delay=0.01)
        result = run(
            peer,
            lambda c: generate_image(
                MODELS["image model"], "A cat.", client=c, retry_policy=policy
            ),
        )
        assert len(peer.app.script.received) == 3

    assert isinstance(result, ImageResult)


def test_scripted_errors_are_typed():
    """An error of the script is the vendor's error body."""
    with simulated(error(400, "No.")) as peer, pytest.raises(InvalidRequestError, match=r"No\."):
        run(peer, lambda c: generate_image(MODELS["image model"], "A cat.", client=c))


@pytest.mark.parametrize("how", ["signal", "timeout", "id"])
def test_a_call_can_be_stopped(how):
    """By its signal, its timeout or its id; the connection is closed."""

    async def work(client):
        controller = AbortController()
        call = generate_image(
            MODELS["image model"],
            "A cat.",
            client=client,
            request_id="drawing",
            abort_signal=controller.signal,
            timeout=0.2 if how == "timeout" else None,
        )
        task = asyncio.ensure_future(call)
        await settled(lambda: peer.app.script.received or task.done())
        if how == "signal":
            controller.abort()
        elif how == "id":
            assert await client.cancel("drawing")
        await task

    expected = RequestTimeoutError if how == "timeout" else AbortError
    with simulated(latency(first=30)) as peer, pytest.raises(expected):
        run(peer, work)


# Middleware and reports.


@pytest.mark.parametrize("streamed", [False, True])
def test_usage_is_reported(streamed):
    """Once for each operation, for a stream at its end."""
    reports = []

    async def work(client):
        options = {"client": client, "on_usage": reports.append, "caller_id": "me"}
        if not streamed:
            return await generate_image(MODELS["image model"], "A cat.", **options)
        async with stream_image(MODELS["image model"], "A cat.", **options) as items:
            _ = [item async for item in items]
        return items.result()

    with simulated() as peer:
        result = run(peer, work)

    (report,) = reports
    assert (report.usage, report.caller_id) == (result.usage, "me")
    assert report.cost == result.cost


@pytest.mark.parametrize("streamed", [False, True])
def test_a_budget_counts_images(streamed):
    """Before a call its estimate is reserved; afterwards its real cost counts."""
    budget = Budget(usd=0.2)

    async def make(client):
        options = {"quality": "medium", "size": "1024x1024", "client": client}
        if not streamed:
            return await generate_image(MODELS["image model"], "A cat.", **options)
        async with stream_image(MODELS["image model"], "A cat.", **options) as items:
            _ = [item async for item in items]
        return items.result()

    async def work(client):
        client = client.with_middleware(budget)
        result = await make(client)
        used = await budget.used()
        with pytest.raises(BudgetExceededError):
            await generate_image(MODELS["image model"], "Ten cats.", count=10, client=client)
        return result, used, await budget.used()

    with simulated() as peer:
        result, used, after = run(peer, work)
        assert len(peer.app.script.received) == 1

    assert used == pytest.approx(result.cost.total)
    assert after == pytest.approx(used)


# Images in a conversation.


def test_an_image_of_a_chat_goes_on_to_other_providers():
    """One provider draws, another looks, the first goes on, a third edits."""
    tool = BuiltinTool(dialect="openai_responses", data={"type": "image_generation"})

    async def work(client):
        first = await generate("openai:gpt-5.2", "Draw a cat.", tools=[tool], client=client)
        asked = [*first.messages, Message.user("What is this?")]
        await generate("anthropic:claude-haiku-4-5", asked, client=client)
        await generate("openai:gpt-5.2", asked, client=client)
        (drawn,) = [p for p in first.response.message.content if isinstance(p, Image)]
        edited = await edit_image("gemini:gemini-3-pro-image", "At night.", drawn, client=client)
        return drawn, edited

    with simulated() as peer:
        drawn, edited = run(peer, work)
        _, seen, back, changed = calls_of(peer)

    data = base64.b64encode(drawn.data).decode()
    assert seen.body["messages"][-1]["content"][0]["source"]["data"] == data
    assert [item["result"] for item in back.body["input"] if "result" in item] == [data]
    assert changed.body["contents"][0]["parts"][0]["inlineData"]["data"] == data
    assert edited.operation == "edit"


@pytest.mark.parametrize("model", ["openai:gpt-5.2", "gemini:gemini-3-pro-image"])
def test_a_streamed_chat_has_the_image_as_an_event(model):
    """The event has the part, and the response has it too."""
    tool = BuiltinTool(dialect="openai_responses", data={"type": "image_generation"})
    modalities = {"generationConfig": {"responseModalities": ["TEXT", "IMAGE"]}}
    options = (
        {"tools": [tool]}
        if model.startswith("openai")
        else {"provider_options": {"gemini_generate": modalities}}
    )

    async def work(client):
        async with stream(model, "Draw a cat.", client=client, **options) as events:
            parts = [getattr(event, "part", None) async for event in events]
        return [part for part in parts if isinstance(part, Image)], events.response()

    with simulated() as peer:
        (image,), response = run(peer, work)

    assert image in response.message.content


# Blocking.


def test_the_blocking_functions_do_the_same(tmp_path):
    """With the same names and results."""
    with blocking() as (_, client):
        made = sync.generate_image(MODELS["image model"], "A cat.", client=client)
        edited = sync.edit_image(MODELS["image model"], "At night.", made.image, client=client)
        with sync_media.stream_image(MODELS["image model"], "A cat.", client=client) as items:
            shown = [item.index for item in items]
        assert items.result().items == made.items
        assert sync_media.save_image(made.items[0], tmp_path / "cat.png") == len(made.items[0].data)

    assert (edited.operation, shown) == ("edit", [0, 1])
    assert (tmp_path / "cat.png").read_bytes() == made.items[0].data


# The vendors' clients use the simulator, and their types validate what it sends.


def test_the_openai_client_makes_and_edits_images():
    """Generations, edits with several files and a mask, streams, errors."""
    with (
        serve_in_thread(Simulator()) as server,
        OpenAI(base_url=f"{server.url}/v1", api_key=KEY) as own,
    ):
        made = own.images.generate(model="gpt-image-2", prompt="A cat.", size="1536x1024", n=2)
        files = [("a.png", PNG, "image/png"), ("b.png", PNG, "image/png")]
        edited = own.images.edit(
            model="gpt-image-2", prompt="Join.", image=files, mask=files[0], quality="low"
        )
        events = own.images.generate(
            model="gpt-image-2", prompt="A cat.", stream=True, partial_images=2
        )
        kinds = [event.type for event in events]
        edits = own.images.edit(
            model="gpt-image-2", prompt="Join.", image=files[0], stream=True, partial_images=1
        )
        kinds += [event.type for event in edits]
        with pytest.raises(BadRequestError) as caught:
            own.images.generate(model="gpt-image-2", prompt=f"A {REFUSED}.")

    ImagesResponse.model_validate(made.model_dump(), strict=True)
    ImagesResponse.model_validate(edited.model_dump(), strict=True)
    assert [read_image_size(base64.b64decode(each.b64_json)) for each in made.data] == [
        (1536, 1024)
    ] * 2
    assert kinds == [
        *["image_generation.partial_image"] * 2,
        "image_generation.completed",
        "image_edit.partial_image",
        "image_edit.completed",
    ]
    assert caught.value.code == "moderation_blocked"


@pytest.mark.parametrize("streamed", [False, True])
def test_the_openai_client_gets_images_of_a_chat(streamed):
    """The hosted tool's item has the image."""
    with (
        serve_in_thread(Simulator()) as server,
        OpenAI(base_url=f"{server.url}/v1", api_key=KEY) as own,
    ):
        asked = {
            "model": "gpt-5.2",
            "input": "Draw a cat.",
            "tools": [{"type": "image_generation", "size": "1024x1536"}],
        }
        if streamed:
            events = own.responses.create(**asked, stream=True)
            (answer,) = [each.response for each in events if each.type == "response.completed"]
        else:
            answer = own.responses.create(**asked)

    OpenAIResponse.model_validate(answer.model_dump())
    (item,) = [item for item in answer.output if item.type == "image_generation_call"]
    assert read_image_size(base64.b64decode(item.result)) == (1024, 1536)


@pytest.mark.parametrize("streamed", [False, True])
def test_the_google_client_makes_and_edits_images(streamed):
    """`generateContent` with images out, of the ratio that was asked for."""
    with serve_in_thread(Simulator()) as server:
        own = genai.Client(api_key=KEY, http_options={"base_url": server.url})
        config = genai_types.GenerateContentConfig(
            response_modalities=["TEXT", "IMAGE"],
            image_config=genai_types.ImageConfig(aspect_ratio="3:2"),
        )
        contents = [genai_types.Part.from_bytes(data=PNG, mime_type="image/png"), "At night."]
        asked = {"model": "gemini-3-pro-image", "contents": contents, "config": config}
        if streamed:
            answers = list(own.models.generate_content_stream(**asked))
        else:
            answers = [own.models.generate_content(**asked)]
        own.close()

    parts = [part for answer in answers for part in answer.parts or ()]
    (image,) = [part.inline_data for part in parts if part.inline_data]
    assert image.mime_type == "image/png"
    assert read_image_size(image.data) == (1248, 832)
