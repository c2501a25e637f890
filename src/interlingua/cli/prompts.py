"""The question of `ask` and `explain`: options, stdin, files, templates."""

from __future__ import annotations

import importlib.util
import inspect
import json
import mimetypes
import re
import string
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from interlingua.cli import collect_as_usual
from interlingua.cli.files import config_folder
from interlingua.cli.output import is_terminal, read_text

if TYPE_CHECKING:
    from interlingua import Part
if TYPE_CHECKING:
    from interlingua import Tool


F = TypeVar("F", bound=Callable[..., Any])
_MAX_STDIN = 50_000_000  # characters
_MAX_FRAGMENT = 10_000_000  # bytes of a web page
_OPTIONS = (
    *("temperature", "top_p", "max_tokens", "stop_sequences", "seed", "reasoning_effort"),
    *("verbosity", "max_retries", "timeout", "on_loss", "provider_options"),
)
"""The options that are used most."""
_OWN_OPTIONS = {
    "system": "-s", "tools": "-T", "response_format": "--schema", "messages": "-c",
    "session_id": "--cid", "api_key": "`interlingua keys set`", "approvals": "--yes",
}  # fmt: skip
"""Options of `generate` that are set otherwise; a key is never part of a command line."""
_OBJECTS = frozenset((
    *("output_validator", "stop_when", "repair_tool_call", "resume", "tool_observer", "tool_error"),
    *("deps", "retry_policy", "abort_signal", "on_usage", "client", "limits", "chosen_because"),
    "request_id",
))  # fmt: skip
"""Options of `generate` whose values only a program can make."""
_TEMPLATE_KEYS = ("prompt", "system", "model", "schema", "options")


@dataclass(kw_only=True)
class Question:
    """What is asked, and how."""

    content: list[Part]
    text: str
    """The text of it, for the log."""
    model: str | None
    system: str | None
    schema: dict[str, Any] | None
    options: dict[str, Any] = field(default_factory=dict)
    """Options of `generate`."""


setting_option = click.option(
    "-o", "--option", nargs=2, multiple=True, metavar="NAME VALUE",
    help="An option of `generate`: -o temperature 0.2, -o max_tokens 500.",
)  # fmt: skip
"""The option that sets options of `generate`."""


def prompt_options(function: F) -> F:
    """The options that say what is asked."""
    options = (
        click.argument("prompt", nargs=-1),
        click.option("-m", "--model", help="The model, such as `anthropic:claude-haiku-4-5`."),
        click.option("-s", "--system", help="The system prompt."),
        click.option(
            "-a", "--attachment", multiple=True, metavar="FILE|URL",
            help="An image, PDF, audio or other file, or the URL of an image. Repeatable.",
        ),
        click.option(
            "-f", "--fragment", multiple=True, metavar="FILE|URL|NAME|-",
            help="A text before the prompt: a file, a web page, a file of the folder `fragments`, "
            "or stdin. Repeatable.",
        ),
        click.option(
            "-t", "--template", help="A template: a file of the folder `templates`, or any file.",
        ),
        click.option(
            "-p", "--param", nargs=2, multiple=True, metavar="NAME VALUE",
            help="A value for $NAME in the template.",
        ),
        click.option(
            "--schema", help="JSON Schema as text or file, or fields: 'name, age int'.",
        ),
        click.option(
            "--schema-multi", help="As --schema, for a list of such objects.",
        ),
        click.option(
            "-T", "--tools", multiple=True, metavar="FILE.py",
            help="The model may call the functions of this file. You are asked before each call. "
            "Repeatable.",
        ),
        click.option("-y", "--yes", is_flag=True, help="Approve all tool calls."),
        setting_option,
    )  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


reasoning_option = click.option(
    "--show-reasoning/--hide-reasoning", " /-R", "shows_reasoning", default=None,
    help="Ask for reasoning, or do not print it. It is printed on stderr. An effort asks for it "
    "too, except at OpenAI, which shows it only to verified organizations.",
)  # fmt: skip
"""The option that says whether reasoning is asked for and printed; None if it is not given."""


