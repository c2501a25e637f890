"""The names of what a provider stores: records, and references such as `openai:file-abc`."""

from __future__ import annotations

from interlingua.api.modalities.perform import MediaCall, MediaOptions
from interlingua.spec.check import describe
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.modalities.batch import Batch
from interlingua.spec.modalities.files import StoredFile


def split_reference(reference: str, provider: str | None) -> tuple[str, str]:
    """The provider and the id in a reference; the provider may be known from an option instead."""
    if provider:
        return provider, reference.removeprefix(f"{provider}:")
    provider, _, stored_id = reference.partition(":")
    return provider, stored_id


def find_stored(
    stored: object,
    kind: type[Batch | StoredFile],
    options: MediaOptions,
    *,
    word: str,
    example: str,
) -> tuple[MediaCall, str]:
    """The call at the provider of a batch or file, and its id; `word` is its word in errors."""
    provider: str | None = options.get("provider")
    if isinstance(stored, kind):
        provider, stored_id = provider or stored.provider, stored.id
    elif isinstance(stored, str):
        provider, stored_id = split_reference(stored, provider)
    else:
        raise ConfigurationError(f"Name a {word} by its reference, not by {describe(stored)}.")
    if not provider or not stored_id:
        raise ConfigurationError(
            f"{stored!r} does not name a provider. The reference of a {word} does, such as "
            f"{example!r}, or pass provider=."
        )
    return MediaCall("", {**options, "provider": provider}), stored_id
