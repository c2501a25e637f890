"""`interlingua default`: the model that answers when none is named."""

from __future__ import annotations

import os

import click

from interlingua.cli.clients import (
    MODEL,
    choose_model,
    embedding_model,
    open_client,
    usable_adapters,
)
from interlingua.cli.config import change_config
from interlingua.cli.configuration import read_settings
from interlingua.cli.output import Output, with_output


@click.command("default")
@click.argument("model", required=False)
@click.option("--embedding", is_flag=True, help="The model of `embed` and `embed-many`.")
@click.option("--remove", is_flag=True, help="Remove the default model from the file.")
@with_output
def command(out: Output, model: str | None, *, embedding: bool, remove: bool) -> None:
    r"""
    Set the MODEL that answers when none is named; without MODEL, print it.

    It is kept as `default_model` in the configuration file, which programs read too. A variable
    INTERLINGUA_MODEL comes before it.

    \b
    interlingua default anthropic:claude-haiku-4-5
    interlingua default --embedding openai:text-embedding-3-small
    """
    if remove and model is not None:
        raise click.UsageError("Give either MODEL or --remove.")
    if model is None and not remove:
        name, why = _embedding_model() if embedding else choose_model()
        out.data({"model": name, "reason": why}) if out.json else out.line(name)
        if not out.json:
            out.note(f"({why})")
        return
    if model is not None:
        _check_embedding(model) if embedding else check_model(out, model)
    path = change_config(out, ("default_embedding_model" if embedding else "default_model",), model)
    if out.json:
        out.data({"model": model, "path": str(path)})
        return
    what = "default model for embeddings" if embedding else "default model"
    out.note(f"The {what} is now {model}." if model else f"There is no {what} now.")
    if model and not embedding and os.environ.get(MODEL):
        out.warn(f"{MODEL} is set and comes first.")


def _embedding_model() -> tuple[str, str]:
    model = embedding_model()
    return model, f"default_embedding_model of {read_settings().places['default_embedding_model']}"


def _check_embedding(model: str) -> None:
    """Refuse a name that cannot be one: of no provider, adapter or alias."""
    from interlingua.providers.rows import row_name

    prefix, colon, name = model.partition(":")
    is_known = colon and (row_name(prefix) or prefix in usable_adapters())
    if not (is_known and name) and model not in read_settings().aliases:
        raise click.UsageError(
            f"{model!r} names no provider. Write provider:model; `interlingua models --kind "
            "embedding` lists some."
        )


def check_model(out: Output, model: str) -> None:
    """Refuse a name that no provider has; one without a key may be set all the same."""
    from interlingua import Request
    from interlingua.errors import ConfigurationError
    from interlingua.providers.rows import row_name

    if not model.strip():
        raise click.UsageError("The name of the model is empty.")
    with open_client() as client:
        try:
            client.explain(Request(model=model, messages="Hello"))
        except ConfigurationError as error:
            prefix, colon, _ = model.partition(":")
            is_known = not colon or row_name(prefix) is not None
            if error.error_code != "not_configured" or not is_known:
                raise
            out.warn(str(error))