def read_question(
    *,
    prompt: Sequence[str],
    model: str | None,
    system: str | None,
    attachment: Sequence[str],
    fragment: Sequence[str],
    schema: str | None,
    option: Sequence[tuple[str, str]],
    **more: Any,
) -> Question:
    """What the options, stdin and the template ask."""
    from interlingua import Text

    if model is not None and not model.strip():
        raise click.UsageError("-m is empty. Name a model, or leave -m out.")
    template = _read_template(more["template"]) if more["template"] else {}
    takes_stdin = "-" in fragment or "-" in attachment
    words = [" ".join(prompt)] if prompt else []
    text = "\n\n".join([*words] if takes_stdin else [*_stdin(), *words])
    text = _fill(template.get("prompt"), text, more["param"])
    text = "\n\n".join([*map(read_fragment, fragment), *([text] if text else [])])
    parts = [_read_attachment(each) for each in attachment]
    if not text and not parts:
        raise click.UsageError("There is no prompt. Write one, or pipe it in.")
    schema = schema or template.get("schema")
    multi = more["schema_multi"]
    shape = several(read_schema(multi)) if multi else _shape(schema)
    options = {**template.get("options", {}), **dict(map(read_option, option))}
    tools = read_tools(more["tools"], approve=more["yes"])
    return Question(
        content=[*parts, *([Text(text=text)] if text else [])],
        text=text,
        model=model or template.get("model"),
        system=system or _fill(template.get("system"), "", more["param"]) or None,
        schema=shape,
        options={**options, **({"tools": tools} if tools else {})},
    )


def _shape(schema: str | dict[str, Any] | None) -> dict[str, Any] | None:
    return read_schema(schema) if isinstance(schema, str) else schema


def _stdin() -> list[str]:
    """What is piped in, if anything is."""
    if is_terminal(sys.stdin):
        return []
    text = read_stdin()
    return [text.rstrip("\n")] if text.strip() else []


def read_stdin() -> str:
    """All of stdin, which must be text of a limited size."""
    try:
        text = sys.stdin.read(_MAX_STDIN + 1)
    except UnicodeDecodeError:
        raise click.ClickException("stdin is not text in UTF-8. Use `-a -` for a file.") from None
    if len(text) > _MAX_STDIN:
        raise click.ClickException(f"stdin has more than {_MAX_STDIN:,} characters.")
    return text


def read_fragment(name: str) -> str:
    """The text of a file, of a URL, of a file of the folder `fragments`, or of stdin (`-`)."""
    if name == "-":
        return read_stdin().rstrip("\n")
    if is_web_address(name):
        return fetch_text(name)
    saved = config_folder() / "fragments" / f"{name}.txt"
    is_saved = "/" not in name and not Path(name).exists() and saved.is_file()
    path = saved if is_saved else Path(name)
    return read_text(path, "-f").rstrip("\n")


def is_web_address(name: str) -> bool:
    """Whether this is a URL and not a file."""
    return name.lower().startswith(("http://", "https://"))


def fetch_text(url: str, **options: Any) -> str:
    """
    The text at a public address: at most 10 MB, in 30 seconds, over at most 5 redirects.

    `options` are the options of the library's guarded `fetch`.
    """
    import asyncio

    from interlingua.transport.media import fetch

    found = asyncio.run(fetch(url, max_bytes=_MAX_FRAGMENT, **options))
    try:
        return found.data.decode("utf-8-sig").rstrip("\n")
    except UnicodeDecodeError:
        text = f"{url} is {found.media_type or 'not text'}; attach it with -a"
        raise click.BadParameter(text, param_hint="-f") from None


def _read_attachment(name: str) -> Part:
    """The part for a file of this machine, which the user has named, or for a URL."""
    from interlingua import Audio, Document, Image
    from interlingua.wire.media import sniff

    if is_web_address(name):
        kind = mimetypes.guess_type(name.partition("?")[0])[0] or "image/*"
        return Image(url=name) if kind.startswith("image/") else Document(url=name)
    data = sys.stdin.buffer.read() if name == "-" else None
    if data is None and not Path(name).is_file():
        raise click.BadParameter(f"there is no file {name}", param_hint="-a")
    kind = mimetypes.guess_type(name)[0] or (sniff(data) if data is not None else None) or ""
    kinds: dict[str, type[Image | Audio | Document]] = {"image": Image, "audio": Audio}
    make = kinds.get(kind.partition("/")[0], Document)
    if data is not None:
        return make(data=data, media_type=kind or "application/octet-stream")
    return make(path=name)


def read_option(pair: tuple[str, str]) -> tuple[str, Any]:
    """An option; its value is JSON, or else text."""
    name, value = pair
    check_option(name)
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def check_option(name: str) -> None:
    """Refuse a name that is no option of `generate`, with the nearest one."""
    from interlingua.api.run.options import GenerateOptions
    from interlingua.spec.check import advice

    known = [each for each in GenerateOptions.__annotations__ if each not in _OBJECTS]
    if name in _OWN_OPTIONS:
        raise click.UsageError(f"-o: {name} is not set by -o but by {_OWN_OPTIONS[name]}.")
    if name not in known:
        shown = advice(name, known)
        text = shown if shown.count(",") == 0 else f"Some are {', '.join(_OPTIONS)}."
        raise click.UsageError(f"-o: there is no option {name!r}. {text}")


# Templates.


