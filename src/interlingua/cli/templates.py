"""Templates: questions with places for values; `interlingua templates` lists and edits them."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from interlingua.cli.configuration import read_settings
from interlingua.cli.files import edit_file
from interlingua.cli.output import BadInput, Column, Output, read_text, with_output
from interlingua.runtime.files import config_folder, write_private

_LISTS = ("fragments", "system_fragments", "attachments", "tools", "mcp")
"""The keys that name files, programs and addresses; only the user's own templates may have them."""
_KEYS = ("prompt", "system", "model", "schema", "options", "defaults", *_LISTS)
_HARMLESS = (
    *("temperature", "top_p", "top_k", "max_tokens", "stop_sequences", "seed", "reasoning_effort"),
    *("verbosity", "frequency_penalty", "presence_penalty", "max_retries", "timeout", "on_loss"),
)
"""The options that a file of somebody else may set: none sends anything elsewhere."""
_COLUMNS = (
    Column("name", "template"),
    Column("prompt", "prompt or system prompt", wraps=True),
    Column("place", "from", wraps=True, rank=1),
)
_SHORT = 60  # characters of a prompt in the list
_is_name = re.compile(r"\w[\w.-]*").fullmatch


class Template(NamedTuple):
    """A template, and where it is from."""

    name: str
    values: Mapping[str, Any]
    place: str
    is_own: bool = True
    """Whether the user has kept or accepted it, and did not only name a file."""


