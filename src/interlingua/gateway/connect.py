"""How programs are told to use a gateway: one record per program, and the probe before it."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from interlingua.gateway.json_edit import Item, Step, set_json
from interlingua.gateway.keys import PREFIX as KEY_PREFIX
from interlingua.gateway.line_edits import add_yaml_item, set_env, set_toml, set_yaml
from interlingua.providers.adapter import HttpAdapter
from interlingua.serving.exchange import PREFIX
from interlingua.spec.contracts import HttpReply, HttpRequest, Transport
from interlingua.spec.errors import (
    AuthenticationError,
    ConfigurationError,
    InvalidRequestError,
    NetworkError,
    NotFoundError,
    SDKError,
)
from interlingua.spec.operations import ServedModel
from interlingua.spec.request import Request
from interlingua.transport import default_transport
from interlingua.wire.secrets import redact

KEY_VARIABLE = "INTERLINGUA_GATEWAY_KEY"
"""The variable with the key of a gateway."""
_NAME = "interlingua"
_TITLE = "Interlingua"


class Link(NamedTuple):
    """What a program is told: where the gateway is, its key, and the name of a model."""

    url: str
    key: str
    model: str
    info: ServedModel | None = None
    """What the gateway says about the model."""

    @property
    def versioned(self) -> str:
        """The address for programs that expect the version of the API in it."""
        return f"{self.url}/v1"


class Edit(NamedTuple):
    """A file, and the function that changes its text; the text of a missing file is empty."""

    path: Path
    change: Callable[[str], str]


class Places(NamedTuple):
    """Where programs have their files."""

    home: Path
    environ: Mapping[str, str]

    def folder(self, variable: str, *default: str) -> Path:
        """The folder that a variable names, else one in the home."""
        named = self.environ.get(variable)
        return Path(named) if named else self.home.joinpath(*default)


class Program(NamedTuple):
    """A program that can use a gateway."""

    title: str
    row: str
    """The provider whose API it speaks."""
    edits: Callable[[Link, Places], Sequence[Edit]] | None = None
    """The changes of its files; None if it has none."""
    text: Callable[[Link], str] | None = None
    """What is printed in place of files; it names the variable of the key, not the key."""
    start: str = ""
    """How it is started."""
    is_versioned: bool = False
    """Whether its address has the version of the API."""


def _json(path: Path, values: Mapping[tuple[Step, ...], Any]) -> Edit:
    def change(text: str) -> str:
        for place, value in values.items():
            text = set_json(text, place, value)
        return text

    return Edit(path, change)


def _claude(link: Link, places: Places) -> list[Edit]:
    # Claude Code has models of its own for small tasks and for subagents.
    models = ("MODEL", *(f"DEFAULT_{size}_MODEL" for size in ("OPUS", "SONNET", "HAIKU")))
    values = {"ANTHROPIC_BASE_URL": link.url, "ANTHROPIC_AUTH_TOKEN": link.key}
    values |= {f"ANTHROPIC_{name}": link.model for name in models}
    path = places.folder("CLAUDE_CONFIG_DIR", ".claude") / "settings.json"
    return [_json(path, {("env", name): value for name, value in values.items()})]


def _codex(link: Link, places: Places) -> list[Edit]:
    root = {"model": link.model, "model_provider": _NAME}
    values = {
        "name": _TITLE,
        "base_url": link.versioned,
        "wire_api": "responses",
        "experimental_bearer_token": link.key,
    }
    path = places.folder("CODEX_HOME", ".codex") / "config.toml"
    table = f"model_providers.{_NAME}"
    return [Edit(path, partial(set_toml, root=root, table=table, values=values))]


def _gemini(link: Link, places: Places) -> list[Edit]:
    folder = places.home / ".gemini"
    values = {
        "GOOGLE_GEMINI_BASE_URL": link.url,
        "GEMINI_API_KEY": link.key,
        "GEMINI_MODEL": link.model,
    }
    return [
        Edit(folder / ".env", partial(set_env, values=values)),
        _json(folder / "settings.json", {("security", "auth", "selectedType"): "gemini-api-key"}),
    ]


def _opencode(link: Link, places: Places) -> list[Edit]:
    folder = places.folder("XDG_CONFIG_HOME", ".config") / "opencode"
    path = folder / "opencode.json"
    if (folder / "opencode.jsonc").exists() and not path.exists():
        path = folder / "opencode.jsonc"
    model: dict[str, Any] = {"name": link.model}
    if link.info is not None and link.info.context_window and link.info.max_output_tokens:
        limits = {"context": link.info.context_window, "output": link.info.max_output_tokens}
        model["limit"] = limits
    own = {
        "npm": "@ai-sdk/openai-compatible",
        "name": _TITLE,
        "options": {"baseURL": link.versioned, "apiKey": link.key},
        "models": {link.model: model},
    }
    return [_json(path, {("provider", _NAME): own, ("model",): f"{_NAME}/{link.model}"})]


def _qwen(link: Link, places: Places) -> list[Edit]:
    # A key is read from a variable; those of `env` count if the environment has none.
    own = {
        "id": link.model,
        "name": f"{_TITLE}: {link.model}",
        "baseUrl": link.versioned,
        "envKey": KEY_VARIABLE,
    }
    values: dict[tuple[Step, ...], Any] = {
        ("modelProviders", "openai", Item("envKey", KEY_VARIABLE)): own,
        ("env", KEY_VARIABLE): link.key,
        ("security", "auth", "selectedType"): "openai",
        ("model", "name"): link.model,
    }
    return [_json(places.home / ".qwen" / "settings.json", values)]


def _pi(link: Link, places: Places) -> list[Edit]:
    folder = places.folder("PI_CODING_AGENT_DIR", ".pi", "agent")
    model: dict[str, Any] = {"id": link.model, "reasoning": True}
    if link.info is not None:
        shown = {"text", "image"} & set(link.info.input_modalities or ("text",))
        model["input"] = sorted(shown, reverse=True)
        known = {
            "contextWindow": link.info.context_window,
            "maxTokens": link.info.max_output_tokens,
        }
        model |= {name: value for name, value in known.items() if value}
    own = {
        "baseUrl": link.versioned,
        "api": "openai-responses",
        "apiKey": link.key,
        "models": [model],
    }
    return [
        _json(folder / "models.json", {("providers", _NAME): own}),
        _json(
            folder / "settings.json",
            {("defaultProvider",): _NAME, ("defaultModel",): link.model},
        ),
    ]


def _llm(link: Link, places: Places) -> list[Edit]:
    folder = places.folder("LLM_USER_PATH", *_application_folder("io.datasette.llm"))
    item = {
        "model_id": _NAME,
        "model_name": link.model,
        "api_base": link.versioned,
        "api_key_name": _NAME,
        "supports_tools": True,
        "supports_schema": True,
    }
    return [
        Edit(
            folder / "extra-openai-models.yaml",
            partial(add_yaml_item, field="model_id", item=item),
        ),
        _json(folder / "keys.json", {(_NAME,): link.key}),
    ]


def _application_folder(name: str) -> tuple[str, ...]:
    """Where programs have their settings on this system, as `click.get_app_dir` finds it."""
    if sys.platform == "darwin":
        return ("Library", "Application Support", name)
    return ("AppData", "Roaming", name) if sys.platform == "win32" else (".config", name)


def _aider(link: Link, places: Places) -> list[Edit]:
    values = {
        "model": f"openai/{link.model}",
        "openai-api-base": link.versioned,
        "openai-api-key": link.key,
    }
    return [Edit(places.home / ".aider.conf.yml", partial(set_yaml, values=values))]


def _openai_text(link: Link) -> str:
    return (
        f"export OPENAI_BASE_URL={link.versioned}\n"
        f'export OPENAI_API_KEY="${KEY_VARIABLE}"\n'
        f"# and the name of the model in the program: {link.model}"
    )


def _vercel_text(link: Link) -> str:
    return (
        'import { createOpenAICompatible } from "@ai-sdk/openai-compatible";\n'
        "\n"
        f"const {_NAME} = createOpenAICompatible({{\n"
        f'  name: "{_NAME}",\n'
        f'  baseURL: "{link.versioned}",\n'
        f"  apiKey: process.env.{KEY_VARIABLE},\n"
        "  includeUsage: true,\n"
        "});\n"
        f'const model = {_NAME}("{link.model}");'
    )


_CHAT, _RESPONSES = "openai_compatible", "openai"
PROGRAMS: Mapping[str, Program] = {
    "claude": Program("Claude Code", "anthropic", _claude, start="claude"),
    "codex": Program("Codex", _RESPONSES, _codex, start="codex", is_versioned=True),
    "gemini": Program("Gemini CLI", "gemini", _gemini, start="gemini"),
    "opencode": Program("opencode", _CHAT, _opencode, start="opencode", is_versioned=True),
    "qwen": Program("Qwen Code", _CHAT, _qwen, start="qwen", is_versioned=True),
    "pi": Program("pi", _RESPONSES, _pi, start="pi", is_versioned=True),
    "llm": Program("llm", _CHAT, _llm, start=f"llm -m {_NAME}", is_versioned=True),
    "aider": Program("aider", _CHAT, _aider, start="aider", is_versioned=True),
    "openai": Program("OpenAI's SDK", _CHAT, text=_openai_text, is_versioned=True),
    "vercel": Program("Vercel's AI SDK", _CHAT, text=_vercel_text, is_versioned=True),
}
"""The programs, by the names in `interlingua connect`."""


_find_keys = re.compile(rf"{KEY_PREFIX}[A-Za-z0-9_-]{{8,}}").sub


def mask(text: str, key: str = "") -> str:
    """The text without whole keys, to be shown: of those of gateways, both ends stay."""
    if key:
        text = text.replace(key, _shorten(key))
    return redact(_find_keys(lambda match: _shorten(match[0]), text))


def _shorten(key: str) -> str:
    return f"{key[:3]}…{key[-4:]}" if len(key) > 11 else "…"


# The probe.


class Probe(NamedTuple):
    """What a small request through the gateway has shown."""

    provider: str
    model: str
    warnings: tuple[str, ...]
    """The codes of what was lost."""


class _Noted:
    """A transport that keeps the headers of the last reply."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.headers: Mapping[str, str] = {}

    @asynccontextmanager
    async def send(self, request: HttpRequest) -> AsyncGenerator[HttpReply, None]:
        async with self._inner.send(request) as reply:
            self.headers = reply.headers
            yield reply

    async def close(self) -> None:
        await self._inner.close()


