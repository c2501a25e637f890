"""How an adapter is configured: its key, address, headers, connections and profiles."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from copy import copy
from math import inf
from typing import TYPE_CHECKING, Any, Self, Unpack, get_args

from interlingua.prepare.behaviour import behave
from interlingua.providers.adapter_options import (
    RowSettings,
    check_key,
    check_settings,
    find_base_url,
    find_endpoint,
    find_headers,
    find_server,
    find_timeouts,
    find_transport,
    with_base_path,
)
from interlingua.providers.catalog.profiles import profile_for
from interlingua.providers.credentials import Credentials, Key, credentials_of
from interlingua.providers.endpoints import Endpoint
from interlingua.providers.environment import add_environment
from interlingua.providers.http_requests import join_headers
from interlingua.providers.provider import Provider, check_base_url, find_dialect, sign
from interlingua.providers.rows import find_provider
from interlingua.providers.signed_transport import sign_with
from interlingua.providers.tariffs import Seller
from interlingua.runtime.cancel import Scopes
from interlingua.spec.behaviour import Behaviour
from interlingua.spec.contracts import AdapterCapabilities, Dialect, Profile, Transport
from interlingua.spec.defaults import Limits, Timeouts
from interlingua.spec.errors import ConfigurationError, SDKError, UnsupportedError
from interlingua.spec.request import OnLoss, Request, ToolChoiceMode
from interlingua.tokens.estimate import estimate_request
from interlingua.wire.secrets import Redactor

if TYPE_CHECKING:
    from interlingua.local import LocalServer

_MAX_PROFILES = 512  # cached per adapter


class ConfiguredAdapter:
    """The part of `HttpAdapter` that needs no request; see there."""

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
        """Where it is configured: the beginning of errors about its configuration."""
        self.max_retries: int = checked.get("max_retries", 0)
        self.behaviour: Behaviour | None = checked.get("behaviour", row.behaviour)
        is_strict = checked.get("strict", False)
        self.on_loss: OnLoss = "strict" if is_strict else checked.get("on_loss", "content")
        self.reads_files: bool = checked.get("read_files", True)
        self.server: LocalServer | None = find_server(row, checked)
        """The local server that this adapter starts, if any."""
        self._has_own_server = "server" in checked
        self._dialect_name: str = checked.get("dialect") or row.dialect
        self._api_version: str = checked.get("api_version", "")
        self._endpoint: Endpoint | None = find_endpoint(row, checked, self._dialect_name)
        self._places: Mapping[str, str] = checked.get("places", {})
        self._shared_transport: Transport = find_transport(checked)
        self._bind(
            check_key(api_key),
            find_base_url(row, checked, self.server),
            find_headers(row, checked),
        )
        self._request_id_header = row.request_id_header
        self._most_bytes = row.sizes.request or inf
        self._options: Mapping[str, Any] = checked.get("options", {})
        self._overrides: Mapping[str, Any] = checked.get("profile", {})
        self._model_overrides: Mapping[str, Mapping[str, Any]] = checked.get("model_profiles", {})
        self._profiles: dict[str, Profile] = {}
        self._scopes = Scopes()
        self._dialect: Dialect = find_dialect(self._dialect_name)
        self._family = self._dialect.FACTS.token_family
        self._timeouts = find_timeouts(checked)
        self._limits: Limits | None = checked.get("limits")
        timeouts = self._timeouts or getattr(self._transport, "timeouts", None) or Timeouts()
        self._stream_content: float | None = timeouts.stream_content

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, base_url={self._base_url!r})"

    def rebind(
        self,
        name: str,
        *,
        api_key: Key | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        behaviour: Behaviour | None = None,
    ) -> Self:
        """A copy with another name, key, address or more headers; it shares the connections."""
        check_settings({"default_headers": headers, "behaviour": behaviour})
        twin = copy(self)
        twin.name = name
        if behaviour is not None:
            twin.behaviour, twin._profiles = behaviour, {}  # noqa: SLF001
        address = self._base_url
        if base_url is not None:
            twin.server = None
            address = find_base_url(self.provider, {"base_url": base_url}, None)
        own = self._key if self._credentials is None else self._credentials
        key = own if api_key is None else check_key(api_key)
        twin._bind(key, address, join_headers(self._headers, headers or {}))  # noqa: SLF001
        return twin

    def _bind(
        self, key: Key | Credentials | None, base_url: str, headers: Mapping[str, str]
    ) -> None:
        self._key: str | None = key if isinstance(key, str) else None
        self._credentials: Credentials | None = None
        self._transport: Transport = self._shared_transport
        self._base_url = with_base_path(base_url, self.provider, self._endpoint)
        own = None if self._endpoint is None else self._endpoint.signing
        signing = own or self.provider.signing
        if key is not None and not isinstance(key, str):
            self._credentials = key if isinstance(key, Credentials) else credentials_of(key)
            self._transport = sign_with(
                self._shared_transport,
                self._credentials,
                self.provider,
                self._base_url,
                self._places,
                signing,
            )
        self._headers = headers
        self._signature = sign(signing, self._key)
        self.seller: Seller = Seller(self.provider.name, self.name, self.provider.is_local)
        """Whose prices its calls have."""
        self._redactor = Redactor((self._key or "",))
        self._redactor.learn_headers(headers)

    @property
    def dialect(self) -> str:
        """The name of its dialect."""
        return self._dialect_name

    @property
    def base_url(self) -> str:
        """The start of its URLs."""
        return self._base_url

    @property
    def transport(self) -> Transport:
        """What it sends through; copies made by `rebind` share it."""
        return self._shared_transport

    @property
    def has_key(self) -> bool:
        """Whether it has an API key, or something that makes one."""
        return bool(self._key) or self._credentials is not None

    @property
    def is_configured(self) -> bool:
        """Whether it has an API key, or needs none."""
        return self.has_key or not self.provider.key_required

    def settings(self) -> dict[str, Any]:
        """What is set besides the public attributes; of the key, only whether there is one."""
        return {
            "has_key": self.has_key,
            "headers": self._headers,
            "timeouts": self._timeouts,
            "options": self._options,
            "profile": self._overrides,
            "model_profiles": self._model_overrides,
        }

    @property
    def capabilities(self) -> AdapterCapabilities:
        """The capabilities that all models of this provider share."""
        return self.capabilities_for("")

    def capabilities_for(self, model: str) -> AdapterCapabilities:
        """The capabilities of a model."""
        return AdapterCapabilities(self.profile_for(model))

    def profile_for(self, model: str) -> Profile:
        """The profile of a model."""
        profile = self._profiles.get(model)
        if profile is None:
            overrides = {**self._overrides, **self._model_overrides.get(model, {})}
            if self.behaviour is not None and self.behaviour.streaming is not None:
                overrides["streaming"] = self.behaviour.streaming
            profile = profile_for(self._dialect_name, model, self.provider.name, overrides)
            if len(self._profiles) >= _MAX_PROFILES:  # callers choose the names
                self._profiles.clear()
            self._profiles[model] = profile
        return profile

    def supports_tool_choice(self, mode: ToolChoiceMode, model: str = "") -> bool | None:
        """Whether the model supports this mode of tool choice; None if it is unknown."""
        if mode not in get_args(ToolChoiceMode):
            known = ", ".join(get_args(ToolChoiceMode))
            raise ConfigurationError(f"no mode of tool choice {mode!r}; there are {known}")
        profile = self.profile_for(model)
        modes = profile.tool_choice_modes
        if profile.tools is False:
            return False
        return None if modes is None else mode in modes

    def estimate_input_tokens(self, request: Request) -> int:
        """An offline estimate of the number of input tokens."""
        if self.behaviour is not None:
            request = behave(request, self.behaviour, self.profile_for(request.model)).request
        return estimate_request(request, self._family)

    def initialize(self) -> Any:
        """
        Raise `ConfigurationError` if the API key is missing; nothing is sent.

        A client calls it before the first call. A subclass may make it async.
        """
        self._check_key()

    def _check_key(self) -> None:
        if not self.is_configured:
            variables = " or ".join(self.provider.key_env)
            advice = f"Set {variables}, or pass" if variables else "Pass"
            text = f"{self.source}No API key for {self.name}. {advice} api_key=."
            raise ConfigurationError(text, error_code="not_configured", setting="api_key")

    async def cancel(self, request_id: str) -> bool:
        """Cancel a call; False if no call has this id or it was already cancelled."""
        return self._scopes.cancel(request_id)

    async def close(self) -> None:
        """Cancel all calls and close all connections."""
        self._scopes.cancel_all()
        await self._transport.close()

    def _label_error(self, error: SDKError, request_id: str | None, model: str | None) -> None:
        """Add the provider, the model and the request id; redact the adapter's secrets."""
        error.add_facts(provider=self.name, model=model or None, request_id=request_id)
        if self._credentials is not None:
            for text in self._credentials.texts:
                self._redactor.add(text)
        self._redactor.redact_error(error)

    async def _start_server(self, model: str, *, embeddings: bool = False) -> str:
        """The address of the local server for this model, which is started if needed."""
        server = self.server
        if server is None:
            return self._base_url
        if not self._has_own_server:  # a server that the caller made answers to any name
            from interlingua.local import server_for

            server = await asyncio.to_thread(server_for, model, server, embeddings=embeddings)
        elif embeddings and not server.embeddings:
            raise UnsupportedError(
                "This local server has no embeddings. Start it with LocalServer(embeddings=True)."
            )
        url = await asyncio.to_thread(server.start)
        return check_base_url(url, self.provider.base_path)
