"""`interlingua completion`: the completion script of a shell."""

from __future__ import annotations

import click

from interlingua.cli.output import Output, with_output

_SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_INTERLINGUA_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
@with_output
def command(out: Output, shell: str) -> None:
    r"""
    Print the script that completes commands and options in SHELL.

    \b
    eval "$(interlingua completion bash)"                                   # in ~/.bashrc
    interlingua completion fish > ~/.config/fish/completions/interlingua.fish
    """
    from click.shell_completion import get_completion_class

    from interlingua.cli.commands import program

    kind = get_completion_class(shell)
    if kind is None:  # click has all three
        raise click.UsageError(f"There is no completion for {shell}.")
    completion = kind(program, {}, "interlingua", _VARIABLE)
    script = completion.source_template % completion.source_vars()
    if out.json:
        out.data({"shell": shell, "script": script})
    else:
        out.line(script)
