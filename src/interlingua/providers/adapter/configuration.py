"""How an adapter is configured: its key, address, headers, connections, profiles and options."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, get_args

from msgspec.structs import replace

from interlingua import lazy
from interlingua.prepare.options import AUTO_CACHE, TOOLS
from interlingua.providers.adapter_options import (
    Branching,
    RowSettings,
    check_key,
    check_settings,
    find_base_url,
    find_branching,
    find_endpoint,
    find_headers,
    find_timeouts,
    find_transport,
    get_transport_ready,
    join_options,
    split_endpoint,
    starts_server,
    with_base_path,
)
from interlingua.providers.catalog.models import clear_on_change, table
from interlingua.providers.catalog.profiles import profile_for
from interlingua.providers.environment import add_environment
from interlingua.providers.http_requests import join_headers
from interlingua.providers.keys import Key, KeySource
from interlingua.providers.provider import (
    Branch,
    Endpoint,
    Provider,
    Signing,
    check_base_url,
    check_dialect,
    find_dialect,
    sign,
)
from interlingua.providers.rows import find_provider
from interlingua.providers.tariffs import Seller
from interlingua.runtime.callbacks import signature_of
from interlingua.spec.behaviour import Behaviour
from interlingua.spec.content import Json
from interlingua.spec.contracts import (
    NEUTRAL_PROFILE,
    Dialect,
    Profile,
    Transport,
)
from interlingua.spec.defaults import Limits, Timeouts
from interlingua.spec.errors import ConfigurationError, SDKError, UnsupportedError
from interlingua.spec.messages import Message
from interlingua.spec.request import OnLoss, Request, ToolChoiceMode
from interlingua.spec.response import Warning
from interlingua.wire.aws_credentials import AwsCredentials

if TYPE_CHECKING:
    from pathlib import Path

    from interlingua.local import LocalServer
    from interlingua.providers.credentials import Credentials
    from interlingua.wire.secrets import Redactor

Decoded = TypeVar("Decoded")
_MAX_PROFILES = 512  # cached per adapter


class Profiles(dict[str, Profile]):
    """Profiles by model. A change of the catalog clears them."""

    def __init__(self) -> None:
        super().__init__()
        clear_on_change(self)


class Configuration:
    """
    Everything about an adapter that is known before a request: to whom it sends, and as whom.

    `Generation` and `Operations` read it; only `HttpAdapter` changes it.
    """

    def __init__(
        self,
        provider: Provider | str,
        api_key: Key | None = None,
        **settings: Unpack[RowSettings],
    ) -> None:
        if isinstance(provider, str):
            row = find_provider(provider)
            found = add_environment(row, {**settings, "api_key": api_key}, os.environ)
            api_key = found.pop("api_key")
            checked = check_settings(found)
        else:
            row, checked = provider, check_settings(settings)
        self.provider: Provider = row
        self.name: str = checked.get("name") or row.name
        self.source: str = ""
        self.max_retries: int = checked.get("max_retries", 0)
        self.behaviour: Behaviour | None = checked.get("behaviour", row.behaviour)
        is_strict = checked.get("strict", False)
        self.on_loss: OnLoss = "strict" if is_strict else checked.get("on_loss", "content")
        self.reads_files: bool = checked.get("read_files", True)
        self.starts_server: bool = starts_server(row, checked)
        self._server: LocalServer | None = checked.get("server")
        self._gguf: str | Path | None = checked.get("gguf")
        self.has_own_server: bool = "server" in checked
        self.has_own_dialect: bool = "dialect" in checked
        named = None
        if "base_url" in checked:
            checked["base_url"], named = split_endpoint(row, checked["base_url"])
        self.api_version: str = checked.get("api_version", "")
        self._speak(checked.get("dialect") or named or row.dialect)
        self.places: Mapping[str, str] = checked.get("places", {})
        has_branches = row.branches and not self.has_own_dialect and named is None
        self.branching: Branching | None = Branching(None) if has_branches else None
        self.options: Mapping[str, Json] = checked.get("options", {})
        self.overrides: Mapping[str, Any] = checked.get("profile", {})
        self.model_overrides: Mapping[str, Mapping[str, Any]] = checked.get("model_profiles", {})
        self.profiles: Profiles = Profiles()
        self.timeouts: Timeouts | None = find_timeouts(checked)
        self.limits: Limits | None = checked.get("limits")
        self.shared_transport: Transport = find_transport(checked)
        base_url = self._find_address(checked.get("base_url"))
        self._bind(check_key(api_key), base_url, find_headers(row, checked))

    def rebound(
        self,
        name: str,
        *,
        api_key: Key | None,
        base_url: str | None,
        headers: Mapping[str, str] | None,
        behaviour: Behaviour | None,
    ) -> Self:
        """A copy with another name, key, address or more headers; see `HttpAdapter.rebind`."""
        check_settings({"default_headers": headers, "behaviour": behaviour})
        twin = copy(self)
        twin.name = name
        if behaviour is not None:
            twin.behaviour, twin.profiles = behaviour, Profiles()
        address = self.base_url
        if base_url is not None:
            twin.starts_server = False
            base_url, named = split_endpoint(self.provider, base_url)
            twin.branching = self.branching if named is None else None
            address = twin._find_address(base_url)  # noqa: SLF001
            if named not in (None, self.dialect_name) and not self.has_own_dialect:
                twin._speak(named)  # noqa: SLF001
                twin.profiles = Profiles()
        own = self.key if self.credentials is None else self.credentials
        key = own if api_key is None else check_key(api_key)
        twin._bind(key, address, join_headers(self.headers, headers or {}))  # noqa: SLF001
        return twin

    def _find_address(self, base_url: str | None) -> str:
        """The base URL; with branches, also where their models are called."""
        if self.branching is not None:
            self.branching = find_branching(self.provider, base_url, self.places)
        if self.branching is not None and self.branching.places is not None:
            base_url, self.places = None, self.branching.places
        settings = {"base_url": base_url, "places": self.places}
        return find_base_url(self.provider, settings, has_server=self.starts_server)

    def branched(self, branch: Branch) -> Self:
        """A copy for the models of a branch; see `HttpAdapter.for_model`."""
        twin, own, address = copy(self), self.provider, self.base_url
        if branch.row:
            row = find_provider(branch.row)
            twin.provider = replace(row, aliases=(*row.aliases, own.name, *own.aliases))
        if self.branching is not None and self.branching.places is not None:
            twin.places = self.branching.places
            address = find_base_url(twin.provider, {"places": twin.places}, has_server=False)
        twin.branching, twin.profiles = None, Profiles()
        twin._speak(branch.dialect or twin.provider.dialect)  # noqa: SLF001
        key = self.key if self.credentials is None else self.credentials
        twin._bind(key, address, self.headers)  # noqa: SLF001
        twin.seller = self.seller
        return twin

    def find_branch(self, model: str) -> Branch | None:
        """The branch of a model; None if it is called as the row says."""
        if self.branching is None:
            return None
        is_signed = self.credentials is not None and self.credentials.is_signed
        for branch in self.provider.branches:
            if branch.is_signed in (None, is_signed) and re.fullmatch(branch.models, model):
                return branch
        return None

    def _speak(self, dialect: str) -> None:
        settings = {"api_version": self.api_version} if self.api_version else {}
        check_dialect(dialect)
        self.dialect_name: str = dialect
        lazy.forget(self, "dialect", "answers_take_request", "streams_take_request")
        self.endpoint: Endpoint | None = find_endpoint(self.provider, settings, dialect)

    @lazy.attribute
    def dialect(self) -> Dialect:
        """The dialect; a client loads those of the adapters that it uses."""
        return find_dialect(self.dialect_name)

    @lazy.attribute
    def answers_take_request(self) -> bool:
        """Whether the decoder of whole answers takes `request`: those of third parties need not."""
        return "request" in signature_of(self.dialect.decode_response).parameters

    @lazy.attribute
    def streams_take_request(self) -> bool:
        """The same of the decoder of streams."""
        return "request" in signature_of(self.dialect.stream_decoder).parameters

    def _bind(
        self, key: Key | Credentials | None, base_url: str, headers: Mapping[str, str]
    ) -> None:
        self.key: str | None = key if isinstance(key, str) else None
        self.credentials: Credentials | None = None
        self.transport: Transport = self.shared_transport
        """What requests are sent through: it signs them if the key is made while they are sent."""
        self.base_url: str = with_base_path(base_url, self.provider, self.endpoint)
        own = None if self.endpoint is None else self.endpoint.signing
        signing = own or self.provider.signing
        if key is not None and not isinstance(key, str):
            self._sign_later(key, signing)
        self.headers: Mapping[str, str] = headers
        self.signature: Mapping[str, str] = sign(signing, self.key)
        self.seller: Seller = Seller(self.provider.name, self.name, self.provider.is_local)
        self._redactor: Redactor | None = None  # made for the first error

    def _sign_later(self, key: KeySource | AwsCredentials | Credentials, signing: Signing) -> None:
        """Sign each request with a key that is made while it is sent."""
        from interlingua.providers.credentials import Credentials, credentials_of, sign_with

        self.credentials = key if isinstance(key, Credentials) else credentials_of(key)
        self.transport = sign_with(
            self.shared_transport,
            self.credentials,
            self.provider,
            self.base_url,
            self.places,
            signing,
        )

    # The key.

    @property
    def has_key(self) -> bool:
        """Whether there is an API key, or something that makes one."""
        return bool(self.key) or self.credentials is not None

    @property
    def is_configured(self) -> bool:
        """Whether there is an API key, or none is needed."""
        return self.has_key or not self.provider.key_required

    def check_key(self) -> None:
        """Raise `ConfigurationError` if the API key is missing."""
        if not self.is_configured:
            variables = " or ".join(self.provider.key_env)
            advice = f"Set {variables}, or pass" if variables else "Pass"
            text = f"{self.source}No API key for {self.name}. {advice} api_key=."
            raise ConfigurationError(text, error_code="not_configured", setting="api_key")

    async def load(self) -> None:
        """See `HttpAdapter.load`."""
        # Not the transport that signs: to make a key may need a request.
        transport = getattr(self.transport, "inner", self.transport)
        await get_transport_ready(transport, self.base_url)

    async def get_ready(self) -> None:
        """See `HttpAdapter.get_ready`."""
        try:
            await get_transport_ready(self.transport, self.base_url)
        except SDKError as error:
            self.label_error(error, None, None)
            raise

    def label_error(self, error: SDKError, request_id: str | None, model: str | None) -> None:
        """Add the provider, the model and the request id; redact the adapter's secrets."""
        error.add_facts(provider=self.name, model=model or None, request_id=request_id)
        redactor = self._redactor
        if redactor is None:
            from interlingua.wire.secrets import Redactor

            redactor = self._redactor = Redactor((self.key or "",))
            redactor.learn_headers(self.headers)
        if self.credentials is not None:
            for text in self.credentials.texts:
                redactor.add(text)
        redactor.redact_error(error)

    # The address.

    @property
    def server(self) -> LocalServer | None:
        """The local server of the adapter, if it starts one."""
        if self.starts_server and self._server is None:
            from interlingua.local import local_server

            self._server = local_server(self._gguf)
        return self._server if self.starts_server else None

    async def start_server(self, model: str, *, embeddings: bool = False) -> str:
        """The address of the local server for this model, which is started if needed."""
        server = self.server
        if server is None:
            return self.base_url
        if not self.has_own_server:  # a server that the caller made answers to any name
            from interlingua.local import server_for

            server = await asyncio.to_thread(server_for, model, server, embeddings=embeddings)
        elif embeddings and not server.embeddings:
            raise UnsupportedError(
                "This local server has no embeddings. Start it with LocalServer(embeddings=True)."
            )
        url = await asyncio.to_thread(server.start)
        return check_base_url(url, self.provider.base_path)

    @property
    def stream_content(self) -> float | None:
        """The seconds that a stream may go on without content; None for any number."""
        timeouts = self.timeouts or getattr(self.transport, "timeouts", None) or Timeouts()
        seconds: float | None = timeouts.stream_content
        return seconds

    @property
    def reply_limits(self) -> Limits:
        """The maximum sizes of a reply: the adapter's, else the transport's."""
        return self.limits or getattr(self.transport, "limits", None) or Limits()

    # Profiles and options.

    def profile_for(self, model: str) -> Profile:
        """The profile of a model."""
        profile = self.profiles.get(model)
        if profile is None:
            overrides = {**self.overrides, **self.model_overrides.get(model, {})}
            if self.behaviour is not None and self.behaviour.streaming is not None:
                overrides["streaming"] = self.behaviour.streaming
            used = table()
            profile = profile_for(self.dialect_name, model, self.provider.name, overrides)
            if len(self.profiles) >= _MAX_PROFILES:  # callers choose the names
                self.profiles.clear()
            if table() is used:  # else the catalog was changed meanwhile
                self.profiles[model] = profile
        return profile

    def supports_tool_choice(self, mode: ToolChoiceMode, model: str) -> bool | None:
        """Whether the model, or else the provider, supports this mode; None if it is unknown."""
        if mode not in get_args(ToolChoiceMode):
            known = ", ".join(get_args(ToolChoiceMode))
            raise ConfigurationError(
                f"There is no mode of tool choice {mode!r}. Use one of {known}."
            )
        own = _supports(self.profile_for(model), mode)
        if own is not None or model:
            return own
        # Of a provider it is asked what models of its own can do.
        families = [f"{family.rstrip('-')}-" for family in self.provider.families]
        answers = {_supports(self.profile_for(family), mode) for family in families}
        return True if True in answers else False if answers == {False} else None

    def with_options(
        self, request: Request, profile: Profile
    ) -> tuple[Request, dict[str, str], list[Warning]]:
        """The request with the adapter's options under its own; and the headers among them."""
        own = {}
        if self.options:
            own = under_request(self.options, request, profile, self.dialect)
        names = (self.name, request.provider)
        return join_options(request, own, self.provider, self.dialect_name, names)

    def settings(self) -> dict[str, Any]:
        """What is set besides the public attributes; of the key, only whether there is one."""
        return {
            "has_key": self.has_key,
            "headers": self.headers,
            "timeouts": self.timeouts,
            "options": self.options,
            "profile": self.overrides,
            "model_profiles": self.model_overrides,
        }


