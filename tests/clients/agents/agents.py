"""The coding agents: how each is configured and started, and what its tools are called."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from interlingua.simulator import tool_call


class Place(NamedTuple):
    """Where an agent runs: its home, the folder of its task, and the gateway."""

    home: Path
    work: Path
    url: str
    key: str
    mode: str = ""
    """The feature that needs a setting of its own."""

    def write(self, name, content):
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))


class Start(NamedTuple):
    """The program and its environment."""

    arguments: list[str]
    environment: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Agent:
    """A client in the results: an agent, and the dialect that it speaks."""

    name: str
    package: str
    dialect: str
    start: Callable[[Place, str], Start]
    read: Callable
    """The call that reads a file, from the request and the path."""
    write: Callable
    """The call that writes a file, from the request, the path and the text."""
    look: Callable | None = None
    """The call that reads an image; None if it is `read`."""
    is_codex: bool = False
    """Whether it has the tool `apply_patch`, and a mode in which the model writes code."""
    search: Callable | None = None
    """The call that searches for a deferred tool, from the request; None if it has no search."""
    found: Callable | None = None
    """The call of the tool that was found."""
    limits: Mapping[str, str] = field(default_factory=dict)
    """By feature: why this agent cannot have it, whatever answers it."""


def names(request):
    """The names of the tools that a request has."""
    return {getattr(tool, "name", "") for tool in request.tools}


def _tools(read, read_key, write, write_key, text_key="content"):
    return {
        "read": lambda _, path: tool_call(read, {read_key: str(path)}),
        "write": lambda _, path, text: tool_call(write, {write_key: str(path), text_key: text}),
    }


# Claude Code.


def _claude(place, prompt):
    arguments = ["claude", "-p", prompt, "--allowedTools", "Read,Write,ToolSearch"]
    if place.mode == "compaction":
        arguments += ["--autocompact", "100000"]
    environment = {
        "ANTHROPIC_BASE_URL": place.url,
        "ANTHROPIC_AUTH_TOKEN": place.key,
        "ANTHROPIC_MODEL": "claude-sonnet-4-5",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
    }
    return Start(arguments, environment)


# Codex.

_CODEX = """
model = "{model}"
{more}
check_for_update_on_startup = false
[analytics]
enabled = false
[otel]
exporter = "none"
"""
_CODEX_PROVIDER = """
[model_providers.gate]
name = "gate"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "GATE_KEY"
"""


def _codex(place, prompt):
    model = "gpt-6.1-sol" if place.mode == "codemode" else "gpt-5.5"  # it knows both
    more = [] if "compaction" not in place.mode else ["model_auto_compact_token_limit = 100000"]
    if place.mode == "servercompaction":  # its own provider, whose server compacts
        more.append(f'openai_base_url = "{place.url}/v1"')
        config = _CODEX
        place.write(".codex/auth.json", {"OPENAI_API_KEY": place.key})
    else:
        more.append('model_provider = "gate"')
        config = _CODEX + _CODEX_PROVIDER
    config = config.format(url=place.url, model=model, more="\n".join(more))
    place.write(".codex/config.toml", config)
    options = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    return Start(["codex", "exec", *options, prompt], {"GATE_KEY": place.key})


def _shell(request, command):
    """Codex's tool for commands, which has another name in each family of models."""
    offered = names(request)
    if "exec_command" in offered:
        return tool_call("exec_command", cmd=command)
    if "shell_command" in offered:
        return tool_call("shell_command", command=command)
    return tool_call("shell", command=["bash", "-lc", command])


def _named(request, end):
    """The tool whose name ends so: the names of namespaces are before it."""
    return next((name for name in sorted(names(request)) if name.endswith(end)), end)


# Gemini CLI.


def _gemini(place, prompt):
    settings = {
        "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
    }
    if place.mode == "compaction":
        settings["model"] = {"compressionThreshold": 0.1}
    place.write(".gemini/settings.json", settings)
    arguments = [
        "gemini",
        "--approval-mode",
        "yolo",
        "--skip-trust",
        "-m",
        "gemini-2.5-pro",
        "-p",
        prompt,
    ]
    return Start(arguments, {"GOOGLE_GEMINI_BASE_URL": place.url, "GEMINI_API_KEY": place.key})


# Qwen Code.


