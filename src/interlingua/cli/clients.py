"""The client and the default model of the command line."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from interlingua.cli.keystore import stored_keys

if TYPE_CHECKING:
    from interlingua.cli.prompts import Question
    from interlingua.sync import Client

MODEL = "INTERLINGUA_MODEL"
"""The variable that names the model to use when none is named."""
LOCAL_MODEL = "local:smollm2"
LOCAL_SETTINGS: Mapping[str, Any] = {"max_tokens": 400, "temperature": 0.2}
"""How `LOCAL_MODEL` answers if nobody named it: it is tiny, wanders off, and repeats itself."""


def environment() -> Mapping[str, str]:
    """The variables of the environment that are set, over the stored keys."""
    return {**stored_keys(), **{name: value for name, value in os.environ.items() if value}}


def open_client() -> Client:
    """A blocking client for every provider with a key."""
    import logging

    from interlingua.sync import Client

    # What the library logs as a warning is part of the result, and printed from there.
    logging.getLogger("interlingua").addHandler(logging.NullHandler())
    return Client.from_env(environment())


@contextmanager
def collected_logs(messages: list[str]) -> Iterator[None]:
    """Add what the library logs as a warning, where it is not part of a result."""
    import logging

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    collector = Collector(logging.WARNING)
    logger = logging.getLogger("interlingua")
    logger.addHandler(collector)
    try:
        yield
    finally:
        logger.removeHandler(collector)


def choose_model() -> tuple[str, str]:
    """The model for a question that names none, and why it was chosen."""
    from interlingua.catalog import get_latest_model
    from interlingua.client.config import adapters_from_env

    environ = environment()
    if named := environ.get(MODEL):
        return named, f"{MODEL} is set"
    for name, adapter in adapters_from_env(environ).items():
        if adapter.provider.is_local or adapter.provider.is_embedded:
            continue
        model = get_latest_model(name, tier="small") or get_latest_model(name)
        if model is not None:
            return f"{name}:{model.id}", f"there is a key for {name}"
    return LOCAL_MODEL, "no key is configured: a small model on this machine answers"


def chosen_settings(question: Question, model: str | None) -> dict[str, Any]:
    """The settings of the local model, but those that were given, if no model was named."""
    if question.model is not None or model != LOCAL_MODEL:
        return {}
    return {k: value for k, value in LOCAL_SETTINGS.items() if k not in question.options}
