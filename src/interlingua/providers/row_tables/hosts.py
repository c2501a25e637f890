"""Hosts of models that others made; gateways are one address in front of many hosts."""

from __future__ import annotations

from interlingua.providers.provider import Endpoint, Provider, SizeLimits
from interlingua.providers.row_tables.builders import (
    BATCH,
    DOCS,
    EMBED,
    FILES,
    IMAGES,
    LIST,
    MB,
    MESSAGES,
    MODELS,
    RECORDED,
    RESPONSES,
    SPEAK,
    TAGGED_IDS,
    TRANSCRIBE,
    UNVERIFIED,
    chat,
    has,
)

ROWS: tuple[Provider, ...] = (
    chat(
        "fireworks",
        "https://api.fireworks.ai/inference/v1",
        *("SDK fireworks-ai 1.2.28", DOCS),
        aliases=("fireworks-ai", "fireworks_ai"),
        other_dialects=(RESPONSES,),
        operations=has(LIST, EMBED),
    ),
    chat(
        "groq",
        "https://api.groq.com/openai/v1",
        *(RECORDED, "SDK groq 1.7.0"),
        base_path="/openai/v1",  # Groq's own SDK takes the host without a path
        other_dialects=(RESPONSES,),
        operations=has(MODELS, SPEAK, FILES, BATCH, transcribe="timed"),
        sizes=SizeLimits(audio=100 * MB),
    ),
    chat(
        "together",
        "https://api.together.xyz/v1",
        *(RECORDED, "SDK together 3.0.0"),
        aliases=("togetherai", "together_ai"),
        operations=has(*(LIST, EMBED, TRANSCRIBE, SPEAK, ("rerank",)), generate_image="together"),
    ),
    chat(
        "cerebras",
        "https://api.cerebras.ai/v1",
        *(RECORDED, "SDK cerebras_cloud_sdk 1.91.0"),
        operations=has(MODELS),
    ),
    chat(
        "huggingface",
        "https://router.huggingface.co/v1",
        *(RECORDED, DOCS),
        aliases=("hugging-face", "hugging_face"),
        other_dialects=(RESPONSES,),
        key_env=("HF_TOKEN", "HUGGINGFACE_API_KEY"),
        operations=has(LIST),
    ),
    chat(
        "databricks",  # each workspace has its own host
        "",
        *(RECORDED, DOCS),
        families=("databricks-", "dbrx-"),
        base_path="/serving-endpoints",  # seen in recordings: `/serving-endpoints/chat/completions`
        key_env=("DATABRICKS_TOKEN", "DATABRICKS_API_KEY"),
        base_url_env=("DATABRICKS_BASE_URL", "DATABRICKS_HOST"),
        operations=has(embed="float"),
    ),
    chat(
        "snowflake",
        "https://{account}.snowflakecomputing.com/api/v2/cortex/v1",
        *(RECORDED, DOCS),
        families=("snowflake-",),
        other_dialects=(MESSAGES,),
        url_env={"account": ("SNOWFLAKE_ACCOUNT", "SNOWFLAKE_ACCOUNT_ID")},
        key_env=("SNOWFLAKE_TOKEN", "SNOWFLAKE_API_KEY"),
        operations=has(),
    ),
    chat(
        "cloudflare",
        "https://api.cloudflare.com/client/v4/accounts/{account}/ai/v1",
        *(RECORDED, DOCS),
        aliases=("workers-ai", "cloudflare-workers-ai"),
        families=("@cf/",),
        url_env={"account": ("CLOUDFLARE_ACCOUNT_ID",)},
        key_env=("CLOUDFLARE_API_KEY", "CLOUDFLARE_API_TOKEN"),
        operations=has(embed="float"),
    ),
    chat(
        "github",  # not GITHUB_TOKEN: every workflow has one, for other purposes
        "https://models.github.ai/inference",
        *(DOCS, UNVERIFIED),
        aliases=("github-models", "github_models"),
        key_env=("GITHUB_MODELS_API_KEY", "GITHUB_API_KEY"),
        base_url_env=("GITHUB_MODELS_BASE_URL",),
        operations=has(EMBED),
    ),
    chat(
        "sambanova",
        "https://api.sambanova.ai/v1",
        DOCS,
        operations=has(LIST, EMBED, TRANSCRIBE),
    ),
    chat(
        "novita",
        "https://api.novita.ai/openai/v1",
        DOCS,
        operations=has(LIST, EMBED),
    ),
    chat(
        "deepinfra",
        "https://api.deepinfra.com/v1/openai",
        DOCS,
        operations=has(LIST, EMBED, TRANSCRIBE, SPEAK, generate_image="b64"),
    ),
    chat(
        "hyperbolic",
        "https://api.hyperbolic.xyz/v1",
        DOCS,
        operations=has(LIST),
    ),
    chat(
        "nebius",
        "https://api.tokenfactory.nebius.com/v1",
        DOCS,
        other_dialects=(RESPONSES,),
        operations=has(LIST, EMBED, generate_image="b64"),
    ),
    chat(
        "baseten",
        "https://inference.baseten.co/v1",
        DOCS,
        operations=has(LIST),
    ),
    chat(
        "venice",
        "https://api.venice.ai/api/v1",
        *(RECORDED, DOCS),
        aliases=("veniceai", "venice-ai"),
        families=("venice-",),
        key_env=("VENICE_API_KEY", "VENICE_AI_API_KEY"),
        operations=has(LIST, EMBED, SPEAK, generate_image="b64"),
    ),
    chat(
        "doubleword",
        "https://api.doubleword.ai/v1",
        *(RECORDED, DOCS),
        operations=has(LIST, EMBED, FILES, BATCH),
    ),
    chat(
        "crusoe",
        "https://api.inference.crusoecloud.com/v1",
        *(RECORDED, DOCS),
        operations=has(LIST),
    ),
    chat(
        "avian",
        "https://api.avian.io/v1",
        *(RECORDED, DOCS),
        operations=has(LIST),
    ),
    chat(
        "ollama_cloud",  # OLLAMA_API_KEY belongs to `ollama`, whose address may be any
        "https://ollama.com/v1",
        *(RECORDED, DOCS),
        aliases=("ollama-cloud",),
        own_ids=TAGGED_IDS,
        operations=has(LIST),
    ),
)

