"""The clouds: Azure, Bedrock and Vertex, whose addresses and keys are those of an account."""

from __future__ import annotations

from interlingua.providers.provider import Branch, DerivedPlace, Endpoint, Provider, SizeLimits
from interlingua.providers.row_tables.builders import (
    BATCH,
    CHAT,
    CONVERSE,
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
    chat,
    has,
)

# OpenAI's SDK adds the deployment to the path of these endpoints only, and the version to every
# URL (`openai/lib/azure.py`); seen in recordings: `/openai/deployments/…/chat/completions` and
# `/openai/responses` with `?api-version=`.
_VERSION = {"api-version": "{api_version}"}
_DEPLOYMENT = "/deployments/{model}"
# Bedrock writes the maker before the name (seen in recordings: `mistral.voxtral-mini-3b-2507`).
# At `bedrock-runtime` an inference profile (`us.`, `global.`) may precede it, and a version follows
# (`-v1:0` in `anthropic/_constants.py`); `bedrock-mantle` takes neither.
_MAKERS = (
    "(?:ai21|amazon|anthropic|cohere|deepseek|google|meta|minimax|mistral|moonshot|moonshotai"
    "|nvidia|openai|qwen|stability|twelvelabs|writer|xai|zai)"
)
_BEDROCK_IDS = (
    rf"(?:[a-z-]+\.)?{_MAKERS}\.[a-z0-9.-]+(?::[0-9]+)*"
    "|arn:aws[a-z-]*:bedrock:(?P<region>[a-z0-9-]+):.+"
)
# The ARN of a model or of a profile of AWS ends in its id. That of a profile of the account
# (`application-inference-profile`) does not tell whose model it is.
_ARN = "arn:aws[a-z-]*:bedrock:[^/]*:(?:foundation-model|inference-profile)/"
# What `bedrock-mantle` serves, and how: Claude in Messages; the models of OpenAI in Responses, of
# which some are also in Chat; in Chat the open models of OpenAI, Grok, Gemma 4, and others with
# another id at `bedrock-runtime` (`deepseek.v3-v1:0`, `qwen.qwen3-32b-v1:0`).
_CLAUDE = r"(?:anthropic\.)?claude"
_MANTLE_CHAT = (
    r"openai\.gpt-oss-[a-z0-9-]+|xai\.grok-[a-z0-9.-]+|google\.gemma-4-[a-z0-9-]+|deepseek\.v3\.1"
    r"|qwen\.qwen3-(?:32b|235b-a22b-2507|(?:coder|next|vl)-[0-9]+b-a[0-9]+b-instruct)"
)
# All models for text are in Converse, except those above:
# https://docs.aws.amazon.com/bedrock/latest/userguide/models-api-compatibility.html
_BEDROCK_BRANCHES = (
    Branch(
        models=rf"(?!.*-v[0-9]+$){_CLAUDE}[a-z0-9.-]*",
        dialect=MESSAGES,
        is_signed=False,  # the keys of AWS that people have permit `InvokeModel`
    ),
    Branch(models=rf"(?:{_ARN})?(?:[a-z-]+\.)?{_CLAUDE}.*", row="bedrock_invoke"),
    Branch(models=_MANTLE_CHAT, dialect=CHAT),
    Branch(models=r"openai\.gpt-[a-z0-9.-]+", dialect=RESPONSES),
    Branch(models="(?s:.*)", row="bedrock_converse"),
)
_REGION = {"region": ("AWS_REGION", "AWS_DEFAULT_REGION")}
# Bedrock and Vertex read the version from the body (`anthropic/lib/bedrock/_client.py` and
# `anthropic/lib/vertex/_client.py`), and each has its own name for it.
_IN_BODY = {"anthropic-version": "anthropic_version"}
_FIRST_VERSION = "2023-06-01"
_VERTEX = "https://{host}/v1/projects/{project}/locations/{location}/publishers"
_VERTEX_ENV = {
    "project": ("GOOGLE_CLOUD_PROJECT", "ANTHROPIC_VERTEX_PROJECT_ID"),
    "location": ("GOOGLE_CLOUD_LOCATION", "GOOGLE_CLOUD_REGION", "CLOUD_ML_REGION"),
}
# The hosts of the SDKs: `anthropic/lib/vertex/_client.py` and `google/genai/_api_client.py`.
_VERTEX_HOST = DerivedPlace(
    of="location",
    form="{}-aiplatform.googleapis.com",
    exceptions={
        "global": "aiplatform.googleapis.com",
        "us": "aiplatform.us.rep.googleapis.com",
        "eu": "aiplatform.eu.rep.googleapis.com",
    },
)