def use_template(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a command with those of its template; what the command says itself wins."""
    template = find_template(options["template"])
    values = template.values
    parameters = {**values.get("defaults", {}), **dict(options["param"])}
    system = options["system"]
    if system is None and values.get("system"):
        system = fill(values["system"], "", parameters)
    return {
        **options,
        "model": options["model"] or values.get("model"),
        "system": system,
        "schema": options.get("schema") or values.get("schema"),
        "fragment": (*values.get("fragments", ()), *options["fragment"]),
        "system_fragment": (*values.get("system_fragments", ()), *options["system_fragment"]),
        "attachment": (*values.get("attachments", ()), *options["attachment"]),
        "tools": (*values.get("tools", ()), *options["tools"]),
        "mcp": (*values.get("mcp", ()), *options["mcp"]),
        "settings": {**values.get("options", {}), **options["settings"]},
        "form": values.get("prompt"),
        "parameters": parameters,
    }


def fill(form: str | None, text: str, parameters: Mapping[str, str]) -> str:
    """The form with its values; `$input` is the prompt, which is else added at the end."""
    if not form:
        return text
    template = string.Template(form)
    try:
        filled = template.substitute({"input": text, **parameters})
    except KeyError as error:
        name = error.args[0]
        raise click.UsageError(f"The template needs -p {name} VALUE.") from None
    except ValueError as error:
        raise click.UsageError(f"The template is wrong: {error}. Write $$ for $.") from None
    has_input = "input" in template.get_identifiers() or not text
    return filled if has_input else f"{filled}\n\n{text}"


def find_template(name: str) -> Template:
    """The template of this name: of the configuration, of the folder, of a plugin, or a file."""
    template = _find_own(name)
    if template is not None:
        return template
    path = Path(name)
    if not path.is_file():
        text = f"there is no template {name} (`interlingua templates list`) and no file {name}"
        raise click.BadParameter(text, param_hint="-t")
    values = _read_file(path)
    refused = [key for key in _LISTS if values.get(key)]
    refused += [f"options.{key}" for key in values.get("options", {}) if key not in _HARMLESS]
    if refused:
        raise click.BadParameter(
            f"{path} sets {', '.join(refused)}, which only a template of your own may; "
            f"copy it to {templates_folder()}.",
            param_hint="-t",
        )
    return Template(name, values, str(path), is_own=False)


def _find_own(name: str) -> Template | None:
    """The template of the configuration, of the folder, or of a plugin."""
    if not _is_name(name):
        return None
    settings = read_settings()
    if name in settings.templates:
        place = settings.places[f"templates.{name}"]
        return Template(name, read_values(settings.templates[name], place), place)
    path = templates_folder() / f"{name}.yaml"
    if path.is_file():
        return Template(name, _read_file(path), str(path))
    from interlingua.cli.plugins import find_plugin
    from interlingua.runtime.installed import TEMPLATES

    plugin = find_plugin(TEMPLATES, name)
    if plugin is None:
        return None
    return Template(name, read_values(plugin.load(), name), f"the package {plugin.package}")


def templates_folder() -> Path:
    """The folder of the user's templates."""
    return config_folder() / "templates"


def _read_file(path: Path) -> dict[str, Any]:
    return _check_text(read_text(path, "-t"), path)


def _check_text(text: str, path: Path) -> dict[str, Any]:
    """The keys of a template's file with this text."""
    import yaml

    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise click.BadParameter(f"{path} is not YAML: {error}", param_hint="-t") from None
    return read_values(value, str(path))


def read_values(value: Any, place: str) -> dict[str, Any]:
    """The keys of a template, which may be only a text; an error says what is wrong."""
    values = {"prompt": value} if isinstance(value, str) else value
    if not isinstance(values, dict) or set(values) - set(_KEYS):
        raise BadInput(f"-t: {place} must be a text, or have only {', '.join(_KEYS)}")
    for key, each in values.items():
        if not _fits(key, each):
            kinds = {"options": "a mapping", "defaults": "a mapping", "schema": "a schema"}
            kind = "a list of texts" if key in _LISTS else kinds.get(key, "a text")
            raise BadInput(f"-t: {place}: {key} must be {kind}")
    from interlingua.cli.prompts import check_option

    for name in values.get("options") or {}:
        check_option(name)
    defaults = {key: str(each) for key, each in (values.get("defaults") or {}).items()}
    return {key: each for key, each in {**values, "defaults": defaults}.items() if each}


def _fits(key: str, value: Any) -> bool:
    if value is None:
        return True
    if key in _LISTS:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    if key in ("options", "defaults"):
        return isinstance(value, dict) and all(isinstance(each, str) for each in value)
    return isinstance(value, str) or (key == "schema" and isinstance(value, dict))


def save_template(out: Output, name: str, options: Mapping[str, Any]) -> None:
    """Keep what a command was given as a template; nothing is sent."""
    import yaml

    from interlingua.cli.prompts import read_option, takes_stdin

    if options["template"]:
        raise click.UsageError("--save and -t do not go together.")
    _check_name(name)
    values = {
        "prompt": " ".join(options["prompt"]),
        "system": options["system"],
        "model": options["model"],
        "schema": options["schema"],
        "options": dict(map(read_option, options["option"])),
        "defaults": dict(options["param"]),
        "fragments": _whole_paths(options["fragment"]),
        "system_fragments": _whole_paths(options["system_fragment"]),
        "attachments": _whole_paths(options["attachment"]),
        "tools": _whole_paths(options["tools"]),
        "mcp": list(options["mcp"]),
    }
    values = {key: value for key, value in values.items() if value}
    if options["typed_attachment"]:
        raise click.UsageError("--save cannot keep --at. Use -a.")
    if takes_stdin(options):
        raise click.UsageError("--save cannot keep stdin. Name a file.")
    if not values:
        raise click.UsageError("--save needs something to keep, such as a prompt, -s or -m.")
    path = templates_folder() / f"{name}.yaml"
    write_private(path, yaml.safe_dump(values, sort_keys=False, allow_unicode=True))
    out.note(f"Saved {path}. `interlingua ask -t {name}` uses it.")


def _check_name(name: str) -> None:
    if not _is_name(name):
        raise click.UsageError("The name of a template has only letters, digits, _, - and dots.")


def _whole_paths(names: Sequence[str]) -> list[str]:
    """The names, with whole paths for files, which are there from any folder."""
    return [str(Path(name).resolve()) if Path(name).is_file() else name for name in names]


# The command.


@click.group("templates")
def command() -> None:
    r"""
    List, show, edit and remove templates: questions with places for values.

    `interlingua ask … --save NAME` makes one; `-t NAME` of `ask` and `chat` uses it, and
    `-p name value` fills $name in it.

    \b
    interlingua ask -s 'Translate to $language.' --save translate
    interlingua ask -t translate -p language French "The sea"
    interlingua templates list
    """


@command.command("list")
@with_output
def list_templates(out: Output) -> None:
    r"""
    List the templates of the configuration, of your folder and of plugins.

    \b
    interlingua templates list
    """
    from interlingua.cli.plugins import find_plugins
    from interlingua.runtime.installed import TEMPLATES

    names = [*read_settings().templates]
    names += sorted(path.stem for path in templates_folder().glob("*.yaml"))
    names += [plugin.name for plugin in find_plugins(TEMPLATES)]
    rows = []
    for name in dict.fromkeys(names):
        try:
            template = _find_own(name)
        except click.ClickException as error:
            rows.append({"name": name, "prompt": f"broken: {error.format_message()}", "place": ""})
            continue
        if template is not None:
            values = template.values
            text = " ".join(str(values.get("prompt") or values.get("system") or "").split())
            rows.append({"name": name, "prompt": text[:_SHORT], "place": template.place})
    out.table(_COLUMNS, rows, empty="There is no template; `--save NAME` of `ask` makes one.")


@command.command("show")
@click.argument("name")
@with_output
def show(out: Output, name: str) -> None:
    r"""
    Print the template NAME.

    \b
    interlingua templates show translate
    """
    import yaml

    template = _own(name)
    if out.json:
        out.data({"name": name, "place": template.place, **template.values})
        return
    out.line(yaml.safe_dump(dict(template.values), sort_keys=False, allow_unicode=True).rstrip())


def _own(name: str) -> Template:
    template = _find_own(name)
    if template is None:
        raise click.UsageError(
            f"There is no template {name!r}; `interlingua templates list` lists them."
        )
    return template


def _file_of(name: str) -> Path:
    """The file of a template of the folder; an error says where another is."""
    path = templates_folder() / f"{name}.yaml"
    template = _own(name)
    if template.place != str(path):
        raise click.UsageError(f"{name} is in {template.place}; change it there.")
    return path


@command.command("edit")
@click.argument("name")
@with_output
def edit(out: Output, name: str) -> None:
    r"""
    Open the template NAME in your editor ($VISUAL or $EDITOR); a new one is made.

    \b
    interlingua templates edit translate
    """
    _check_name(name)
    path = _file_of(name) if _find_own(name) else templates_folder() / f"{name}.yaml"
    text = edit_file(out, path, "prompt: $input\nsystem: \n", lambda text: _check_text(text, path))
    if text is None:
        return
    write_private(path, text)
    out.note(f"Saved {path}.")


@command.command("remove")
@click.argument("name")
@with_output
def remove(out: Output, name: str) -> None:
    r"""
    Remove the template NAME from your folder.

    \b
    interlingua templates remove translate
    """
    _file_of(name).unlink()
    out.data({"name": name, "removed": True}) if out.json else out.note(f"Removed {name}.")


@command.command("path")
@with_output
def path(out: Output) -> None:
    r"""
    Print the folder of your templates.

    \b
    ls "$(interlingua templates path)"
    """
    place = str(templates_folder())
    out.data({"path": place}) if out.json else out.line(place)