GATEWAYS: tuple[Provider, ...] = (
    chat(
        "openrouter",
        "https://openrouter.ai/api/v1",
        *(RECORDED, "SDK openrouter 1.3.84"),
        own_ids="[^/:]+/[^/:]+:[a-z]+",  # seen in recordings: `:free`, `:thinking`
        other_dialects=(RESPONSES,),
        operations=has(LIST, EMBED, **dict.fromkeys(IMAGES, "modalities")),
    ),
    chat(
        "vercel",
        "https://ai-gateway.vercel.sh/v1",
        *(RECORDED, DOCS),
        aliases=("vercel-gateway", "ai-gateway", "vercel_ai_gateway"),
        key_env=("AI_GATEWAY_API_KEY", "VERCEL_AI_GATEWAY_API_KEY"),
        base_url_env=("VERCEL_AI_GATEWAY_BASE_URL",),
        operations=has(MODELS, EMBED, **dict.fromkeys(IMAGES, "modalities")),
    ),
    chat(
        "github_copilot",
        "https://api.githubcopilot.com",
        *(RECORDED, DOCS),
        aliases=("github-copilot", "copilot"),
        other_dialects=(RESPONSES,),
        endpoints={
            RESPONSES: Endpoint(  # seen in recordings: no version
                path="/responses",
                operation_paths={"list_models": "/models", "embed": "/embeddings"},
            )
        },
        key_env=("GITHUB_COPILOT_API_KEY", "COPILOT_GITHUB_TOKEN"),
        base_url_env=("GITHUB_COPILOT_BASE_URL", "COPILOT_API_URL"),
        # Without it fewer models are there.
        headers={"copilot-integration-id": "vscode-chat"},
        operations=has(LIST, embed="float"),
    ),
    chat("portkey", "https://api.portkey.ai/v1", *(RECORDED, DOCS), signing="x-portkey-api-key"),
    chat(
        "litellm",  # the proxy that a user runs, at any address
        "",
        *(RECORDED, DOCS),
        aliases=("litellm-proxy", "litellm_proxy"),
        other_dialects=(RESPONSES, MESSAGES),
        base_path="/v1",
        key_required=False,
        key_env=("LITELLM_API_KEY", "LITELLM_PROXY_API_KEY"),
        base_url_env=("LITELLM_BASE_URL", "LITELLM_PROXY_API_BASE"),
    ),
)