# Both clouds refuse a request with a flag that they do not know: «invalid beta flag» (Bedrock,
# https://github.com/anthropics/claude-code/issues/49370), «Unexpected value(s) … for the
# `anthropic-beta` header» (Vertex). Bedrock's are those of its documentation:
# https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages-request-response.html
_CLOUD_FLAGS = (
    *("compact-2026-01-12", "computer-use-2025-01-24", "computer-use-2025-11-24"),
    *("context-1m-2025-08-07", "context-management-2025-06-27", "interleaved-thinking-2025-05-14"),
    "tool-search-tool-2025-10-19",
)
_BEDROCK_FLAGS = (
    *_CLOUD_FLAGS,
    *("dev-full-thinking-2025-05-14", "effort-2025-11-24", "output-128k-2025-02-19"),
    *("token-efficient-tools-2025-02-19", "tool-examples-2025-10-29"),
)
_VERTEX_FLAGS = (*_CLOUD_FLAGS, "web-search-2025-03-05")

ROWS: tuple[Provider, ...] = (
    chat(
        "azure",  # each resource has its own host, so there is no base URL
        "",
        *(RECORDED, DOCS),
        aliases=("azure-openai", "azure_openai"),
        other_dialects=(RESPONSES,),
        base_path="/openai/v1",  # seen in recordings: this form needs no version
        versioned_endpoints={
            CHAT: Endpoint(
                base_path="/openai",
                path=f"{_DEPLOYMENT}/chat/completions",
                query=_VERSION,
                operation_paths={
                    "embed": f"{_DEPLOYMENT}/embeddings",
                    "generate_image": f"{_DEPLOYMENT}/images/generations",
                    "edit_image": f"{_DEPLOYMENT}/images/edits",
                    "transcribe": f"{_DEPLOYMENT}/audio/transcriptions",
                    "speak": f"{_DEPLOYMENT}/audio/speech",
                    "stream_speech": f"{_DEPLOYMENT}/audio/speech",
                },
            ),
            RESPONSES: Endpoint(base_path="/openai", path="/responses", query=_VERSION),
        },
        version_env=("OPENAI_API_VERSION", "AZURE_OPENAI_API_VERSION"),
        signing="api-key",
        token_signing="bearer",  # noqa: S106 -- a callable makes tokens of Entra
        key_env=("AZURE_OPENAI_API_KEY",),
        token_env=("AZURE_OPENAI_AD_TOKEN",),  # as OpenAI's SDK calls it (`openai/lib/azure.py`)
        base_url_env=("AZURE_OPENAI_ENDPOINT",),
        operations=has(
            *(MODELS, EMBED, IMAGES, TRANSCRIBE, SPEAK, FILES, BATCH), ("stream_transcription",)
        ),
        sizes=SizeLimits(audio=25 * MB, file=512 * MB),
    ),
    chat(
        "bedrock",
        "https://bedrock-mantle.{region}.api.aws",
        *(RECORDED, DOCS),
        aliases=("bedrock-mantle", "bedrock_mantle", "amazon-bedrock", "aws-bedrock"),
        families=("nova-", "titan-"),
        own_ids=_BEDROCK_IDS,
        branches=_BEDROCK_BRANCHES,
        other_dialects=(RESPONSES, MESSAGES),
        url_env=_REGION,
        endpoints={
            CHAT: Endpoint(path="/v1/chat/completions"),
            MESSAGES: Endpoint(path="/anthropic/v1/messages", flags=_BEDROCK_FLAGS),
        },
        # `anthropic/lib/bedrock/_mantle.py` and `openai/lib/_bedrock_auth.py` sign for it too.
        signing="sigv4",
        aws_service="bedrock-mantle",
        identity="aws",
        key_env=("AWS_BEARER_TOKEN_BEDROCK",),
        base_url_env=("BEDROCK_BASE_URL",),
        operation_paths={"list_models": "/v1/models"},  # in the form of OpenAI for all models
        operations=has(LIST),
    ),
    Provider(
        name="bedrock_invoke",  # the models of Anthropic through `InvokeModel`
        dialect=MESSAGES,
        aliases=("bedrock-invoke", "bedrock_runtime", "bedrock-runtime"),
        own_ids=_BEDROCK_IDS,
        makers=("anthropic",),
        base_url="https://bedrock-runtime.{region}.amazonaws.com",
        url_env=_REGION,
        endpoints={
            MESSAGES: Endpoint(
                path="/model/{model}/invoke",
                stream_path="/model/{model}/invoke-with-response-stream",
                stream_accept="application/vnd.amazon.eventstream",
                without=("stream",),  # the path says it; Anthropic's SDK removes the field too
                header_fields={**_IN_BODY, "anthropic-beta": "anthropic_beta"},
                header_values={_FIRST_VERSION: "bedrock-2023-05-31"},
                flags=_BEDROCK_FLAGS,
            ),
        },
        signing="sigv4",
        aws_service="bedrock",
        identity="aws",
        only_named=True,
        key_required=False,
        sources=(DOCS, "SDK anthropic"),
        operations=has(),
    ),
    Provider(
        name="bedrock_converse",  # all models that Bedrock serves for text, through `Converse`
        dialect=CONVERSE,
        aliases=("bedrock-converse", "converse"),
        own_ids=_BEDROCK_IDS,
        base_url="https://bedrock-runtime.{region}.amazonaws.com",
        url_env=_REGION,
        endpoints={
            CONVERSE: Endpoint(
                path="/model/{model}/converse",
                stream_path="/model/{model}/converse-stream",
                stream_accept="application/vnd.amazon.eventstream",
                operation_paths={"count_tokens": "/model/{model}/count-tokens"},
            ),
        },
        signing="sigv4",
        aws_service="bedrock",
        identity="aws",
        key_env=("AWS_BEARER_TOKEN_BEDROCK",),
        only_named=True,
        key_required=False,
        sources=(DOCS, "SDK botocore"),
        operations=has(COUNT),
    ),
    Provider(
        name="vertex",
        dialect=GEMINI,
        aliases=("vertex_ai", "vertex-ai", "vertexai", "google-vertex", "google_vertex"),
        base_url=f"{_VERTEX}/google",
        url_env=_VERTEX_ENV,
        derived_places={"host": _VERTEX_HOST},
        endpoints={
            GEMINI: Endpoint(
                path="/models/{model}:generateContent",
                stream_path="/models/{model}:streamGenerateContent?alt=sse",
            ),
        },
        identity="google",
        only_named=True,
        key_required=False,
        sources=(RECORDED, "SDK google-genai"),
        operations=has(
            ("download_video",),
            count_tokens="vertex",
            embed="vertex",
            create_video="vertex",
            retrieve_video="vertex",
        ),
    ),
    Provider(
        name="vertex_anthropic",
        dialect=MESSAGES,
        aliases=("vertex-anthropic", "google-vertex-anthropic", "anthropic-vertex"),
        makers=("anthropic",),
        base_url=f"{_VERTEX}/anthropic",
        url_env=_VERTEX_ENV,
        derived_places={"host": _VERTEX_HOST},
        endpoints={
            MESSAGES: Endpoint(
                path="/models/{model}:rawPredict",
                stream_path="/models/{model}:streamRawPredict",
                header_fields=_IN_BODY,
                header_values={_FIRST_VERSION: "vertex-2023-10-16"},
                flags=_VERTEX_FLAGS,
                # The model stays in the body there (`anthropic/lib/vertex/_client.py`).
                operation_paths={"count_tokens": "/models/count-tokens:rawPredict"},
            ),
        },
        identity="google",
        only_named=True,
        key_required=False,
        sources=(RECORDED, "SDK anthropic"),
        operations=has(COUNT),
    ),
)
