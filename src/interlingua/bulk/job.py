"""A job: what is asked about each row. It makes the request of a row, and the hash of it."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from interlingua import lazy
from interlingua.api.objects.options import ObjectOptions
from interlingua.api.objects.schema import object_schema
from interlingua.api.run.options import check_options, make_request
from interlingua.bulk.template import RowProblem, Template
from interlingua.client.client import Client
from interlingua.spec.content import Document, Image, Json, Part, Record, Text
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.request import Request

HASH_BYTES = 16
_FORM = 1  # of the hash: another number makes all hashes new
_NOT_OPTIONS = frozenset(
    (
        *("client", "messages", "prompt", "system", "tools", "mcp_servers", "request_id"),
        *("api_key", "headers", "abort_signal", "resume", "approvals", "session_id", "context"),
    )
)
"""Options of `generate` that belong to one call, hold secrets, or run tools."""


class Job(Record, frozen=True, kw_only=True, dict=True):
    """
    What is asked about each row. It holds plain values, and no key.

        Job(model="openai:gpt-5.2", prompt="Genre of {title}?", options={"max_tokens": 20})
    """

    model: str
    """The model that answers."""
    prompt: str
    """The template of the prompt: columns in braces."""
    system: str | None = None
    """The template of the system prompt."""
    schema: Json = None
    """The JSON Schema of the objects to ask for; None for text."""
    images: tuple[str, ...] = ()
    """The columns with images: a path, a URL or bytes."""
    documents: tuple[str, ...] = ()
    """The columns with documents, given as images are."""
    options: Mapping[str, Any] = {}
    """Options of `generate`: `max_tokens`, `temperature`, `thinking` and so on."""
    folder: str = ""
    """The folder that paths in columns start from."""
    salt: str = ""
    """Not empty if equal requests are to be sent again: part of each hash, with the row's key."""

    @lazy.attribute
    def templates(self) -> tuple[Template, Template | None]:
        """The templates of the prompt and of the system prompt."""
        return Template(self.prompt), None if self.system is None else Template(self.system)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a row must have."""
        prompt, system = self.templates
        others = () if system is None else system.columns
        return tuple(dict.fromkeys((*prompt.columns, *others, *self.images, *self.documents)))

    def check(self) -> None:
        """Raise `ConfigurationError` for a template, a schema or an option that cannot be used."""
        for name in self.options.keys() & _NOT_OPTIONS:
            raise ConfigurationError(f"A bulk job has no option {name!r}.", setting=name)
        check_options(self.options, ObjectOptions.__annotations__)
        _ = self.templates
        if self.schema is not None:
            object_schema(self.schema)
        try:
            msgspec.json.encode(self.options)
        except (TypeError, ValueError) as error:
            raise ConfigurationError(
                f"The options of a bulk job must be plain values, as in JSON: {error}."
            ) from None

    def digest(self, client: Client) -> bytes:
        """
        Return the hash of everything that is the same for all rows, and affects their answers.

        The model is that which the client would ask. Keys and addresses do not count: the same
        model elsewhere gives the same answer.
        """
        target = client.address(Request(model=self.model, provider=self.options.get("provider")))
        options = {name: value for name, value in self.options.items() if name != "max_retries"}
        form = [_FORM, target.provider, target.model, self.prompt, self.system, self.schema,
                self.images, self.documents, options, self.salt]  # fmt: skip
        return blake2b(msgspec.json.encode(form, order="sorted"), digest_size=32).digest()

    def ask(self, row: Mapping[str, Any], key: str, digest: bytes) -> Ask:
        """Return what is sent for a row, and its hash; raises `RowProblem`."""
        prompt, system = self.templates
        text = prompt.fill(row)
        instruction = None if system is None else system.fill(row)
        hasher = blake2b(digest, digest_size=HASH_BYTES)
        # Lengths keep apart what would be equal if it were joined.
        first, second = _utf8(text), b"" if instruction is None else _utf8(instruction)
        hasher.update(b"%d %d " % (len(first), len(second)))
        hasher.update(first)
        hasher.update(second)
        parts: list[Part] = []
        size = len(first) + len(second)
        for kind, columns in ((Image, self.images), (Document, self.documents)):
            for column in columns:
                part, content = _media(kind, row, column, self.folder)
                hasher.update(b"%d " % len(content))
                hasher.update(content)
                size += len(content) * 4 // 3  # as base64
                parts.append(part)
        if self.salt:
            hasher.update(key.encode())
        return Ask(hasher.digest(), text, instruction, tuple(parts), size)

    def base_request(self) -> Request:
        """Return a request with the options of all rows; `messages` are set for each."""
        return make_request(self.model, (Message.user("-"),), None, self.options)


class Ask(NamedTuple):
    """What is sent for one row."""

    hash: bytes
    prompt: str
    system: str | None
    parts: tuple[Part, ...]
    size: int
    """Bytes of its texts and media on the wire, about."""

    def messages(self) -> tuple[Message, ...]:
        """The conversation: the system prompt, the media and the prompt."""
        user = Message(role="user", content=(*self.parts, Text(text=self.prompt)))
        if self.system is None:
            return (user,)
        return (Message(role="system", content=(Text(text=self.system),)), user)

    def request(self, base: Request) -> Request:
        """The request for this row."""
        return replace(base, messages=self.messages(), request_id=None)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise RowProblem("The row has text that is not valid Unicode.") from None


def _media(
    kind: type[Image | Document], row: Mapping[str, Any], column: str, folder: str
) -> tuple[Part, bytes]:
    """A part from a column, and the bytes that stand for it in the hash."""
    value = row.get(column)
    if isinstance(value, Mapping):  # as data sets store images: {"bytes": …, "path": …}
        value = value.get("bytes") or value.get("path")
    if isinstance(value, (bytes, bytearray)):
        return kind(data=bytes(value)), bytes(value)
    if not isinstance(value, str) or not value:
        raise RowProblem(f"The column {column!r} has no path, URL or bytes.")
    if value.startswith(("http://", "https://", "data:")):
        return kind(value), value.encode()
    path = Path(folder, value)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RowProblem(f"The column {column!r}: {path}: {error.strerror}.") from None
    return kind(path=path), content
