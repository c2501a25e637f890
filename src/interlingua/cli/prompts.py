"""The question of `ask` and `explain`: options, stdin, files, templates."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from interlingua.cli.output import is_terminal, read_text

if TYPE_CHECKING:
    from interlingua import Part


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


class Fragment(NamedTuple):
    """A text before a prompt."""

    source: str
    text: str


@dataclass(kw_only=True)
class Question:
    """What is asked, and how."""

    content: list[Part]
    text: str
    """The text of it without the fragments, for the log."""
    fragments: list[Fragment]
    """The texts before it."""
    model: str | None
    system: str | None
    schema: dict[str, Any] | None
    options: dict[str, Any] = field(default_factory=dict)
    """Options of `generate`."""
    access: Mapping[str, str] = field(default_factory=dict)
    """The address and the key of a server at hand."""


setting_option = click.option(
    "-o", "--option", nargs=2, multiple=True, metavar="NAME VALUE",
    help="An option of `generate`: -o temperature 0.2, -o max_tokens 500.",
)  # fmt: skip
"""The option that sets options of `generate`."""


loss_option = click.option(
    "--on-loss", type=click.Choice(["content", "strict", "warn"]),
    help="What may not be lost without an error: content (the default), anything (strict), or "
    "nothing (warn: it is only said).",
)  # fmt: skip
"""The option of commands without `-o` for what a model cannot take."""


def context_options(function: F) -> F:
    """The options of `ask`, `chat` and `explain` that say who is asked, and with what."""
    options = (
        click.option(
            "-m", "--model", help="The model, such as `anthropic:claude-haiku-4-5`, or an alias.",
        ),
        click.option("-s", "--system", help="The system prompt."),
        click.option(
            "-a", "--attachment", multiple=True, metavar="FILE|URL",
            help="An image, PDF, audio or other file, or the URL of an image. Repeatable.",
        ),
        click.option(
            "--at", "--attachment-type", "typed_attachment", nargs=2, multiple=True,
            metavar="FILE|URL|- TYPE",
            help="The same, with its type: --at - image/jpeg. Repeatable.",
        ),
        click.option(
            "-f", "--fragment", multiple=True, metavar="FILE|URL|NAME|-",
            help="A text before the prompt: a file, a web page, a name of `fragments`, or stdin. "
            "Repeatable.",
        ),
        click.option(
            "--sf", "--system-fragment", "system_fragment", multiple=True,
            metavar="FILE|URL|NAME|-",
            help="A text before the system prompt, found as that of -f is. Repeatable.",
        ),
        click.option("-t", "--template", help="A template: a name of `templates`, or a file."),
        click.option(
            "-p", "--param", nargs=2, multiple=True, metavar="NAME VALUE",
            help="A value for $NAME in the template.",
        ),
        click.option(
            "-T", "--tools", multiple=True, metavar="FILE.py|NAME",
            help="The model may call the functions of this file, or the tools of a plugin. You are "
            "asked before each call. Repeatable.",
        ),
        click.option(
            "--mcp", multiple=True, metavar="SERVER",
            help="The model may call the tools of an MCP server: a name in `mcp_servers` of the "
            "configuration, or a URL. Repeatable.",
        ),
        click.option("-y", "--yes", is_flag=True, help="Approve all tool calls."),
        setting_option,
        click.option(
            "--base-url", metavar="URL",
            help="The address of a server; without a provider in -m, one like OpenAI's.",
        ),
        click.option(
            "--key", metavar="NAME",
            help="The name of a stored key: what `interlingua keys` lists, never the key itself.",
        ),
    )  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def prompt_options(function: F) -> F:
    """The options that say what is asked."""
    options = (
        click.option(
            "--schema",
            help="JSON Schema as text or file, fields ('name, age int'), an id of `schemas`, or "
            "t:NAME for the schema of a template.",
        ),
        click.option(
            "--schema-multi", help="As --schema, for a list of such objects.",
        ),
    )  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return click.argument("prompt", nargs=-1)(context_options(function))


reasoning_option = click.option(
    "--show-reasoning/--hide-reasoning", " /-R", "shows_reasoning", default=None,
    help="Ask for reasoning, or do not print it. It is printed on stderr. An effort asks for it "
    "too, except at OpenAI, which shows it only to verified organizations.",
)  # fmt: skip
"""The option that says whether reasoning is asked for and printed; None if it is not given."""


def complete(options: Mapping[str, Any]) -> dict[str, Any]:
    """
    The options of a command with its template, and the settings of `-o` as `settings`.

    `form` is the prompt of the template, `parameters` has its values, and `access` the address and
    the key of a server at hand.
    """
    if options["model"] is not None and not options["model"].strip():
        raise click.UsageError("-m is empty. Name a model, or leave -m out.")
    given = {**options, "settings": dict(map(read_option, options["option"]))}
    if options["template"]:
        from interlingua.cli.templates import use_template

        given = use_template(given)
    elif options["param"]:
        raise click.UsageError("-p is a value for a template: add -t NAME.")
    given = {"form": None, "parameters": {}, "access": {}, **given}
    if options["base_url"] or options["key"]:
        from interlingua.cli.clients import find_access

        given |= find_access(given["model"], options["base_url"], options["key"])
    return {**given, "system": _with_texts(given["system_fragment"], given["system"])}


def _with_texts(names: Iterable[str], system: str | None) -> str | None:
    """The system prompt after its fragments."""
    fragments = [Fragment(name, read_fragment(name, "--sf")) for name in names]
    return with_fragments(fragments, system or "") if fragments else system


def read_attachments(given: Mapping[str, Any]) -> list[Part]:
    """The parts of `-a` and `--at`."""
    pairs = [*((name, None) for name in given["attachment"]), *given["typed_attachment"]]
    return [read_attachment(name, kind) for name, kind in pairs]


def takes_stdin(given: Mapping[str, Any]) -> bool:
    """Whether a fragment or an attachment is stdin, which is then not the prompt."""
    names = (*given["fragment"], *given["system_fragment"], *given["attachment"])
    return "-" in (*names, *(name for name, _ in given["typed_attachment"]))


def fill_form(text: str, given: Mapping[str, Any]) -> str:
    """A prompt in the form of the template, if there is one."""
    if not given["form"]:
        return text
    from interlingua.cli.templates import fill

    return fill(given["form"], text, given["parameters"])


def add_tools(settings: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with the tools of `-T` and `--mcp`."""
    if not given["tools"] and not given["mcp"]:
        return settings
    from interlingua.cli.tool_sources import read_tools

    tools = read_tools(given["tools"], given["mcp"], approve=given["yes"])
    return {**settings, "tools": tools}


