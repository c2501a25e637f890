"""`HttpAdapter`: answers requests through one provider."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack

from msgspec.structs import replace

from interlingua import lazy
from interlingua.providers.adapter.configuration import Configuration
from interlingua.providers.adapter.generation import Generation
from interlingua.providers.adapter_options import AdapterSettings, RowSettings
from interlingua.providers.http_requests import DryRun, Ready, with_defaults
from interlingua.providers.keys import Key
from interlingua.providers.provider import Branch, Provider
from interlingua.providers.tariffs import Seller, Tariffs
from interlingua.runtime.cancel import Scopes
from interlingua.spec.behaviour import Behaviour
from interlingua.spec.contracts import AdapterCapabilities, Profile, Transport
from interlingua.spec.events import StreamEvent
from interlingua.spec.request import OnLoss, Request, ToolChoiceMode
from interlingua.spec.response import Response, label_message

if TYPE_CHECKING:
    from pathlib import Path

    from interlingua.local import LocalServer
    from interlingua.providers.adapter.operations import Operations
    from interlingua.providers.uploads import Uploads
    from interlingua.spec.operations import Operation, ServedModel


class HttpAdapter(lazy.Remade):
    """
    Answers requests through one provider.

        adapter = HttpAdapter("groq", api_key="…")
        response = await adapter.complete(Request(model="…", messages="Hello"))

    A provider given by its name reads its environment variables for the key, address and headers
    that are not given. `api_key` may be a function that makes the key (see `ApiKey`), and `places`
    are the values of the places in the provider's address. `options` are fields of the body that a
    request does not set. `profile` and `model_profiles` (by model) override fields of `Profile`.
    `max_retries` is used by the client; an adapter itself never retries. With `read_files=False`
    it neither reads the files that parts name by `path` nor fetches URLs. `behaviour` changes what
    is sent; see `Behaviour`.
    """

    has_stations: ClassVar[bool] = True
    """Whether a client calls the stations of `generation`, not `complete` or `stream`."""
    has_operation_stations: ClassVar[bool] = True
    """Whether a client calls `operations.run`, not `perform`."""

    def __init_subclass__(cls) -> None:
        if not {"complete", "stream"}.isdisjoint(vars(cls)):
            cls.has_stations = False  # call the overridden methods
        if "perform" in vars(cls):
            cls.has_operation_stations = False

    def __init__(
        self,
        provider: Provider | str,
        api_key: Key | None = None,
        **settings: Unpack[RowSettings],
    ) -> None:
        self._scopes = Scopes()
        self._assemble(Configuration(provider, api_key, **settings))
        self.given_settings: Mapping[str, Any] | None = None
        """If others come from the environment: the settings that do not. Only these are pickled."""
        self._rebinds: tuple[tuple[str, Mapping[str, Any]], ...] = ()

    def _assemble(self, configuration: Configuration) -> None:
        self.configuration: Configuration = configuration
        self.generation: Generation = Generation(configuration)
        self.has_branches: bool = configuration.branching is not None
        self._branches: dict[Branch, Self] = {}
        lazy.forget(self, "operations")

    @lazy.attribute
    def operations(self) -> Operations:
        """Its calls of operations; a program without operations does not load them."""
        from interlingua.providers.adapter.operations import Operations

        return Operations(self.configuration, self.generation, self._scopes)

    def _with_configuration(self, configuration: Configuration) -> Self:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._assemble(configuration)
        return twin

    def for_model(self, model: str) -> Self:
        """
        Return the adapter that calls a model: itself, unless its row has branches.

        It has the same name, key, options and connections. A client calls it for each attempt.
        """
        if not self.has_branches or not model:
            return self
        branch = self.configuration.find_branch(model)
        if branch is None:
            return self
        twin = self._branches.get(branch)
        if twin is None:
            twin = self._with_configuration(self.configuration.branched(branch))
            self._branches[branch] = twin
        return twin

    def __copy__(self) -> Self:
        return self._with_configuration(copy(self.configuration))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, base_url={self.base_url!r})"

    def rebind(
        self,
        name: str,
        *,
        api_key: Key | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        behaviour: Behaviour | None = None,
    ) -> Self:
        """Return a copy with another name, key, address or more headers and shared connections."""
        twin = self._with_configuration(
            self.configuration.rebound(
                name, api_key=api_key, base_url=base_url, headers=headers, behaviour=behaviour
            )
        )
        changes = {
            "api_key": api_key, "base_url": base_url, "headers": headers, "behaviour": behaviour,
        }  # fmt: skip
        twin._rebinds = (*self._rebinds, (name, changes))  # noqa: SLF001
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as its configuration: without connections and without keys of the environment."""
        if self.given_settings is None:
            made: tuple[Any, ...] = (type(self), *self._made_with)
        else:
            made = (None, (self.provider,), dict(self.given_settings))
        return _remake, (*made, self._rebinds)

    # Calls.

    async def complete(self, request: Request, *, strict: bool = False) -> Response:
        """Return the whole answer; raise `AbortError` if the call is cancelled."""
        routed = self.for_model(request.model)
        if routed is not self:
            return await routed.complete(request, strict=strict)
        request = with_defaults(request, strict=strict)
        request_id = request.request_id or ""
        if request.upload is None:
            return await self._scopes.wait(request_id, self._complete(request))
        from interlingua.providers.uploads import Uploads, closed

        async with closed(Uploads()) as uploads:
            return await self._scopes.wait(request_id, self._complete(request, uploads))

    async def _complete(self, request: Request, uploads: Uploads | None = None) -> Response:
        ready = await self._make_ready(request, uploads, stream=False)
        response = await self.generation.answer(ready)
        message = label_message(response, request.request_id or "", self.name, request.model)
        return replace(response, message=message)

    def stream(
        self, request: Request, *, strict: bool = False
    ) -> AsyncGenerator[StreamEvent, None]:
        """
        Return the events of the answer as they arrive.

        Closing the iterator closes the connection. If the stream fails after its first event,
        `ErrorEvent` and `Finish` are delivered before the error is raised.
        """
        routed = self.for_model(request.model)
        if routed is not self:
            return routed.stream(request, strict=strict)
        request = with_defaults(request, strict=strict)
        if request.upload is None:
            return self._stream(request)
        from interlingua.providers.uploads import Uploads, closing

        uploads = Uploads()
        return closing(self._stream(request, uploads), uploads)

    def _stream(
        self, request: Request, uploads: Uploads | None = None
    ) -> AsyncGenerator[StreamEvent, None]:
        from interlingua.runtime.fold import fold_stream

        make_ready = partial(self._make_ready, request, uploads, stream=True)
        open_events = partial(self.generation.streaming.events, make_ready)
        return fold_stream(open_events, replace(request, provider=self.name), self._scopes)

    async def _make_ready(
        self, request: Request, uploads: Uploads | None, *, stream: bool
    ) -> Ready:
        """The stations before a request is sent; a client calls them itself."""
        if uploads is not None:
            request = await self.operations.store_files(request, uploads)
        encoded = await self.generation.encode(request, stream=stream)
        return await self.generation.address(encoded)

    def dry_run(self, request: Request, *, stream: bool = False, strict: bool = False) -> DryRun:
        """Return what would be sent, without the API key; nothing is sent."""
        request = with_defaults(request, strict=strict)
        return self.for_model(request.model).generation.dry_run(request, stream=stream)

    async def perform(
        self,
        operation: str | Operation,
        value: Any = None,
        *,
        request_id: str | None = None,
        tariffs: Tariffs | None = None,
    ) -> Any:
        """
        Perform an operation other than generation, such as counting tokens or listing models.

        A string names an operation of the provider. Raises `AbortError` if it is cancelled. The
        prices are those of `tariffs`, or of the catalog.
        """
        return await self.operations.perform(
            operation, value, request_id=request_id, tariffs=tariffs
        )

    async def list_models(self) -> list[ServedModel]:
        """List the models that the provider serves now (a request is sent)."""
        from interlingua.providers.operations import name_models

        return name_models(await self.perform("list_models"), self.name)

    async def retrieve_model(self, model: str) -> ServedModel:
        """Return what the provider says about one of its models (a request is sent)."""
        from interlingua.spec.operations import OperationInput

        found: ServedModel = await self.perform("retrieve_model", OperationInput(model=model))
        return found

    async def count_tokens(self, request: Request) -> int:
        """Count the input tokens as the provider counts them (a request is sent)."""
        tokens: int = await self.perform("count_tokens", request)
        return tokens

    def estimate_input_tokens(self, request: Request) -> int:
        """Estimate the number of input tokens offline."""
        return self.for_model(request.model).generation.estimate_input_tokens(request)

    # Its life.

    def initialize(self) -> Any:
        """
        Raise `ConfigurationError` if the API key is missing; nothing is sent.

        A client calls it before the first call. A subclass may make it async.
        """
        self.configuration.check_key()

    async def load(self) -> None:
        """
        Load what a first request needs, in a thread: imports and certificates.

        Functions with a `timeout` await it before its clock starts. Later calls do nothing.
        """
        await self.configuration.load()

    async def get_ready(self) -> None:
        """
        Do before the first request what takes time: imports, certificates, a key that is made.

        A client with limits calls it before each attempt, so that a place in a limit is taken when
        the request can leave. Nothing is sent.
        """
        self.generation.load()
        await self.configuration.get_ready()

    async def cancel(self, request_id: str) -> bool:
        """Cancel a call; False if no call has this id or it was already cancelled."""
        return self._scopes.cancel(request_id)

    async def close(self) -> None:
        """Cancel all calls and close all connections."""
        self._scopes.cancel_all()
        await self.configuration.transport.close()

    # Its configuration.

    @property
    def name(self) -> str:
        """Its name in responses and errors."""
        return self.configuration.name

    @name.setter
    def name(self, name: str) -> None:
        self.configuration.name = name
        self._branches.clear()

    @property
    def source(self) -> str:
        """Where it is configured: the beginning of errors about its configuration."""
        return self.configuration.source

    @source.setter
    def source(self, source: str) -> None:
        self.configuration.source = source
        self._branches.clear()

    @property
    def max_retries(self) -> int:
        """How often the client retries its calls."""
        return self.configuration.max_retries

    @max_retries.setter
    def max_retries(self, count: int) -> None:
        self.configuration.max_retries = count
        self._branches.clear()

    @property
    def provider(self) -> Provider:
        """The row of its provider."""
        return self.configuration.provider

    @property
    def dialect(self) -> str:
        """The name of its dialect."""
        return self.configuration.dialect_name

    @property
    def base_url(self) -> str:
        """The start of its URLs."""
        return self.configuration.base_url

    @property
    def transport(self) -> Transport:
        """What it sends through; copies made by `rebind` share it."""
        return self.configuration.shared_transport

    @property
    def server(self) -> LocalServer | None:
        """The local server that this adapter starts, if any."""
        return self.configuration.server

    @property
    def behaviour(self) -> Behaviour | None:
        """What is changed in requests before they are sent."""
        return self.configuration.behaviour

    @property
    def on_loss(self) -> OnLoss:
        """Which losses raise."""
        return self.configuration.on_loss

    @property
    def reads_files(self) -> bool:
        """Whether files and URLs of parts are read."""
        return self.configuration.reads_files

    @property
    def seller(self) -> Seller:
        """Whose prices its calls have."""
        return self.configuration.seller

    @property
    def has_key(self) -> bool:
        """Whether it has an API key, or something that makes one."""
        return self.configuration.has_key

    @property
    def is_configured(self) -> bool:
        """Whether it has an API key, or needs none."""
        return self.configuration.is_configured

    def settings(self) -> dict[str, Any]:
        """Return what is set besides the attributes; of the key, only whether there is one."""
        return self.configuration.settings()

    @property
    def capabilities(self) -> AdapterCapabilities:
        """The capabilities that all models of this provider share."""
        return self.capabilities_for("")

    def capabilities_for(self, model: str) -> AdapterCapabilities:
        """Return the capabilities of a model."""
        return AdapterCapabilities(self.profile_for(model))

    def profile_for(self, model: str) -> Profile:
        """Return the profile of a model."""
        return self.for_model(model).configuration.profile_for(model)

    def supports_tool_choice(self, mode: ToolChoiceMode, model: str = "") -> bool | None:
        """
        Tell whether the model supports this mode of tool choice; None if it is unknown.

        Without a model, whether the provider does: whether some models of its own do.
        """
        return self.for_model(model).configuration.supports_tool_choice(mode, model)