def _read_template(name: str) -> dict[str, Any]:
    import yaml

    named = config_folder() / "templates" / f"{name}.yaml"
    path = named if named.is_file() and "/" not in name else Path(name)
    if not path.is_file():
        raise click.BadParameter(
            f"there is no template {named} and no file {name}", param_hint="-t"
        )
    try:
        value = yaml.safe_load(read_text(path, "-t"))
    except yaml.YAMLError as error:
        raise click.BadParameter(f"{path} is not YAML: {error}", param_hint="-t") from None
    value = {"prompt": value} if isinstance(value, str) else value
    if not isinstance(value, dict) or set(value) - set(_TEMPLATE_KEYS):
        keys = ", ".join(_TEMPLATE_KEYS)
        raise click.BadParameter(f"{path} must be a text, or have only {keys}", param_hint="-t")
    return value


def _fill(template: str | None, text: str, params: Sequence[tuple[str, str]]) -> str:
    """The template with its values; `$input` is the prompt, which is else added at the end."""
    if not template:
        return text
    form = string.Template(template)
    try:
        filled = form.substitute({"input": text, **dict(params)})
    except KeyError as error:
        name = error.args[0]
        raise click.UsageError(f"The template needs -p {name} VALUE.") from None
    except ValueError as error:
        raise click.UsageError(f"The template is wrong: {error}. Write $$ for $.") from None
    has_input = "input" in form.get_identifiers() or not text
    return filled if has_input else f"{filled}\n\n{text}"


_TYPES = {
    "str": "string",
    "string": "string",
    "int": "integer",
    "integer": "integer",
    "float": "number",
    "number": "number",
    "bool": "boolean",
    "boolean": "boolean",
}
_FIELD = re.compile(r"(?P<name>[A-Za-z_]\w*)(?:\s+(?P<type>\w+))?\s*(?::\s*(?P<about>.*))?")


def read_schema(value: str) -> dict[str, Any]:
    """The JSON Schema that the value of `--schema` means."""
    text = value.strip()
    if text.startswith("{"):
        return _parse(text, "--schema")
    if text.endswith(".json") or "/" in text:
        return _parse(read_text(Path(text), "--schema"), text)
    return short_schema(text)


def short_schema(text: str) -> dict[str, Any]:
    """
    An object with these fields, separated by commas or line ends.

        short_schema("name, age int, bio: one sentence")
    """
    fields = [entry.strip() for entry in re.split(r"\n" if "\n" in text else ",", text)]
    properties: dict[str, Any] = {}
    for entry in filter(None, fields):
        match = _FIELD.fullmatch(entry)
        kind = _TYPES.get(match["type"] or "str") if match is not None else None
        if match is None or kind is None:
            raise click.BadParameter(
                f"{entry!r} is not a field. Write `name`, `age int` or `bio: what it is`, with the "
                "types str, int, float or bool.",
                param_hint="--schema",
            )
        about = {"description": match["about"].strip()} if match["about"] else {}
        properties[match["name"]] = {"type": kind, **about}
    if not properties:
        raise click.BadParameter("it names no field", param_hint="--schema")
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def several(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema for a list of such objects, in the field `items`: providers want an object."""
    return {
        "type": "object",
        "properties": {"items": {"type": "array", "items": schema}},
        "required": ["items"],
        "additionalProperties": False,
    }


def _parse(text: str, place: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"{place} is not JSON: {error}", param_hint="--schema") from None
    if not isinstance(value, dict):
        raise click.BadParameter(f"{place} is not a JSON object", param_hint="--schema")
    return value


def read_tools(paths: Sequence[str], *, approve: bool) -> list[Tool]:
    """
    The tools of Python files: their `Tool` objects and public functions.

    Every tool needs approval, unless the user has approved all of them.
    """
    return [each for path in paths for each in _tools_of(Path(path), approve=approve)]


def _tools_of(path: Path, *, approve: bool) -> list[Tool]:
    from msgspec.structs import replace

    from interlingua import Tool, tool

    found = []
    for name, value in vars(_load(path)).items():
        if name.startswith("_"):
            continue
        if isinstance(value, Tool):
            found.append(replace(value, needs_approval=not approve))
        elif inspect.isfunction(value) and value.__module__ == _module_name(path):
            found.append(tool(needs_approval=not approve)(value))
    if not found:
        raise click.BadParameter(f"{path} has no public function and no Tool", param_hint="-T")
    return found


def _module_name(path: Path) -> str:
    return f"interlingua_tools_{path.stem}"


def _load(path: Path) -> Any:
    if not path.is_file():
        raise click.BadParameter(f"there is no file {path}", param_hint="-T")
    spec = importlib.util.spec_from_file_location(_module_name(path), path)
    if spec is None or spec.loader is None:
        raise click.BadParameter(f"{path} is not a Python file (.py)", param_hint="-T")
    module = importlib.util.module_from_spec(spec)
    collect_as_usual()
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        text = f"{path} cannot be loaded: {type(error).__name__}: {error}"
        raise click.BadParameter(text, param_hint="-T") from error
    return module
