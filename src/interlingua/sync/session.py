"""`Session`, blocking."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload

from interlingua.api.run.options import Prompt
from interlingua.api.run.results import GenerateResult
from interlingua.api.session.document import HistoryMode
from interlingua.api.session.session import Session as AsyncSession
from interlingua.api.session.store import SessionStore
from interlingua.spec.content import ToolCall
from interlingua.spec.messages import Message
from interlingua.spec.response import Cost, Usage
from interlingua.sync.client import GenerateOptions, unwrap
from interlingua.sync.functions import StreamResult
from interlingua.sync.loop_thread import background

if TYPE_CHECKING:
    from typing_extensions import TypeForm

T = TypeVar("T")


class TurnOptions(GenerateOptions, total=False):
    """The options of one turn, and its model; the client may be blocking or async."""

    model: str


class Session:
    """
    Like `interlingua.Session`, blocking.

        session = Session("anthropic:claude-haiku-4-5", system="Be brief.")
        print(session.send("Hello!").text)

    `system`, `tools`, `title`, `data` and other attributes are those of `session.asynchronous`.
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
        self._session = AsyncSession(model, history=history, store=store, **unwrap(options))

    @classmethod
    def wrap(cls, session: AsyncSession) -> Self:
        """The blocking form of a session; both are the same conversation."""
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
        """As of `interlingua.Session`."""
        return self._session.session_id

    @property
    def parent(self) -> str | None:
        """As of `interlingua.Session`."""
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
        """The calls of the last turn without a result."""
        return self._session.open_calls

    def send(self, prompt: Prompt = None, **options: Unpack[TurnOptions]) -> GenerateResult[None]:
        """Like `interlingua.Session.send`, blocking."""
        return background.run(self._session.send(prompt, **unwrap(options)))

    def stream(self, prompt: Prompt = None, **options: Unpack[TurnOptions]) -> StreamResult:
        """Like `interlingua.Session.stream`, blocking."""
        return StreamResult(self._session.start_turn(prompt, unwrap(options)))

    @overload
    def send_object(
        self, prompt: Prompt = None, *, schema: TypeForm[T], **options: Unpack[TurnOptions]
    ) -> GenerateResult[T]: ...
    @overload
    def send_object(
        self, prompt: Prompt = None, *, schema: Mapping[str, Any], **options: Unpack[TurnOptions]
    ) -> GenerateResult[Any]: ...
    def send_object(
        self, prompt: Prompt = None, *, schema: Any, **options: Unpack[TurnOptions]
    ) -> GenerateResult[Any]:
        """Like `interlingua.Session.send_object`, blocking."""
        return background.run(self._session.send_object(prompt, schema=schema, **unwrap(options)))

    def interrupt(self) -> bool:
        """End the active turn, from another thread; False if there is none."""

        async def work() -> bool:
            return self._session.interrupt()

        return background.run(work())

    def swap(self, model: str) -> None:
        """Use another model from the next turn on."""
        self._session.swap(model)

    def undo(self) -> tuple[Message, ...]:
        """Remove the last turn; returns its messages."""
        removed = self._session.undo()
        self.flush()
        return removed

    def fork(self) -> Self:
        """A copy with an id of its own that continues independently."""
        return self.wrap(self._session.fork())

    def flush(self) -> None:
        """Wait until the store has everything."""
        background.run(self._session.flush())

    def save(self, path: str | PathLike[str]) -> None:
        """Like `interlingua.Session.save`."""
        self._session.save(path)

    @classmethod
    def load(cls, path: str | PathLike[str], **options: Unpack[GenerateOptions]) -> Self:
        """Like `interlingua.Session.load`."""
        return cls.wrap(AsyncSession.load(path, **unwrap(options)))

    @classmethod
    def resume(
        cls, session_id: str, /, *, store: SessionStore, **options: Unpack[GenerateOptions]
    ) -> Self:
        """Like `interlingua.Session.resume`, blocking."""
        work = AsyncSession.resume(session_id, store=store, **unwrap(options))
        return cls.wrap(background.run(work))
