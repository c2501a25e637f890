"""Gateways: one address in front of many providers."""

from __future__ import annotations

from interlingua.providers.endpoints import Endpoint
from interlingua.providers.provider import Provider
from interlingua.providers.row_tables.builders import (
    DOCS,
    EMBED,
    IMAGES,
    LIST,
    MESSAGES,
    RECORDED,
    RESPONSES,
    chat,
    has,
)

ROWS: tuple[Provider, ...] = (
    chat(
        "openrouter",
        "https://openrouter.ai/api/v1",
        *(RECORDED, "SDK openrouter 1.3.84"),
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
        operations=has(LIST, EMBED, **dict.fromkeys(IMAGES, "modalities")),
    ),
    chat(
        "github_copilot",
        "https://api.githubcopilot.com",
        *(RECORDED, DOCS),
        aliases=("github-copilot", "copilot"),
        other_dialects=(RESPONSES,),
        endpoints={RESPONSES: Endpoint(path="/responses")},
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