_QUESTION = "Reply with the word: ready"
_SYSTEM = "You test a connection. Be brief."
_TOOL = {
    "name": "read_file",
    "description": "Reads a file.",
    "parameters": {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
    },
}
_MAX_TOKENS = 512
_SHOWN_NAMES = 20


async def find_link(program: Program, url: str, key: str, model: str | None) -> Link:
    """
    The link for a program: the model that was named, or the only one that the gateway has.

    `ConfigurationError` in plain words if no gateway listens, the key is wrong, or there is no such
    model.
    """
    adapter = _adapter(program, url, key)
    try:
        served = {each.id: each for each in await adapter.list_models()}
    except SDKError as error:
        raise _explain(error, url, key, model or "") from None
    finally:
        await adapter.close()
    if model is None:
        if len(served) != 1:
            raise ConfigurationError(f"Name a model with --model. {_list(served)}")
        (model,) = served
    return Link(url, key, model, served.get(model))


async def probe(program: Program, link: Link) -> Probe:
    """Ask the model a small question in the API of the program, with a tool and some thinking."""
    noted = _Noted(default_transport())
    adapter = _adapter(program, link.url, link.key, transport=noted)
    request = Request(
        model=link.model,
        messages=[{"role": "system", "content": _SYSTEM}, {"role": "user", "content": _QUESTION}],
        tools=[_TOOL],
        max_tokens=_MAX_TOKENS,
        reasoning_effort="low",
        on_loss="warn",
    )
    try:
        response = await adapter.complete(request)
    except SDKError as error:
        raise _explain(error, link.url, link.key, link.model) from None
    finally:
        await adapter.close()
        await noted.close()
    told = noted.headers
    codes = told.get(f"{PREFIX}warnings", "")
    return Probe(
        told.get(f"{PREFIX}provider", ""),
        told.get(f"{PREFIX}model", response.model),
        tuple(code for code in codes.split(",") if code),
    )


