"""How a provider sends the calls of a dialect, where it differs: its path, query and body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias
from urllib.parse import quote, urlencode

from msgspec.structs import replace

from interlingua.spec.content import Json, Record
from interlingua.spec.contracts import WireCall
from interlingua.spec.errors import ConfigurationError

Signing: TypeAlias = Literal[
    "bearer", "x-api-key", "x-goog-api-key", "api-key", "x-portkey-api-key", "sigv4"
]
"""
How the key is sent: as `Authorization: Bearer`, or in the header of this name.

`sigv4` is a signature of AWS; a text key is sent as `Authorization: Bearer` there.
"""

MODEL = "{model}"
# The characters that HTTP libraries leave as they are in a path. A signature covers the path, so
# it must be sent as it was signed.
_SAFE = ":@!$&'()*,;="


class Endpoint(Record, frozen=True, kw_only=True):
    """
    How the calls of one dialect are sent, where that differs from the dialect.

    `{model}` in a path is the name of the model; the body then has none.
    """

    signing: Signing | None = None
    """How the key is sent there, if in another way."""
    base_path: str | None = None
    """The path of a base URL that has none, or that of the row; None for that of the row."""
    path: str = ""
    """The path of calls that generate; empty for that of the dialect."""
    stream_path: str = ""
    """The path of streams, if it is another."""
    stream_accept: str = ""
    """The media type of streams, if it is not that of server-sent events."""
    query: Mapping[str, str] = {}
    """Parameters of every URL; `{api_version}` in a value is the version."""
    without: tuple[str, ...] = ()
    """Fields that bodies do not have there."""
    header_fields: Mapping[str, str] = {}
    """Headers that are fields of the body instead: header -> field; flags are a list there."""
    header_values: Mapping[str, str] = {}
    """The values of these headers that are written in another way there."""
    operation_paths: Mapping[str, str] = {}
    """The paths of operations, if they differ from those of the dialect."""

    def address(self, call: WireCall, model: str, version: str = "") -> WireCall:
        """A call that generates, as it is sent there."""
        path = (self.stream_path if call.stream else "") or self.path or call.path
        call = self._adapt(call, path, model, version)
        if call.stream and self.stream_accept:
            call = replace(call, headers={**call.headers, "accept": self.stream_accept})
        return call

    def address_operation(
        self, call: WireCall, name: str, model: str, version: str = ""
    ) -> WireCall:
        """The call of another operation, as it is sent there."""
        return self._adapt(call, self.operation_paths.get(name, call.path), model, version)

    def _adapt(self, call: WireCall, path: str, model: str, version: str) -> WireCall:
        headers, body = dict(call.headers), call.body
        if isinstance(body, dict):
            moved = {
                field: self._field_value(header, headers.pop(header))
                for header, field in self.header_fields.items()
                if header in headers
            }
            body = {**moved, **body}
            removed = (*self.without, "model") if MODEL in path else self.without
            body = {name: value for name, value in body.items() if name not in removed}
        path = path.replace(MODEL, quote_model(model)) if MODEL in path else path
        query = {
            name: value.replace("{api_version}", version) for name, value in self.query.items()
        }
        if query:
            path += ("&" if "?" in path else "?") + urlencode(query, quote_via=quote)
        return replace(call, path=path, body=body, headers=headers)

    def _field_value(self, header: str, value: str) -> Json:
        if header.endswith("-beta"):
            return [flag.strip() for flag in value.split(",")]
        return self.header_values.get(value, value)


def quote_model(model: str) -> str:
    """The name of a model as one segment of a path; `ConfigurationError` if it cannot be one."""
    if model.partition(";")[0] in ("", ".", ".."):  # a server may drop `;` and what follows it
        raise ConfigurationError(f"{model!r} cannot be the name of a model in a URL")
    return quote(model, safe=_SAFE, errors="replace")


class DerivedPlace(Record, frozen=True, kw_only=True):
    """A place in a base URL whose value follows from that of another place."""

    of: str
    """The name of the other place."""
    form: str
    """The value, with the other one at `{}`."""
    exceptions: Mapping[str, str] = {}
    """Values of the other place that give another value."""

    def value(self, values: Mapping[str, Any]) -> str:
        """The value for these values of the other places."""
        other = values[self.of]
        return self.exceptions.get(other) or self.form.format(other)