def read_question(**options: Any) -> Question:
    """What the options, stdin and the template ask."""
    from interlingua import Text

    given = complete(options)
    words = [" ".join(given["prompt"])] if given["prompt"] else []
    text = "\n\n".join([*words] if takes_stdin(given) else [*_stdin(), *words])
    text = fill_form(text, given)
    fragments = [Fragment(name, read_fragment(name)) for name in given["fragment"]]
    whole = with_fragments(fragments, text)
    parts = read_attachments(given)
    if not whole and not parts:
        raise click.UsageError("There is no prompt. Write one, or pipe it in.")
    multi = given["schema_multi"]
    return Question(
        content=[*parts, *([Text(text=whole)] if whole else [])],
        text=text,
        fragments=fragments,
        model=given["model"],
        system=given["system"] or None,
        schema=several(read_schema(multi)) if multi else _shape(given["schema"]),
        options=add_tools(given["settings"], given),
        access=given["access"],
    )


def with_fragments(fragments: Iterable[Fragment], text: str) -> str:
    """A prompt after its fragments."""
    return "\n\n".join([*(each.text for each in fragments), *([text] if text else [])])


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


def read_fragment(name: str, flag: str = "-f") -> str:
    """The text of a file, of a URL, of a name or hash of `fragments`, or of stdin (`-`)."""
    if name == "-":
        return read_stdin().rstrip("\n")
    if is_web_address(name):
        return fetch_text(name)
    if "/" not in name and not Path(name).exists():
        from interlingua.cli.fragments import find_fragment

        text = find_fragment(name)
        if text is not None:
            return text
    return read_text(Path(name), flag).rstrip("\n")


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


