"""Operations check what a model is for, and the limits of its settings, before they send."""

import asyncio
import json

import pytest

from interlingua import (
    Audio,
    Client,
    HttpAdapter,
    Image,
    edit_image,
    embed,
    embed_many,
    generate_image,
    generate_video,
    speak,
    transcribe,
)
from interlingua.catalog import get_model_info, update
from interlingua.errors import SDKError, UnsupportedError
from interlingua.media import (
    moderate,
    rerank,
    stream_image,
    stream_speech,
    stream_transcription,
)
from interlingua.providers.catalog.models import reset_table
from interlingua.providers.catalog.search import list_models
from interlingua.spec.errors import ServerError
from interlingua.transport.canned import CannedReply, CannedTransport

SOUND = Audio(data=b"RIFF", media_type="audio/wav")
PNG = Image(data=b"\x89PNG\r\n\x1a\n" + bytes(30), media_type="image/png")
ASK = {
    "embed": lambda model, **options: embed(model, "a", **options),
    "embed_many": lambda model, **options: embed_many(model, ["a"], **options),
    "generate_image": lambda model, **options: generate_image(model, "a cat", **options),
    "edit_image": lambda model, **options: edit_image(model, "a cat", PNG, **options),
    "speak": lambda model, **options: speak(model, "a", **options),
    "transcribe": lambda model, **options: transcribe(model, SOUND, **options),
    "generate_video": lambda model, **options: generate_video(model, "a cat", **options),
    "moderate": lambda model, **options: moderate(model, "a", **options),
    "rerank": lambda model, **options: rerank(model, "a", ["b"], **options),
}
STREAMS = {
    "stream_image": lambda model, **options: stream_image(model, "a cat", **options),
    "stream_speech": lambda model, **options: stream_speech(model, "a", **options),
    "stream_transcription": lambda model, **options: stream_transcription(model, SOUND, **options),
}
WRONG = [
    ("generate_image", "openai:tts-1", "speak"),
    ("generate_image", "openai:text-embedding-3-small", "embed"),
    ("generate_image", "gemini:gemini-3.8-flash", "generate"),
    ("generate_image", "openrouter:openai/gpt-5.5", "generate"),
    ("edit_image", "openai:whisper-1", "transcribe"),
    ("embed", "openai:gpt-5.2", "generate"),
    ("embed_many", "mistral:mistral-medium-3-5", "generate"),
    ("embed", "gemini:imagen-3.0-generate-001", "generate_image"),
    ("embed", "voyage:rerank-2.5", "rerank"),
    ("speak", "openai:gpt-5.2", "generate"),
    ("speak", "openai:whisper-1", "transcribe"),
    ("speak", "gemini:gemini-3.8-flash", "generate"),
    ("transcribe", "openai:tts-1", "speak"),
    ("transcribe", "openai:gpt-image-2", "generate_image"),
    ("generate_video", "gemini:gemini-3.8-flash", "generate"),
    ("generate_video", "xai:grok-imagine-image", "generate_image"),
    ("moderate", "openai:gpt-5.2", "generate"),
    ("rerank", "voyage:voyage-3.5", "embed"),
    ("rerank", "cohere:command-a-03-2025", "generate"),
    ("stream_image", "openai:tts-1", "speak"),
    ("stream_speech", "openai:gpt-5.2", "generate"),
    ("stream_transcription", "openai:gpt-image-2", "generate_image"),
]
RIGHT = [
    ("generate_image", "openai:gpt-image-2"),
    ("generate_image", "openai:gpt-5.2"),  # with the hosted tool
    ("generate_image", "gemini:gemini-3-pro-image"),
    ("generate_image", "openrouter:google/gemini-3-pro-image"),
    ("embed", "openai:text-embedding-3-small"),
    ("embed", "openai:house-model"),
    ("speak", "openai:tts-1"),
    ("speak", "gemini:gemini-2.5-flash-preview-tts"),
    ("transcribe", "openai:whisper-1"),
    ("transcribe", "gemini:gemini-3.8-flash"),
    ("transcribe", "mistral:voxtral-mini-2602"),
    ("generate_video", "gemini:veo-3.1-generate-preview"),
    ("generate_video", "xai:grok-imagine-video"),
    ("moderate", "openai:omni-moderation-latest"),
    ("rerank", "voyage:rerank-2.5"),
    ("rerank", "jina:jina-reranker-v9"),
    ("embed", "jina:jina-embeddings-v9"),
]


def ask(function, model, **options):
    """What a call raised, and how many requests were sent. Nothing is answered."""
    transport = CannedTransport([CannedReply(status=500, body=b"{}")])
    provider = model.partition(":")[0]

    async def call():
        client = Client({provider: HttpAdapter(provider, "k", transport=transport)})
        try:
            if function in STREAMS:
                async for _ in STREAMS[function](model, client=client, max_retries=0, **options):
                    pass
            else:
                await ASK[function](model, client=client, max_retries=0, **options)
        except SDKError as error:
            return error
        finally:
            await client.close()
        return None

    return asyncio.run(call()), len(transport.requests)


@pytest.mark.parametrize(("function", "model", "other"), WRONG)
def test_a_model_of_another_kind_is_refused_with_the_function_to_use(function, model, other):
    """Nothing is sent; the error names the kind, the function, and how to send it anyway."""
    error, count = ask(function, model)

    assert (type(error), count) == (UnsupportedError, 0)
    assert f"use {other}(...)" in error.message
    assert "on_loss='warn'" in error.message


