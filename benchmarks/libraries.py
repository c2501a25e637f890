"""
Other libraries of the same purpose, each in an environment of its own, against the same server.

They are installed by pip, or npm, into a cache folder at first use. Each runs alone, after the
others: the figures compare with those of the same run, less exactly than those that take turns.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from codec import history
from contenders import plain_body

from interlingua import dialects

HERE = Path(__file__).parent
INSTALLED = {
    "litellm": ("litellm", "mcp"),  # it takes no tools without the second
    "any_llm": ("any-llm-sdk[openai,anthropic]",),
    "pydantic_ai": ("pydantic-ai-slim[openai,anthropic]",),
}
NODE_PACKAGES = ("ai", "@ai-sdk/anthropic", "@ai-sdk/openai-compatible")
SHOWN = {"whole": 1e6, "concurrent": 1e6, "burst": 1e6, "arguments": 1e3, "history": 1e3}
TITLES = ("call, us", "100 at once", "event, us", "arguments, ms", "history, ms")


def compare(server: str, messages: int) -> None:
    """A table of what each costs."""
    print("\nOther libraries, each alone")
    print(f"  {'':32}{'import, ms':>12}{''.join(f'{title:>15}' for title in TITLES)}")
    bodies = json.dumps({"plain": _settings(plain_body("openai_chat")), "history": _long(messages)})
    for library, packages in INSTALLED.items():
        try:
            python = _environment(library, packages)
            bare, loaded = (_told(python, "import", *names)["cpu"] for names in ([], [library]))
            costs = _told(python, "calls", library, server, given=bodies)
        except subprocess.CalledProcessError as error:
            print(f"  {library}: not measured, {(error.stderr or '').strip()[-300:]}")
            continue
        _print(library, loaded - bare, costs)
    try:
        _print("vercel_ai", None, _vercel_costs(server, bodies))
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"  vercel_ai: not measured, {(getattr(error, 'stderr', '') or str(error))[-300:]}")


def _print(library: str, imported: float | None, costs: dict[str, Any]) -> None:
    for name in dict.fromkeys(key.split()[1] for key in costs):
        shown = [_shown(costs[f"{row} {name}"], scale) for row, scale in SHOWN.items()]
        title = f"{library}, {name}"
        loading = "-" if imported is None else f"{imported * 1e3:.0f}"
        print(f"  {title:32}{loading:>12}{''.join(shown)}")


def _vercel_costs(server: str, bodies: str) -> dict[str, Any]:
    """The same rows of the Vercel AI SDK, in Node.js."""
    place = _cache("vercel_ai")
    if not (place / "installed").exists():
        print(f"  installing {' '.join(NODE_PACKAGES)} into {place} ...", file=sys.stderr)
        place.mkdir(parents=True, exist_ok=True)
        _run("npm", "install", "--silent", "--prefix", str(place), *NODE_PACKAGES)
        (place / "installed").touch()
    program = shutil.copy(HERE / "vercel.mjs", place)  # it finds its packages beside it
    result: dict[str, Any] = json.loads(_run("node", program, server, given=bodies))
    return result


def _shown(cost: float | None, scale: float) -> str:
    return f"{'-' if cost is None else f'{cost * scale:.1f}':>15}"


def _settings(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name != "model"}


def _long(messages: int) -> dict[str, Any]:
    """The long conversation in the words of Chat, which all of them take."""
    body = _settings(dialects.get("openai_chat").encode_request(history(messages)).body)
    body["max_tokens"] = body.pop("max_completion_tokens", 100)  # the name that all of them know
    return body


def _environment(library: str, packages: tuple[str, ...]) -> Path:
    """The Python that has the library, made if it is not there."""
    place = _cache(library)
    python = place / ("Scripts" if os.name == "nt" else "bin") / "python"
    done = place / "installed"
    if not done.exists():
        print(f"  installing {' '.join(packages)} into {place} ...", file=sys.stderr)
        _run(sys.executable, "-m", "venv", "--clear", str(place))
        _run(str(python), "-m", "pip", "install", "--quiet", *packages)
        done.touch()
    return python


def _cache(library: str) -> Path:
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "interlingua-benchmarks" / library


def _told(python: Path, *arguments: str, given: str = "") -> dict[str, Any]:
    told = _run(str(python), str(HERE / "library.py"), *arguments, given=given)
    result: dict[str, Any] = json.loads(told.splitlines()[-1])
    return result


def _run(*command: str, given: str = "") -> str:
    alone = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}  # else it asks the network
    done = subprocess.run(  # noqa: S603 -- our own programs
        command, input=given, capture_output=True, text=True, check=True, env=alone
    )
    return done.stdout