def read_attachment(name: str, media_type: str | None = None) -> Part:
    """
    The part for a file of this machine, which the user has named, or for a URL.

    Its type is read from its name or content, unless it is given.
    """
    import mimetypes

    from interlingua import Audio, Document, Image
    from interlingua.wire.media import sniff

    make: type[Image | Audio | Document]
    flag = "-a" if media_type is None else "--at"
    kinds: dict[str, type[Image | Audio | Document]] = {"image": Image, "audio": Audio}
    if media_type is not None and not _is_media_type(media_type):
        raise click.BadParameter(f"{media_type!r} is no type such as image/jpeg", param_hint=flag)
    if is_web_address(name):
        kind = media_type or mimetypes.guess_type(name.partition("?")[0])[0] or "image/*"
        make = Image if kind.startswith("image/") else Document
        return make(url=name, media_type=media_type)
    data = sys.stdin.buffer.read() if name == "-" else None
    if data is None and not Path(name).is_file():
        raise click.BadParameter(f"there is no file {name}", param_hint=flag)
    guess = mimetypes.guess_type(name)[0] or (sniff(data) if data is not None else None)
    kind = media_type or guess or ""
    make = kinds.get(kind.partition("/")[0], Document)
    if data is not None:
        return make(data=data, media_type=kind or "application/octet-stream")
    return make(path=name, media_type=media_type)


def read_option(pair: tuple[str, str], flag: str = "-o") -> tuple[str, Any]:
    """An option; its value is JSON, or else text."""
    name, value = pair
    check_option(name, flag)
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value


def check_option(name: str, flag: str = "-o") -> None:
    """Refuse a name that is no option of `generate`, with the nearest one; `flag` named it."""
    from interlingua.api.run.options import GenerateOptions
    from interlingua.spec.check import advice

    known = [each for each in GenerateOptions.__annotations__ if each not in _OBJECTS]
    if name in _OWN_OPTIONS:
        raise click.UsageError(f"-o: {name} is not set by -o but by {_OWN_OPTIONS[name]}.")
    if name not in known:
        shown = advice(name, known)
        text = shown if shown.count(",") == 0 else f"Some are {', '.join(_OPTIONS)}."
        raise click.UsageError(f"{flag}: there is no option {name!r}. {text}")


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
_is_media_type = re.compile(r"[\w.+-]+/[\w.+-]+").fullmatch
is_hash = re.compile(r"[0-9a-f]{8,64}").fullmatch
"""Whether a text is the hash of a stored text, or its beginning."""
_TEMPLATE = "t:"
_FIELD = re.compile(r"(?P<name>[A-Za-z_]\w*)(?:\s+(?P<type>\w+))?\s*(?::\s*(?P<about>.*))?")


def read_schema(value: str) -> dict[str, Any]:
    """The JSON Schema that the value of `--schema` means."""
    text = value.strip()
    if text.startswith("{"):
        return _parse(text, "--schema")
    if text.startswith(_TEMPLATE):
        return _schema_of_template(text.removeprefix(_TEMPLATE))
    if is_hash(text):
        from interlingua.cli.schemas import find_schema

        return find_schema(text)
    if text.endswith(".json") or "/" in text:
        return _parse(read_text(Path(text), "--schema"), text)
    return short_schema(text)


def _schema_of_template(name: str) -> dict[str, Any]:
    from interlingua.cli.templates import find_template

    schema = find_template(name).values.get("schema")
    if not schema:
        raise click.BadParameter(f"the template {name} has no schema", param_hint="--schema")
    found = _shape(schema)
    return found or {}


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
