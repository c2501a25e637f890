"""Servers that users run themselves, and the row for any other."""

from __future__ import annotations

from interlingua.providers.provider import Provider
from interlingua.providers.row_tables.builders import (
    CHAT,
    DOCS,
    EMBED,
    LIST,
    MESSAGES,
    MODELS,
    RECORDED,
    RESPONSES,
    TAGGED_IDS,
    has,
    local,
)

ROWS: tuple[Provider, ...] = (
    local(
        "ollama",
        11434,
        *(RECORDED, "SDK ollama 0.6.3"),
        other_dialects=(RESPONSES, MESSAGES),
        base_url_env=("OLLAMA_BASE_URL", "OLLAMA_HOST"),
        own_ids=TAGGED_IDS,
        operations=has(MODELS, EMBED),
    ),
    local("vllm", 8000, *(RECORDED, DOCS), other_dialects=(RESPONSES, MESSAGES)),
    local(
        "llamacpp",
        8080,
        *(RECORDED, "a real server in the tests"),
        aliases=("llama.cpp", "llama-cpp", "llama_cpp"),
        other_dialects=(RESPONSES, MESSAGES),
    ),
    local(
        "lmstudio",
        1234,
        DOCS,
        aliases=("lm-studio", "lm_studio"),
        other_dialects=(RESPONSES, MESSAGES),
        operations=has(LIST, EMBED),
    ),
    local(
        "mistralrs",
        1234,
        *(RECORDED, DOCS),
        aliases=("mistral.rs", "mistral-rs", "mistral_rs"),
        other_dialects=(RESPONSES,),
    ),
    local("sglang", 30000, DOCS),
    local("gpustack", 80, *(RECORDED, DOCS)),
    Provider(
        name="local",  # the embedded model; its address is known once it runs
        dialect=CHAT,
        other_dialects=(RESPONSES, MESSAGES),
        base_path="/v1",
        key_required=False,
        is_local=True,
        is_embedded=True,
        sources=("a real server in the tests",),
    ),
    Provider(
        name="openai_compatible",
        dialect=CHAT,
        other_dialects=(RESPONSES, MESSAGES),
        aliases=("openai-compatible",),
        key_required=False,
        sources=("recordings of other rows",),
    ),
)