def _adapter(program: Program, url: str, key: str, **settings: Any) -> HttpAdapter:
    base = f"{url}/v1" if program.is_versioned else url
    return HttpAdapter(program.row, api_key=key, base_url=base, **settings)


def _list(served: Mapping[str, ServedModel]) -> str:
    """The first names of models, as a sentence."""
    names = list(served)[:_SHOWN_NAMES]
    more = f", and {len(served) - len(names)} more" if len(served) > len(names) else ""
    return f"The gateway has: {', '.join(names)}{more}." if names else "The gateway lists none."


def _explain(error: SDKError, url: str, key: str, model: str) -> SDKError:
    """The error in words of who connects a program."""
    is_key = "key" in error.message.lower() and isinstance(error, InvalidRequestError)
    if isinstance(error, AuthenticationError) or is_key:
        text = (
            f"The gateway at {url} refuses the key {mask(key, key)}. "
            "`interlingua serve --new-key` makes another one."
        )
        return AuthenticationError(text)
    if isinstance(error, NotFoundError):
        text = (
            f"The gateway has no model {model!r}, or this key may not use it. Without --model, "
            "`interlingua connect` lists the models."
        )
        return NotFoundError(text)
    if isinstance(error, NetworkError):
        text = (
            f"No gateway answers at {url}. Start one with `interlingua serve`, or name its "
            "address with --url."
        )
        return NetworkError(text)
    return error
