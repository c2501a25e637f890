"""`interlingua completion`: the completion script of a shell, and what is completed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from interlingua.cli.output import Output, with_output

if TYPE_CHECKING:
    from interlingua.spec.contracts import ModelKind

_BASH = r"""
_interlingua_completion() {
    local line="${COMP_LINE:0:COMP_POINT}" current kept kind value
    current="${line##*[[:space:]]}"
    # Readline takes a colon for the end of a word: what is before it stays as it is typed.
    kept="${current%"${current##*[:=]}"}"
    COMPREPLY=()
    while IFS=, read -r kind value; do
        value="${value%%$'\t'*}"
        case "$kind" in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain)
                COMPREPLY+=("${value#"$kept"}")
                [[ "$value" == *: ]] && compopt -o nospace ;;
        esac
    done < <(COMP_WORDS="$line" COMP_CWORD="$current" _INTERLINGUA_COMPLETE=fish_complete "$1")
}
complete -o nosort -F _interlingua_completion interlingua il
"""
_ZSH = r"""
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
_interlingua_completion() {
    local -a names described
    local kind value about
    while IFS= read -r kind && IFS= read -r value && IFS= read -r about; do
        case "$kind" in
            dir) _path_files -/ ;;
            file) _path_files ;;
            plain) [[ "$about" == _ ]] && names+=("$value") || described+=("$value:$about") ;;
        esac
    done < <(COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT - 1)) \
        _INTERLINGUA_COMPLETE=zsh_complete "${words[1]}")
    (( $#described )) && _describe -V interlingua described
    (( $#names )) && compadd -V interlingua -a names
}
compdef _interlingua_completion interlingua il
"""
_FISH = r"""
function __interlingua_completion
    set -l words (commandline -opc)
    set -lx COMP_WORDS (commandline -cp)
    set -lx COMP_CWORD (commandline -ct)
    set -lx _INTERLINGUA_COMPLETE fish_complete
    for line in (command $words[1])
        set -l found (string split -m 1 , -- $line)
        switch $found[1]
            case dir
                __fish_complete_directories $COMP_CWORD
            case file
                __fish_complete_path $COMP_CWORD
            case plain
                echo $found[2]
        end
    end
end
complete --command interlingua --no-files --arguments '(__interlingua_completion)'
complete --command il --no-files --arguments '(__interlingua_completion)'
"""
_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
_KINDS: dict[str, ModelKind] = {
    "embed": "embedding", "embed-many": "embedding", "image": "image", "speak": "speech",
    "transcribe": "transcription", "create": "video",
}  # fmt: skip
"""The kind of models that a command uses, if it is not `chat`."""


@click.command("completion")
@click.argument("shell", type=click.Choice(list(_SCRIPTS)))
@with_output
def command(out: Output, shell: str) -> None:
    r"""
    Print the script that completes `interlingua` and `il` in SHELL.

    Commands, options, files, and the names of models and providers are completed.

    \b
    eval "$(interlingua completion bash)"                # in ~/.bashrc
    eval "$(interlingua completion zsh)"                 # in ~/.zshrc
    interlingua completion fish | source                 # in ~/.config/fish/config.fish
    """
    script = _SCRIPTS[shell].strip()
    if out.json:
        out.data({"shell": shell, "script": script})
    else:
        out.line(script)


class _Names(click.ParamType):  # type: ignore[type-arg]
    """A text that is completed."""

    name = "text"


class _ModelName(_Names):
    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002 -- of click
        incomplete: str,
    ) -> list[CompletionItem]:
        """The models of the providers with a key; of another one, if it is typed."""
        return _items(model_names(incomplete, _KINDS.get(ctx.info_name or "", "chat")))


class _ProviderName(_Names):
    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 -- of click
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """All providers."""
        from interlingua.providers.rows import providers

        return _items(sorted(name for name in providers() if name.startswith(incomplete)))


class _FileName(_Names):
    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 -- of click
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """The shell finds them."""
        return [CompletionItem(incomplete, type="file")]


def _items(names: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names]


def model_names(start: str, kind: ModelKind = "chat") -> list[str]:
    """
    The models of a kind whose names begin so.

    Until a provider is typed, they are those of the providers with a key, and what other providers
    could be typed.
    """
    from interlingua.catalog import list_models
    from interlingua.cli.clients import configured_providers
    from interlingua.providers.rows import providers

    provider, colon, _ = start.partition(":")
    models = list_models(provider if colon else None, kind=kind, available=True)
    shown = {provider} if colon else configured_providers()
    names = [f"{model.provider}:{model.id}" for model in models if model.provider in shown]
    others = {model.provider for model in models} - shown
    names += [f"{name}:" for name in providers() if name in others]
    return [name for name in names if name.startswith(start)]


def add_completions(command: click.Command) -> None:
    """Complete models, providers and files wherever a command and its subcommands take them."""
    for each in (command, *getattr(command, "commands", {}).values()):
        for parameter in each.params:
            if parameter.type is not click.STRING:
                continue
            if parameter.name in ("model", "models"):
                parameter.type = _ModelName()
            elif parameter.name == "provider":
                parameter.type = _ProviderName()
            elif "FILE" in (parameter.metavar or ""):
                parameter.type = _FileName()
