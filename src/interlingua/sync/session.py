"""`Session`, blocking."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload

from interlingua.api.run.options import GenerateOptions, Prompt
from interlingua.api.run.results import GenerateResult
from interlingua.api.session.saved import HistoryMode
from interlingua.api.session.session import Session as AsyncSession
from interlingua.api.session.session import TurnObjectOptions, TurnOptions
from interlingua.spec.content import ToolCall
from interlingua.spec.messages import Message
from interlingua.spec.response import Cost, Usage
from interlingua.sync.blocking import documented_by
from interlingua.sync.loop_thread import background
from interlingua.sync.streams import StreamResult

if TYPE_CHECKING:
    from typing_extensions import TypeForm

    from interlingua.api.session.store import SessionStore

T = TypeVar("T")


class Session:
    """
    A conversation: each turn is sent with what was said before.

        session = Session("anthropic:claude-haiku-4-5", system="Be brief.", tools=[get_weather])
        print(session.send("Weather in Oslo?").text)
        session.swap("openai:gpt-5.2")
        print(session.send("And tomorrow?").text)

    All options of `generate` are defaults for each turn, as for `interlingua.Session`. `system`,
    `tools`, `title`, `data` and other attributes are those of `session.asynchronous`.
    """

    __slots__ = ("__weakref__", "_session")  # an attribute that is set here would have no effect

    def __init__(
        self,
        model: str | None,
        *,
        history: HistoryMode = "full",
        store: SessionStore | None = None,
        **options: Unpack[GenerateOptions],
    ) -> None:
        self._session = AsyncSession(model, history=history, store=store, **options)

    @classmethod
    def wrap(cls, session: AsyncSession) -> Self:
        """Return the blocking form of a session; both are the same conversation."""
        blocking = cls.__new__(cls)
        blocking._session = session  # noqa: SLF001 -- its own class
        return blocking

    @property
    def asynchronous(self) -> AsyncSession:
        """The session itself, to read or set `model`, `system`, `tools`, `title` and `data`."""
        return self._session

    def __repr__(self) -> str:
        return repr(self._session)

    @property
    def session_id(self) -> str:
        """The id, which all its requests, events and log records have."""
        return self._session.session_id

    @property
    def parent(self) -> str | None:
        """The id of the session that this one was forked from; None if it was not forked."""
        return self._session.parent

    @property
    def model(self) -> str | None:
        """The model of the next turn."""
        return self._session.model

    @property
    def messages(self) -> tuple[Message, ...]:
        """The whole conversation, without the system prompt."""
        return self._session.messages

    @property
    def usage(self) -> Usage:
        """The tokens of all turns so far."""
        return self._session.usage

    @property
    def cost(self) -> Cost | None:
        """The cost of all turns so far; None if no cost is known."""
        return self._session.cost

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of the last turn without a result."""
        return self._session.open_calls

    @documented_by(AsyncSession.send)
    def send(self, prompt: Prompt = None, **options: Unpack[TurnOptions]) -> GenerateResult[None]:
        return background.run(self._session.send(prompt, **options))

    @documented_by(AsyncSession.stream)
    def stream(self, prompt: Prompt = None, **options: Unpack[TurnOptions]) -> StreamResult:
        return StreamResult(self._session.start_turn(prompt, options))

    @overload
    def send_object(
        self, prompt: Prompt = None, *, schema: TypeForm[T], **options: Unpack[TurnObjectOptions]
    ) -> GenerateResult[T]: ...
    @overload
    def send_object(
        self,
        prompt: Prompt = None,
        *,
        schema: Mapping[str, Any],
        **options: Unpack[TurnObjectOptions],
    ) -> GenerateResult[Any]: ...
    @documented_by(AsyncSession.send_object)
    def send_object(
        self, prompt: Prompt = None, *, schema: Any, **options: Unpack[TurnObjectOptions]
    ) -> GenerateResult[Any]:
        return background.run(self._session.send_object(prompt, schema=schema, **options))

    def interrupt(self) -> bool:
        """End the active turn, from another thread; False if there is none."""

        async def work() -> bool:
            return self._session.interrupt()

        return background.run(work())

    @documented_by(AsyncSession.swap)
    def swap(self, model: str) -> None:
        self._session.swap(model)

    @documented_by(AsyncSession.undo)
    def undo(self) -> tuple[Message, ...]:
        removed = self._session.undo()
        self.flush()
        return removed

    @documented_by(AsyncSession.fork)
    def fork(self) -> Self:
        return self.wrap(self._session.fork())

    @documented_by(AsyncSession.flush)
    def flush(self) -> None:
        background.run(self._session.flush())

    @documented_by(AsyncSession.save)
    def save(self, path: str | PathLike[str]) -> None:
        self._session.save(path)

    @classmethod
    @documented_by(AsyncSession.load)
    def load(cls, path: str | PathLike[str], **options: Unpack[GenerateOptions]) -> Self:
        return cls.wrap(AsyncSession.load(path, **options))

    @classmethod
    @documented_by(AsyncSession.resume)
    def resume(
        cls, session_id: str, /, *, store: SessionStore, **options: Unpack[GenerateOptions]
    ) -> Self:
        work = AsyncSession.resume(session_id, store=store, **options)
        return cls.wrap(background.run(work))