def _supports(profile: Profile, mode: ToolChoiceMode) -> bool | None:
    modes = profile.tool_choice_modes
    if profile.tools is False:
        return False
    return None if modes is None else mode in modes


# The options: defaults under the request, which is under its provider options.


_PROMPTS = ("system", "developer")


def under_request(
    options: Mapping[str, Json], request: Request, profile: Profile, dialect: Dialect
) -> dict[str, Json]:
    """
    The default options without the fields of the body that the request itself sets.

    Only the encoder knows which they are: they differ between the body of this request and that
    of an empty one. A field that the encoder writes by itself, such as a default, is in both.
    """
    no_cache = {dialect.NAME: {AUTO_CACHE: False}}  # cache keys differ for other reasons
    prompts = any(message.role in _PROMPTS for message in request.messages)
    system = (Message.system("a"),) if prompts else ()
    own = replace(request, messages=(*system, Message.user("a")), provider_options=no_cache)
    limit = None
    if request.max_tokens is not None:  # it may equal the default of the encoder
        limit = 2 if request.max_tokens == 1 else 1
    empty = Request(
        model=f"{request.model}-",
        messages=(Message.user("b"),),
        max_tokens=limit,
        provider_options=no_cache,
    )
    left, has_losses = _compare(options, own, empty, profile, dialect)
    if has_losses:  # a setting that the profile drops is the request's all the same
        neutral = replace(NEUTRAL_PROFILE, dialect=profile.dialect, quirks=profile.quirks)
        left, _ = _compare(left, own, empty, neutral, dialect)
    return left


