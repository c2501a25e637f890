"""The APIs of those who make models."""

from __future__ import annotations

from interlingua.providers.provider import Endpoint, Provider, SizeLimits
from interlingua.providers.row_tables.builders import (
    BATCH,
    CHAT,
    COUNT,
    DOCS,
    EMBED,
    FILES,
    GEMINI,
    IMAGES,
    LIST,
    MB,
    MESSAGES,
    MODELS,
    RECORDED,
    RESPONSES,
    SPEAK,
    TRANSCRIBE,
    UNVERIFIED,
    VIDEO,
    chat,
    has,
)

ROWS: tuple[Provider, ...] = (
    Provider(
        name="openai",
        dialect=RESPONSES,
        other_dialects=(CHAT,),
        families=(
            *("gpt-", "chatgpt-", "o1", "o3", "o4-", "codex-", "computer-use-"),
            *("text-embedding-", "dall-e", "whisper-", "tts-1", "sora-"),
        ),
        # The form and the models: `openai/types/fine_tuning/job_create_params.py`.
        own_ids="ft:(?:gpt-|o[0-9]|babbage-|davinci-).+",
        base_url="https://api.openai.com/v1",
        key_env=("OPENAI_API_KEY",),
        base_url_env=("OPENAI_BASE_URL",),
        # Both headers: https://developers.openai.com/api/reference/overview; the variables are
        # those of OpenAI's SDK (`openai/_client.py`).
        headers_env={"openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID"},
        header_options={"organization": "openai-organization", "project": "openai-project"},
        # OpenAI finds a call by this id if no reply arrived:
        # https://developers.openai.com/api/reference/overview (debugging requests).
        request_id_header="x-client-request-id",
        sources=(RECORDED, "SDK openai"),
        # Audio: https://platform.openai.com/docs/guides/speech-to-text. A file: the docstring of
        # `files.create` in OpenAI's SDK.
        sizes=SizeLimits(request=50 * MB, audio=25 * MB, file=512 * MB),
        operations=has(
            *(MODELS, COUNT, EMBED, IMAGES, TRANSCRIBE, SPEAK, FILES, BATCH),
            ("moderate", "stream_image", "stream_transcription"),
        ),
    ),
    Provider(
        name="anthropic",
        dialect=MESSAGES,
        other_dialects=(CHAT,),
        endpoints={
            # Seen in recordings: this path. Its clients are those of OpenAI, so the key is a
            # bearer token there: https://docs.anthropic.com/en/api/openai-sdk.
            CHAT: Endpoint(
                path="/v1/chat/completions",
                signing="bearer",
                operation_paths={
                    "list_models": "/v1/models",
                    "retrieve_model": "/v1/models/{model}",
                },
            )
        },
        aliases=("claude",),
        families=("claude",),
        base_url="https://api.anthropic.com",
        signing="x-api-key",
        key_env=("ANTHROPIC_API_KEY",),
        base_url_env=("ANTHROPIC_BASE_URL",),
        sources=(RECORDED, "SDK anthropic"),
        # https://docs.anthropic.com/en/api/errors: the maximum sizes by endpoint.
        sizes=SizeLimits(request=32 * MB, file=500 * MB),
        operations=has(MODELS, COUNT, FILES, BATCH),
    ),
    Provider(
        name="gemini",
        dialect=GEMINI,
        other_dialects=(CHAT,),
        endpoints={
            # Seen in recordings: this path. The key is a bearer token there, as OpenAI's clients
            # send it: https://ai.google.dev/gemini-api/docs/openai.
            CHAT: Endpoint(
                path="/v1beta/openai/chat/completions",
                signing="bearer",
                operation_paths={
                    "list_models": "/v1beta/openai/models",
                    "retrieve_model": "/v1beta/openai/models/{model}",
                    "embed": "/v1beta/openai/embeddings",
                    "generate_image": "/v1beta/openai/images/generations",
                },
            )
        },
        aliases=("google", "googleai", "google_genai"),
        families=("gemini-", "imagen-", "veo-"),
        base_url="https://generativelanguage.googleapis.com",
        signing="x-goog-api-key",
        # The first name is that of Google's documentation. If both are set, its SDK takes the
        # second (`google/genai/_api_client.py`).
        key_env=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        base_url_env=("GEMINI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"),
        sources=(RECORDED, "SDK google-genai"),
        # Google's documentation said 20 MB, and newer pages say 100; the smaller is safe.
        sizes=SizeLimits(request=20 * MB, file=2048 * MB),
        operations=has(
            *(MODELS, COUNT, EMBED, IMAGES, TRANSCRIBE, SPEAK, VIDEO, FILES, BATCH),
            ("list_videos", "cancel_video", "stream_transcription"),
        ),
    ),
    Provider(
        name="chatgpt",  # the models of a ChatGPT subscription, as Codex uses them
        dialect=RESPONSES,
        aliases=("chatgpt-codex", "chatgpt_codex"),
        base_url="https://chatgpt.com/backend-api/codex",
        endpoints={RESPONSES: Endpoint(path="/responses")},
        key_env=("CHATGPT_ACCESS_TOKEN",),
        base_url_env=("CHATGPT_BASE_URL",),
        headers_env={"chatgpt-account-id": "CHATGPT_ACCOUNT_ID"},
        sources=(RECORDED, UNVERIFIED),
        operations=has(),
    ),
    chat(
        "xai",
        "https://api.x.ai/v1",
        *(RECORDED, DOCS),
        aliases=("x-ai",),
        families=("grok-",),
        other_dialects=(RESPONSES,),
        operations=has(MODELS, **dict.fromkeys((*IMAGES, *VIDEO, *FILES, *BATCH), "xai")),
        # The guide says 48 MB, the reference 50: the smaller is safe.
        sizes=SizeLimits(file=48 * MB),
    ),
    chat(
        "mistral",
        "https://api.mistral.ai/v1",
        *(RECORDED, "SDK mistralai 3.7.0"),
        aliases=("mistralai",),
        sizes=SizeLimits(file=512 * MB),
        families=(
            *("mistral-", "codestral", "ministral", "magistral", "pixtral", "devstral", "voxtral"),
            *("open-mistral", "open-mixtral"),
        ),
        operations=has(
            MODELS,
            embed="mistral",
            moderate="mistral",
            **dict.fromkeys((*TRANSCRIBE, *SPEAK, *FILES, *BATCH), "mistral"),
            stream_transcription="mistral",
        ),
    ),
    chat(
        "deepseek",
        "https://api.deepseek.com",
        *(RECORDED, DOCS),
        families=("deepseek-",),
        other_dialects=(RESPONSES,),
        # Seen in recordings: `/responses`, `/chat/completions` and `/models`, without a version.
        endpoints={
            RESPONSES: Endpoint(path="/responses", operation_paths={"list_models": "/models"})
        },
        operations=has(LIST),
    ),
    chat(
        "moonshot",
        "https://api.moonshot.ai/v1",
        DOCS,
        aliases=("moonshotai",),
        families=("kimi-", "moonshot-"),
        key_env=("MOONSHOTAI_API_KEY", "MOONSHOT_API_KEY"),
        base_url_env=("MOONSHOTAI_BASE_URL", "MOONSHOT_BASE_URL"),
        operations=has(LIST),
    ),
    chat(
        "zai",
        "https://api.z.ai/api/paas/v4",
        *(RECORDED, DOCS),
        aliases=("z-ai", "zhipu"),
        families=("glm-",),
        operations=has(LIST),
    ),
    chat(
        "perplexity",
        "https://api.perplexity.ai",
        *(RECORDED, DOCS),
        families=("sonar",),
        # The list has the models of the Agent API, by the names that it has for them:
        # https://docs.perplexity.ai/api-reference/models-get.
        operations=has(LIST, embed="perplexity"),
        # Seen in recordings: embeddings have a version in their path, chat has none.
        operation_paths={"embed": "/v1/embeddings", "list_models": "/v1/models"},
    ),
    chat(
        "cohere",  # its endpoint for clients of OpenAI
        "https://api.cohere.ai/compatibility/v1",
        *(DOCS, "SDK cohere 7.3.1"),
        families=("command-", "c4ai-", "embed-english-", "embed-multilingual-", "embed-v4"),
        key_env=("COHERE_API_KEY", "CO_API_KEY"),
        operations=has(embed="cohere", rerank="cohere"),
    ),
    chat(
        "ai21",
        "https://api.ai21.com/studio/v1",
        *(RECORDED, DOCS),
        families=("jamba-",),
        operations=has(),
    ),
    chat(
        "alibaba",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        DOCS,
        aliases=("dashscope",),
        key_env=("ALIBABA_API_KEY", "DASHSCOPE_API_KEY"),
        base_url_env=("ALIBABA_BASE_URL", "DASHSCOPE_BASE_URL"),
        operations=has(LIST, embed="float"),
    ),
    chat(
        "minimax",
        "https://api.minimax.io/v1",
        DOCS,
        other_dialects=(RESPONSES,),
        operations=has(),
    ),
    chat(
        "stepfun",
        "https://api.stepfun.ai/v1",
        DOCS,
        families=("step-",),
        key_env=("STEPFUN_API_KEY", "STEP_API_KEY"),
        operations=has(MODELS),
    ),
    chat(
        "nvidia",
        "https://integrate.api.nvidia.com/v1",
        *(RECORDED, DOCS),
        aliases=("nvidia-nim", "nvidia_nim"),
        key_env=("NVIDIA_API_KEY", "NVIDIA_NIM_API_KEY"),
        operations=has(LIST, EMBED),
    ),
    chat(
        "voyage",  # embeddings and reranking only
        "https://api.voyageai.com/v1",
        *(RECORDED, "SDK voyageai 0.5.0"),
        aliases=("voyageai", "voyage-ai", "voyage_ai"),
        families=("voyage-",),
        operations=has(embed="voyage", rerank="voyage"),
    ),
    chat(
        "jina",  # embeddings and reranking only
        "https://api.jina.ai/v1",
        *(DOCS, UNVERIFIED),
        aliases=("jina-ai", "jina_ai", "jinaai"),
        families=("jina-",),
        key_env=("JINA_API_KEY", "JINA_AI_API_KEY"),
        operations=has(embed="jina", rerank="jina"),
    ),
)