@pytest.mark.parametrize(("function", "model", "other"), WRONG)
def test_a_model_of_another_kind_is_asked_if_the_caller_insists(function, model, other):
    """With `on_loss="warn"` the provider decides."""
    error, count = ask(function, model, on_loss="warn")

    assert isinstance(error, ServerError), (error, other)
    assert count == 1


@pytest.mark.parametrize(("function", "model"), RIGHT)
def test_a_model_that_can_do_it_is_asked(function, model):
    """Its kind is the right one or unknown, or it is a chat model that does this as well."""
    error, count = ask(function, model)

    assert (type(error), count) == (ServerError, 1)


def test_the_error_names_a_model_of_the_right_kind():
    """The best of the same provider."""
    error, _ = ask("generate_image", "openai:tts-1")
    best = list_models("openai", kind="image", available=True)[0]

    assert f"such as openai:{best.id}" in error.message


@pytest.mark.parametrize(
    ("function", "model", "setting", "given", "allowed"),
    [
        ("embed", "openai:text-embedding-3-small", "dimensions", 1537, "at most 1536"),
        ("embed_many", "openai:text-embedding-3-large", "dimensions", 4000, "at most 3072"),
        ("speak", "openai:tts-1", "speed", 5.0, "from 0.25 to 4"),
        ("stream_speech", "openai:gpt-4o-mini-tts", "speed", 0.1, "from 0.25 to 4"),
        ("generate_image", "openai:gpt-image-1-mini", "size", "2048x2048", "1536x1024"),
        ("generate_video", "gemini:veo-3.1-generate-preview", "seconds", 5, "4, 6, 8"),
        ("generate_video", "xai:grok-imagine-video", "size", "1920x1080", "480p, 720p"),
    ],
)
def test_a_setting_outside_of_what_the_catalog_knows_is_refused(
    function, model, setting, given, allowed
):
    """Nothing is sent; the error names the setting and what is allowed."""
    error, count = ask(function, model, **{setting: given})

    assert (type(error), count) == (UnsupportedError, 0)
    assert setting in error.message
    assert allowed in error.message


@pytest.mark.parametrize(
    ("function", "model", "settings"),
    [
        ("embed", "openai:text-embedding-3-small", {"dimensions": 1536}),
        ("speak", "openai:tts-1", {"speed": 4.0}),
        ("generate_image", "openai:gpt-image-1-mini", {"size": "auto"}),
        ("generate_video", "gemini:veo-3.1-generate-preview", {"seconds": 8, "size": "1280x720"}),
        ("generate_video", "xai:grok-imagine-video", {"seconds": 15, "size": "720p"}),
        ("embed", "openai:house-model", {"dimensions": 99_999}),
        ("embed", "voyage:voyage-3.5", {"dimensions": 2048}),  # 1024 if nothing is asked for
    ],
)
def test_a_setting_within_the_limits_is_sent(function, model, settings):
    """What the catalog allows, or does not know, the provider decides."""
    error, count = ask(function, model, **settings)

    assert (type(error), count) == (ServerError, 1)


@pytest.mark.parametrize(
    ("function", "row", "settings"),
    [
        ("speak", {"kind": "speech", "speeds": [0.5, 2.0]}, {"speed": 3.0}),
        ("generate_image", {"kind": "image", "sizes": ["640x640"]}, {"size": "512x512"}),
        ("generate_image", {"kind": "speech"}, {}),
        ("embed", {"kind": "embedding", "max_dimensions": 8}, {"dimensions": 9}),
    ],
)
def test_limits_of_ones_own_catalog_are_checked(tmp_path, function, row, settings):
    """A file of the user's that is merged over the catalog counts as the catalog does."""
    path = tmp_path / "own.json"
    model = {"id": "house-model", "provider": "openai", **row}
    path.write_text(json.dumps({"models": [model]}), "utf-8")
    try:
        update(path)
        error, count = ask(function, "openai:house-model", **settings)
    finally:
        reset_table()

    assert (type(error), count) == (UnsupportedError, 0)


def test_what_the_catalog_knows_of_video_models():
    """How long their videos are, whether they take an image, and whether there is sound."""
    models = [
        model
        for provider in ("gemini", "vertex", "xai", "openai", "azure")
        for model in list_models(provider, kind="video")
    ]
    assert len(models) > 15
    for model in models:
        assert model.seconds, model.id
        assert "image" in model.input_modalities, model.id
        assert "video" in model.output_modalities, model.id
        has_sound = not model.id.startswith("veo-2")
        assert ("audio" in model.output_modalities) == has_sound, model.id


@pytest.mark.parametrize(
    ("kind", "output"),
    [("image", "image"), ("speech", "audio"), ("transcription", "text"), ("video", "video")],
)
def test_what_models_return(kind, output):
    """Every model that is no chat model says what it makes."""
    assert all(output in model.output_modalities for model in list_models(kind=kind))


def test_what_a_chat_model_returns():
    """A chat model that draws says so, and one that only speaks is no answer to text."""
    assert get_model_info("gemini-3-pro-image").output_modalities == ("text", "image")
    assert get_model_info("gemini-2.5-flash-preview-tts").output_modalities == ("audio",)
