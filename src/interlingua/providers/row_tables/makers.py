"""The APIs of those who make models."""

from __future__ import annotations

from interlingua.providers.provider import Provider
from interlingua.providers.row_tables.builders import (
    DOCS,
    MESSAGES,
    RECORDED,
    RESPONSES,
    UNVERIFIED,
    chat,
)

ROWS: tuple[Provider, ...] = (
    Provider(
        name="openai",
        dialect=RESPONSES,
        other_dialects=("openai_chat",),
        families=(
            *("gpt-", "chatgpt-", "o1", "o3", "o4-", "codex-", "computer-use-", "ft:"),
            *("text-embedding-", "dall-e", "whisper-", "tts-1", "sora-"),
        ),
        base_url="https://api.openai.com/v1",
        key_env=("OPENAI_API_KEY",),
        base_url_env=("OPENAI_BASE_URL",),
        headers_env={"openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID"},
        header_options={"organization": "openai-organization", "project": "openai-project"},
        request_id_header="x-client-request-id",
        sources=(RECORDED, "SDK openai"),
    ),
    Provider(
        name="anthropic",
        dialect=MESSAGES,
        aliases=("claude",),
        families=("claude",),
        base_url="https://api.anthropic.com",
        signing="x-api-key",
        key_env=("ANTHROPIC_API_KEY",),
        base_url_env=("ANTHROPIC_BASE_URL",),
        sources=(RECORDED, "SDK anthropic"),
    ),
    Provider(
        name="gemini",
        dialect="gemini_generate",
        aliases=("google", "googleai", "google_genai"),
        families=("gemini-", "imagen-", "veo-"),
        base_url="https://generativelanguage.googleapis.com",
        signing="x-goog-api-key",
        key_env=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        base_url_env=("GEMINI_BASE_URL",),
        sources=(RECORDED, "SDK google-genai"),
    ),
    chat(
        "xai",
        "https://api.x.ai/v1",
        *(RECORDED, DOCS),
        aliases=("x-ai",),
        families=("grok-",),
        other_dialects=(RESPONSES,),
    ),
    chat(
        "mistral",
        "https://api.mistral.ai/v1",
        *(RECORDED, "SDK mistralai 3.7.0"),
        aliases=("mistralai",),
        families=(
            *("mistral-", "codestral", "ministral", "magistral", "pixtral", "devstral", "voxtral"),
            *("open-mistral", "open-mixtral"),
        ),
    ),
    chat(
        "deepseek",
        "https://api.deepseek.com",
        *(RECORDED, DOCS),
        families=("deepseek-",),
        other_dialects=(RESPONSES,),
    ),
    chat(
        "moonshot",
        "https://api.moonshot.ai/v1",
        DOCS,
        aliases=("moonshotai",),
        families=("kimi-", "moonshot-"),
        key_env=("MOONSHOTAI_API_KEY", "MOONSHOT_API_KEY"),
        base_url_env=("MOONSHOTAI_BASE_URL", "MOONSHOT_BASE_URL"),
    ),
    chat(
        "zai",
        "https://api.z.ai/api/paas/v4",
        *(RECORDED, DOCS),
        aliases=("z-ai", "zhipu"),
        families=("glm-",),
    ),
    chat("perplexity", "https://api.perplexity.ai", *(RECORDED, DOCS), families=("sonar",)),
    chat(
        "cohere",  # its endpoint for clients of OpenAI
        "https://api.cohere.ai/compatibility/v1",
        *(DOCS, "SDK cohere 7.3.1"),
        families=("command-", "c4ai-", "embed-english-", "embed-multilingual-", "embed-v4"),
        key_env=("COHERE_API_KEY", "CO_API_KEY"),
    ),
    chat("ai21", "https://api.ai21.com/studio/v1", *(RECORDED, DOCS), families=("jamba-",)),
    chat(
        "alibaba",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        DOCS,
        aliases=("dashscope",),
        key_env=("ALIBABA_API_KEY", "DASHSCOPE_API_KEY"),
        base_url_env=("ALIBABA_BASE_URL", "DASHSCOPE_BASE_URL"),
    ),
    chat("minimax", "https://api.minimax.io/v1", DOCS, other_dialects=(RESPONSES,)),
    chat(
        "stepfun",
        "https://api.stepfun.ai/v1",
        DOCS,
        families=("step-",),
        key_env=("STEPFUN_API_KEY", "STEP_API_KEY"),
    ),
    chat(
        "nvidia",
        "https://integrate.api.nvidia.com/v1",
        *(RECORDED, DOCS),
        aliases=("nvidia-nim", "nvidia_nim"),
        key_env=("NVIDIA_API_KEY", "NVIDIA_NIM_API_KEY"),
    ),
    chat(
        "voyage",  # embeddings and reranking only
        "https://api.voyageai.com/v1",
        *(RECORDED, "SDK voyageai 0.5.0"),
        aliases=("voyageai", "voyage-ai", "voyage_ai"),
        families=("voyage-",),
    ),
    chat(
        "jina",  # embeddings and reranking only
        "https://api.jina.ai/v1",
        *(DOCS, UNVERIFIED),
        aliases=("jina-ai", "jina_ai", "jinaai"),
        families=("jina-",),
        key_env=("JINA_API_KEY", "JINA_AI_API_KEY"),
    ),
)