def _qwen(place, prompt):
    settings = {
        "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "security": {"auth": {"selectedType": "openai"}},
    }
    if place.mode == "compaction":
        settings["context"] = {"autoCompactThreshold": 0.5}
    place.write(".qwen/settings.json", settings)
    environment = {
        "OPENAI_BASE_URL": f"{place.url}/v1",
        "OPENAI_API_KEY": place.key,
        "OPENAI_MODEL": "qwen3-vl-plus",
    }
    return Start(["qwen", "--approval-mode", "yolo", prompt], environment)


# opencode.

_PACKAGES = {
    "Chat": ("@ai-sdk/openai-compatible", "/v1"),
    "Responses": ("@ai-sdk/openai", "/v1"),
    "Messages": ("@ai-sdk/anthropic", "/v1"),
    "Gemini": ("@ai-sdk/google", "/v1beta"),
}


def _opencode(dialect):
    package, path = _PACKAGES[dialect]

    def start(place, prompt):
        model = {
            "name": "gate",
            "reasoning": True,
            "tool_call": True,
            "attachment": True,
            "modalities": {"input": ["text", "image"], "output": ["text"]},
            "limit": {"context": 200_000, "output": 8_000},
        }
        options = {"baseURL": f"{place.url}{path}", "apiKey": place.key}
        config = {
            "autoupdate": False,
            "share": "disabled",
            "provider": {
                "gate": {
                    "npm": package,
                    "name": "gate",
                    "options": options,
                    "models": {"gate": model},
                }
            },
        }
        place.write(".config/opencode/opencode.json", config)
        without = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
        environment = {f"OPENCODE_DISABLE_{name}": "1" for name in without}
        return Start(["opencode", "run", "--auto", "-m", "gate/gate", prompt], environment)

    return start


# pi.

_APIS = {
    "Chat": ("openai-completions", "/v1"),
    "Responses": ("openai-responses", "/v1"),
    "Messages": ("anthropic-messages", ""),
    "Gemini": ("google-generative-ai", "/v1beta"),
}


def _pi(dialect):
    api, path = _APIS[dialect]

    def start(place, prompt):
        model = {
            "id": "gate",
            "reasoning": True,
            "input": ["text", "image"],
            "contextWindow": 200_000,
            "maxTokens": 8_000,
        }
        provider = {
            "baseUrl": f"{place.url}{path}",
            "api": api,
            "apiKey": place.key,
            "models": [model],
        }
        place.write(".pi/agent/models.json", {"providers": {"gate": provider}})
        environment = {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"}
        arguments = [
            "pi",
            "--provider",
            "gate",
            "--model",
            "gate",
            "--thinking",
            "medium",
            "-p",
            prompt,
        ]
        return Start(arguments, environment)

    return start


AGENTS = [
    Agent(
        name="Claude Code",
        package="@anthropic-ai/claude-code",
        dialect="Messages",
        start=_claude,
        search=lambda _: tool_call("ToolSearch", query="select:CronList", max_results=5),
        found=lambda _: tool_call("CronList"),
        **_tools("Read", "file_path", "Write", "file_path"),
    ),
    Agent(
        name="Codex",
        package="@openai/codex",
        dialect="Responses",
        start=_codex,
        read=lambda request, path: _shell(request, f"cat {path}"),
        write=lambda request, path, text: _shell(request, f"printf '%s' '{text}' > {path}"),
        look=lambda _, path: tool_call("view_image", path=str(path)),
        is_codex=True,
        search=lambda _: tool_call("tool_search", query="close agent"),
        found=lambda request: tool_call(_named(request, "close_agent"), target="nobody"),
    ),
    Agent(
        name="Gemini CLI",
        package="@google/gemini-cli",
        dialect="Gemini",
        start=_gemini,
        limits={"compaction": "it compacts between prompts only, and here it has one"},
        **_tools("read_file", "file_path", "write_file", "file_path"),
    ),
    Agent(
        name="Qwen Code",
        package="@qwen-code/qwen-code",
        dialect="Chat",
        start=_qwen,
        **_tools("read_file", "file_path", "write_file", "file_path"),
    ),
    *(
        Agent(
            name="opencode",
            package="opencode-ai",
            dialect=dialect,
            start=_opencode(dialect),
            **_tools("read", "filePath", "write", "filePath"),
        )
        for dialect in _PACKAGES
    ),
    *(
        Agent(
            name="pi",
            package="@earendil-works/pi-coding-agent",
            dialect=dialect,
            start=_pi(dialect),
            limits={"context overflow": "it shows nothing when it cannot compact"},
            **_tools("read", "path", "write", "path"),
        )
        for dialect in _APIS
    ),
]