# One adapter class for each well-known provider.


def _remake(
    kind: type[HttpAdapter] | None,
    arguments: tuple[Any, ...],
    settings: dict[str, Any],
    rebinds: tuple[tuple[str, Mapping[str, Any]], ...],
) -> HttpAdapter:
    """Make an adapter again; without a kind, with what the environment here has."""
    if kind is None:
        import os

        from interlingua.providers.environment import add_environment

        (row,) = arguments
        adapter = HttpAdapter(row, **add_environment(row, settings, os.environ))
        adapter.given_settings = settings
    else:
        adapter = kind(*arguments, **settings)
    for name, changes in rebinds:
        adapter = adapter.rebind(name, **changes)
    return adapter


class _NamedAdapter(HttpAdapter):
    _row: ClassVar[str]

    def __init__(self, api_key: Key | None = None, **settings: Unpack[AdapterSettings]) -> None:
        super().__init__(self._row, api_key, **settings)


class OpenAIAdapter(_NamedAdapter):
    """OpenAI, through its Responses API."""

    _row = "openai"


class AnthropicAdapter(_NamedAdapter):
    """Anthropic, through its Messages API."""

    _row = "anthropic"


class GeminiAdapter(_NamedAdapter):
    """Gemini, through its own API."""

    _row = "gemini"


class OpenAICompatibleAdapter(_NamedAdapter):
    """Any server that speaks Chat Completions; its `base_url` includes the version."""

    _row = "openai_compatible"


class LocalAdapter(HttpAdapter):
    """
    llama.cpp with a small model, or with any GGUF file: no key, no network.

    Its server starts with the first request.

        adapter = LocalAdapter()
        response = await adapter.complete(Request(messages="Hello"))

    The server speaks three dialects; `dialect=` chooses another one than Chat Completions.
    """

    def __init__(
        self,
        gguf: str | Path | None = None,
        *,
        server: LocalServer | None = None,
        **settings: Unpack[AdapterSettings],
    ) -> None:
        super().__init__("local", None, gguf=gguf, server=server, **settings)