def _compare(
    options: Mapping[str, Json], own: Request, empty: Request, profile: Profile, dialect: Dialect
) -> tuple[dict[str, Json], bool]:
    """The options that `own` does not set, and whether something of it was lost."""
    wire = dialect.encode_request(own, profile, stream=False)
    plain = dialect.encode_request(empty, profile, stream=False)
    return _without(options, _difference(wire.body, plain.body)), bool(wire.warnings)


def _difference(body: Json, empty: Json) -> dict[str, Json]:
    """The fields of a body that the empty one has not, or with another value."""
    fields: dict[str, Json] = {}
    if not isinstance(body, Mapping) or not isinstance(empty, Mapping):
        return fields
    for key, value in body.items():
        other = empty.get(key)
        if isinstance(value, Mapping) and isinstance(other, Mapping):
            if inner := _difference(value, other):
                fields[key] = inner
        elif key not in empty or value != other:
            fields[key] = value
    return fields


def _without(options: Mapping[str, Json], own: Mapping[str, Json]) -> dict[str, Json]:
    left: dict[str, Json] = {}
    for key, value in options.items():
        if key not in own or key == TOOLS:  # the encoder adds these to those of the request
            left[key] = value
        elif isinstance(value, Mapping) and isinstance(other := own[key], Mapping):
            left[key] = _without(value, other)
    return left
