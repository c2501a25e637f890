"""The commands. A module is loaded when its command is used, so that `--help` is fast."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

import click

from interlingua.cli.output import config_option, is_terminal
from interlingua.runtime.installed import COMMANDS as PLUGINS
from interlingua.runtime.installed import entry_points_of
from interlingua.version import __version__

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS: Mapping[str, str] = {
    "ask": "Ask a model one question; the answer is printed.",
    "chat": "Talk with a model, and change the model on the way.",
    "explain": "Show the request that would be sent, without sending it.",
    "models": "List models with prices, context windows and capabilities.",
    "providers": "List providers, and what is missing to use them.",
    "keys": "Set, list and remove API keys for this command line.",
    "default": "Set or print the model that answers when none is named.",
    "alias": "Set, list and remove short names for models.",
    "config": "Show, edit and accept the configuration file.",
    "templates": "List, show, edit and remove templates of questions.",
    "schemas": "List and show the schemas that `--schema` has used.",
    "fragments": "List, name, show and remove texts that `-f` puts before a prompt.",
    "plugins": "List what other packages add: commands, tools, templates, providers, dialects.",
    "chats": "List, name, export and remove conversations.",
    "log": "Read the calls that were made: list, search, show, costs.",
    "check": "Check a dialect, an adapter or a running server; print a score.",
    "translate": "Translate a request, response or stream to another dialect.",
    "doctor": "Say what is installed and configured, and what a model would refuse.",
    "serve": "Run the gateway: any program speaks to any model.",
    "connect": "Tell a coding agent or another program to use the gateway.",
    "simulate": "Run a server that answers like the vendors' APIs, without a model.",
    "record": "Record what a program sends to providers, and their replies, in a file.",
    "replay": "Answer a program from a file of `record`, without network and keys.",
    "reprice": "Compute the costs of stored calls again, with today's or your prices.",
    "compare": "Ask several models the same question, and print their answers side by side.",
    "embed": "Print the vectors of texts (embeddings).",
    "embed-many": "Embed many texts and store their vectors in a collection.",
    "similar": "List what is most similar in a collection to a text.",
    "collections": "List and delete collections of vectors.",
    "image": "Make an image and write it to a file.",
    "speak": "Speak a text, and write the audio to a file.",
    "transcribe": "Print the text of an audio file.",
    "video": "Make a video and write it to a file.",
    "batch": "Send many requests at once, which are answered within a day.",
    "bulk": "Ask a model about each row of a table; each row is paid for once.",
    "local": "Download, list and run the model on this machine.",
    "completion": "Print the script with which a shell completes commands.",
}
"""Each command with the line that `--help` prints; it is `command` of the module of its name."""

_ASK = "ask"
_OTHER_NAMES = {"prompt": _ASK, "embed-multi": "embed-many", "help": "--help"}
"""Words that are commands of similar programs, and what they are here."""
_ALIKE = 0.7  # how much of a word must be that of a command: `modles`, `image-gen`, not `hello`


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- of click
        """The names, in the order of the table, then those of plugins."""
        return list(dict.fromkeys((*COMMANDS, *_plugin_names())))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module."""
        if cmd_name not in COMMANDS:
            return _plugin_command(cmd_name)
        command: click.Command = import_module(
            f"interlingua.cli.{cmd_name.replace('-', '_')}"
        ).command
        for each in (command, *getattr(command, "commands", {}).values()):
            _mark_examples(each)
        if ctx.resilient_parsing:  # a shell asks for completions
            from interlingua.cli.completion import add_completions

            add_completions(command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands, without importing them, and the options."""
        from click.shell_completion import CompletionItem

        commands = {**dict.fromkeys(_plugin_names()), **COMMANDS}
        found = [
            CompletionItem(name, help=text)
            for name, text in commands.items()
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; what is no command is a question: `il "Why?"`, `cat file | il`."""
        own, rest = _split_options(args)
        # A shell that asks for completions may not have typed its question yet.
        is_begun = ctx.resilient_parsing and not (rest and (rest[0][0:1] == "-" or " " in rest[0]))
        if is_begun or not _is_question(ctx, rest):
            return super().parse_args(ctx, args)
        return super().parse_args(ctx, [*own, _ASK, *rest])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; a word that is spelled like one is not sent to a model."""
        name = args[0]
        if name not in COMMANDS and not ctx.resilient_parsing and name not in _plugin_names():
            near = _nearest(name)
            ctx.fail(
                f"There is no command '{name}'. Did you mean '{near}'? "
                f'`interlingua {_ASK} "{name}"` asks a model.'
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
        names = [name for name in _plugin_names() if name not in COMMANDS]
        if names:
            with formatter.section("Commands of plugins"):
                formatter.write_text(", ".join(names))


def _mark_examples(command: click.Command) -> None:
    r"""Mark the examples for click: `\b` is two characters in a raw docstring."""
    command.help = (command.help or "").replace("\\b\n", "\b\n")


def _split_options(args: list[str]) -> tuple[list[str], list[str]]:
    """The option --config before the command, and the rest."""
    first = args[0] if args else ""
    count = 2 if first == "--config" else int(first.startswith("--config="))
    return args[:count], args[count:]


def _is_question(ctx: click.Context, args: list[str]) -> bool:
    """Whether the arguments are those of `ask`, whose name may be left out."""
    if not args:
        return not is_terminal(sys.stdin)
    first = args[0]
    if first.startswith("-"):
        own = (*ctx.help_option_names, "--version")
        return first not in own
    if first in COMMANDS or " " in first or first in _plugin_names():
        return " " in first
    return _nearest(first) is None


@cache
def _plugin_names() -> tuple[str, ...]:
    """The commands of other packages; nothing of them is loaded."""
    return tuple(point.name for point in entry_points_of(PLUGINS))


def _plugin_command(name: str) -> click.Command | None:
    """The command of another package with this name."""
    if name not in _plugin_names():
        return None
    from interlingua.cli.plugins import find_plugin, load_command

    plugin = find_plugin(PLUGINS, name)
    return None if plugin is None else load_command(plugin)


def _nearest(word: str) -> str | None:
    """The command that is spelled like this word; None if none is, or if it is a sentence."""
    from difflib import get_close_matches

    if word in _OTHER_NAMES:
        return _OTHER_NAMES[word]
    near = [] if " " in word else get_close_matches(word.lower(), COMMANDS, n=1, cutoff=_ALIKE)
    return near[0] if near else None


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Without a key, `interlingua ask` uses a small model on this machine.",
)
@config_option
@click.version_option(__version__, prog_name="interlingua", message="%(prog)s %(version)s")
def program() -> None:
    r"""
    Speak to the models of any provider. What is no command is a question for `ask`.

    \b
    interlingua "Ten names for a pet pelican"
    cat error.log | interlingua "What is wrong here?"
    interlingua chat
    """


_mark_examples(program)
