"""`Session`: a conversation with a model that keeps its history."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, get_args, overload

from msgspec.structs import replace

from interlingua.api.objects.options import ObjectOptions
from interlingua.api.run.clients import (
    OF_A_PROVIDER,
    BlockingClient,
    Place,
    drop_foreign,
    find_client,
    is_at_home,
)
from interlingua.api.run.options import (
    GenerateOptions,
    Prompt,
    SystemFunction,
    check_options,
    make_messages,
    reusable,
)
from interlingua.api.run.results import GenerateResult
from interlingua.api.run.stream_result import StreamResult
from interlingua.api.session.saved import HistoryMode, SavedSession, is_saved
from interlingua.api.session.session_id import check_id
from interlingua.api.session.tool_ids import ToolIds, adopt_messages, call_ids
from interlingua.api.session.turn import Continued, Outcome, TurnRun
from interlingua.api.session.turns import (
    Turn,
    close_calls,
    join_results,
    open_calls,
    split_turns,
    with_ids,
)
from interlingua.client.client import Client
from interlingua.runtime.ulid import new_ulid
from interlingua.spec.check import refuse
from interlingua.spec.content import ToolCall
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.messages import Message
from interlingua.spec.request import AnyTool
from interlingua.spec.response import Cost, Usage

if TYPE_CHECKING:
    from typing_extensions import TypeForm

    from interlingua.api.run.validation import Goal
    from interlingua.api.session.store import SessionStore
    from interlingua.api.session.stored import StoredSession

T = TypeVar("T")
MAX_TOOL_ROUNDS = 20
_TITLE = 80  # characters


class TurnOptions(GenerateOptions, total=False):
    """The options of one turn: those of `generate`, and the model."""

    model: str


class TurnObjectOptions(ObjectOptions, total=False):
    """The options of `send_object`: those of `generate_object`, and the model."""

    model: str


class Session:
    """
    A conversation: each turn is sent with what was said before.

        session = Session("anthropic:claude-haiku-4-5", system="Be brief.", tools=[get_weather])
        print((await session.send("Weather in Oslo?")).text)
        session.swap("openai:gpt-5.2")
        print((await session.send("And tomorrow?")).text)

    All options of `generate` are defaults for each turn; `max_tool_rounds` is 20. There is one turn
    at a time. `messages` has the whole history, whatever `history` says is sent. `provider`,
    `api_key`, `base_url` and `headers` are for the provider of `model`, and for no other.
    """

    def __init__(
        self,
        model: str | None,
        *,
        history: HistoryMode = "full",
        store: SessionStore | None = None,
        **options: Unpack[GenerateOptions],
    ) -> None:
        for name in _OF_A_TURN & options.keys():
            raise ConfigurationError(f"{name} is an option of a turn: pass it to send or stream.")
        check_options(options)
        settings = reusable(options)
        _check_texts(model, history)
        if store is not None:
            _check_store(store)
        self.model: str | None = model
        """The model of the next turn; None for the default model of the client's registry file."""
        self.system: str | SystemFunction | None = settings.pop("system", None)
        tools = settings.pop("tools", ())
        self.tools: tuple[AnyTool, ...] = () if tools == () else _read_tools(tools)
        self.history: HistoryMode = history
        client: Client | BlockingClient | None = settings.pop("client", None)
        self.client: Client | None = None if client is None else find_client(client)
        """The client of its turns; None for the default client."""
        self.data: dict[str, Any] = {}
        """Data of the application; saved with the session."""
        self.title: str | None = None
        """What a list of sessions shows; by default the beginning of the first prompt."""
        self.parent: str | None = None
        """The id of the session that this is a fork of."""
        self.omitted: int = 0
        """How many of the oldest messages are not sent: `summary` is sent in their place."""
        self.summary: str | None = None
        self._session_id: str = settings.pop("session_id", None) or new_ulid()
        check_id(self._session_id)
        self.tool_ids: ToolIds = ToolIds()
        """The ids of its tool calls at each provider."""
        given = settings.pop("messages", None) or ()
        if given:
            given = _read_messages(given)
        self._turns = split_turns(adopt_messages(with_ids(given), self.tool_ids))
        self._options = settings
        self._home: Place = (settings.get("provider"), model)
        self.not_restored: tuple[str, ...] = ()
        """Options that the session was loaded without, because they cannot be saved."""
        self._reason = "session model"
        self._usage = Usage()
        self._cost: Cost | None = None
        self._has_unknown_cost = False
        self._active: TurnRun | None = None
        self.logged: set[str] = set()
        """The warnings that were logged for its messages."""
        self._stored = None if store is None else _store_in(store, self._session_id)

    def __repr__(self) -> str:
        return f"Session({self._session_id}, {self.model!r}, {len(self.messages)} messages)"

    # What it holds.

    @property
    def session_id(self) -> str:
        """The id, which all its requests, events and log records have."""
        return self._session_id

    @property
    def messages(self) -> tuple[Message, ...]:
        """The whole conversation, without the system prompt."""
        return tuple(message for turn in self._turns for message in turn.messages)

    @property
    def usage(self) -> Usage:
        """The tokens of all turns so far, also of those that failed or were undone."""
        return self._usage

    @property
    def cost(self) -> Cost | None:
        """The cost of all turns so far; None if there are none, or if a price is unknown."""
        return None if self._has_unknown_cost else self._cost

    @property
    def is_active(self) -> bool:
        """Whether a turn is under way."""
        return self._active is not None

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """The calls of the last turn without a result, such as those that wait for approval."""
        return open_calls(self._turns[-1].messages) if self._turns else ()

    # Turns.

    async def send(
        self, prompt: Prompt = None, **options: Unpack[TurnOptions]
    ) -> GenerateResult[None]:
        """
        Send a prompt with the history, run the tools that are called, and return the answer.

        Without a prompt, an open turn goes on: its open calls are run first, as `approvals=` says.
        If the turn fails, the history is as before, except that tool rounds that were complete
        stay: send nothing to go on with them, or call `undo`.
        """
        return await self.start_turn(prompt, options).generate()

    def stream(self, prompt: Prompt = None, **options: Unpack[TurnOptions]) -> StreamResult:
        """
        Do what `send` does, and return the events as they arrive.

        The turn begins with the first event that is read. It is in the history before the last
        event is delivered; if the stream is left or interrupted, with what had arrived.
        """
        return StreamResult(self.start_turn(prompt, options))

    @overload
    async def send_object(
        self, prompt: Prompt = None, *, schema: TypeForm[T], **options: Unpack[TurnObjectOptions]
    ) -> GenerateResult[T]: ...
    @overload
    async def send_object(
        self,
        prompt: Prompt = None,
        *,
        schema: Mapping[str, Any],
        **options: Unpack[TurnObjectOptions],
    ) -> GenerateResult[Any]: ...
    async def send_object(
        self, prompt: Prompt = None, *, schema: Any, **options: Unpack[TurnObjectOptions]
    ) -> GenerateResult[Any]:
        """Send a prompt and return an object of a schema or type, as `generate_object` does."""
        from interlingua.api.objects.functions import finish_object, start_object

        settings = {**self._settings(options), "response_format": options.get("response_format")}
        own, continues = self._own(prompt)
        settings.update({"messages": own} if prompt is not None else {"resume": Continued(own)})

        def make_run(
            model: str | None, _: Prompt, settings: Mapping[str, Any], goal: Goal
        ) -> TurnRun:
            return TurnRun(self, own, continues, model, settings, goal)

        model = settings.pop("model")
        return await finish_object(*start_object(model, None, schema, settings, make_run))

    def interrupt(self) -> bool:
        """
        End the active turn, also from another task; False if there is none.

        What had arrived is in the history when this returns, in a form that every provider accepts.
        `send` raises `AbortError`, a stream ends with the finish reason `cancelled`.
        """
        active = self._active
        if active is not None:
            active.interrupt()
        return active is not None

    def swap(self, model: str) -> None:
        """
        Use another model from the next turn on, of any provider, as `provider:model`.

        The options `provider`, `api_key`, `base_url` and `headers` of the session are not used for
        another provider than the one that they were given for.
        """
        _check_texts(model, self.history)
        self.model = model
        self._reason = "swap"
        self.omitted, self.summary = 0, None  # it may have a larger context window

    def undo(self) -> tuple[Message, ...]:
        """Remove the last turn; returns its messages. Its usage and cost still count."""
        self._refuse_active("undo")
        if not self._turns:
            return ()
        turn = self._turns.pop()
        if self.omitted > len(self.messages):
            self.omitted, self.summary = 0, None
        self._forget_ids()
        return turn.messages

    def fork(self) -> Self:
        """Return a copy with an id of its own that goes on alone; its `parent` is this session."""
        options = {**self._options, "client": self.client, "tools": self.tools}
        fork = self._from_saved(self.saved(), {**options, "session_id": new_ulid()})
        fork.parent, fork.system = self._session_id, self.system
        fork.data = deepcopy(self.data)
        fork.not_restored, fork._home = self.not_restored, self._home  # noqa: SLF001 -- its own class
        if self._stored is not None:
            fork._stored = _store_in(self._stored.store, fork._session_id)  # noqa: SLF001
        fork._usage, fork._cost = Usage(), None  # noqa: SLF001 -- it has spent nothing yet
        fork._has_unknown_cost = False  # noqa: SLF001
        return fork

    # Files.

    def save(self, path: str | PathLike[str]) -> None:
        """
        Write the session to a JSON file, all of it or nothing.

        Not written are the client, keys, headers, addresses, prices, tools and other functions and
        objects, such as a validator: pass them to `load` again. A file at this path that is not a
        session, or one of a newer library, is not replaced.
        """
        from interlingua.api.session.document import write_session

        write_session(path, self.saved())

    @classmethod
    def load(cls, path: str | PathLike[str], **options: Unpack[GenerateOptions]) -> Self:
        """
        Read the session in a file that `save` wrote; what was not saved is given again.

        If it is not, the next answer has the warning `options_not_restored`. Options that were
        saved are replaced by those that are given. `DecodeError` if the file is damaged, or was
        written by a newer library.
        """
        from interlingua.api.session.document import read_session

        return cls._from_saved(read_session(path), options)

    @classmethod
    async def resume(
        cls, session_id: str, /, *, store: SessionStore, **options: Unpack[GenerateOptions]
    ) -> Self:
        """Read the session with this id in a store; the options are as for `load`."""
        check_id(session_id)
        _check_store(store)
        if "session_id" in options:
            raise ConfigurationError(
                "`session_id` is not an option of resume: fork gives a new one."
            )
        from interlingua.api.session.stored import StoredSession

        stored, saved = await StoredSession.load(store, session_id)
        session = cls._from_saved(saved, options)
        session._stored = stored  # noqa: SLF001 -- its own class
        return session

    def saved(self) -> SavedSession:
        """Everything that it keeps, at this moment."""
        options = dict(self._options)
        if not is_at_home(self.model, self._home, self.client):
            options.pop("provider", None)
        return SavedSession(
            session_id=self._session_id,
            model=self.model,
            reason=self._reason,
            title=self.title,
            parent=self.parent,
            system=self.system if isinstance(self.system, str) else None,
            history=self.history,
            options={name: value for name, value in options.items() if is_saved(name, value)},
            not_saved=self._not_saved(),
            turns=tuple(self._turns),
            tool_ids=self.tool_ids.table(),
            usage=replace(self._usage, raw=None),
            cost=self._cost,
            has_unknown_cost=self._has_unknown_cost,
            data=self.data,
            omitted=self.omitted,
            summary=self.summary,
        )

    def _not_saved(self) -> tuple[str, ...]:
        """The names of the options that cannot be saved."""
        own = {**self._options, "tools": self.tools or None}
        if callable(self.system):
            own["system"] = self.system
        names = {
            name for name, each in own.items() if each is not None and not is_saved(name, each)
        }
        return tuple(sorted(names.union(self.not_restored)))

    @classmethod
    def _from_saved(cls, saved: SavedSession, options: Mapping[str, Any]) -> Self:
        for name in _AFTER_LOADING.keys() & options.keys():
            advice = _AFTER_LOADING[name]
            raise ConfigurationError(f"{name} is not an option here: the session has it. {advice}")
        settings = {"system": saved.system, **saved.options, **options}
        settings.setdefault("session_id", saved.session_id)
        session = cls(saved.model, history=saved.history, **settings)
        session.not_restored = tuple(name for name in saved.not_saved if name not in options)
        session.data = dict(saved.data)
        session.title, session.parent, session._reason = saved.title, saved.parent, saved.reason
        session.omitted, session.summary = saved.omitted, saved.summary
        session._turns, session.tool_ids = list(saved.turns), ToolIds(saved.tool_ids)
        session._usage, session._cost = saved.usage, saved.cost
        session._has_unknown_cost = saved.has_unknown_cost
        return session

    # The run of a turn: how it is made, and how it reports.

    def start_turn(self, prompt: Prompt, options: Mapping[str, Any]) -> TurnRun:
        """Make the run of a turn, which begins when it is awaited or read."""
        settings = self._settings(options)
        own, continues = self._own(prompt)
        settings.update({"messages": own} if prompt is not None else {"resume": Continued(own)})
        model = settings.pop("model")
        return TurnRun(self, own, continues, model, settings)

    def _settings(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options of a turn, with the defaults of the session."""
        for name in _OF_THE_SESSION & options.keys():
            raise ConfigurationError(f"{name} is not an option of a turn. {_OF_THE_SESSION_HINT}")
        reason = "turn option" if "model" in options else self._reason
        settings = {"chosen_because": reason, **self._defaults(), **options}
        check_options({"client": settings["client"]})
        client = find_client(settings["client"])
        if not OF_A_PROVIDER.isdisjoint(self._options):
            drop_foreign(settings, options, self._home, client)
        if "base_url" in self.not_restored and "base_url" not in options:
            raise ConfigurationError(
                "The session was made with base_url=, which is not saved: pass it to load or "
                "resume again, or base_url=None for the address of the provider."
            )
        settings["client"] = client
        return settings

    def _defaults(self) -> dict[str, Any]:
        return {
            "max_tool_rounds": MAX_TOOL_ROUNDS,
            **self._options,
            "model": self.model,
            "system": self.system,
            "tools": self.tools,
            "client": self.client,
            "session_id": self._session_id,
        }

    def _own(self, prompt: Prompt) -> tuple[tuple[Message, ...], Turn | None]:
        """The messages that a turn begins with, and the open turn that it continues."""
        last = self._turns[-1] if self._turns else None
        if prompt is None:
            if last is None or not last.is_open:
                raise ConfigurationError("Pass a prompt: no turn of this session is open.")
            return last.messages, last
        given = with_ids(make_messages(prompt, None, None))
        if any(message.tool_calls for message in given):
            given = adopt_messages(given, self.tool_ids, call_ids(self.messages))
        if last is None or given[0].role != "tool":
            return given, None
        return close_calls(join_results(last.messages, given)), last

    def enter(self, run: TurnRun) -> tuple[Message, ...]:
        """Begin a turn; returns the history before it."""
        self._refuse_active("begin another turn")
        if run.continues is not None:
            if not self._turns or self._turns[-1] is not run.continues:
                raise ConfigurationError("The turn to go on with is no longer the last one.")
            turns = self._turns[:-1]
        else:
            turns = self._closed_turns()
        self._active = run
        return tuple(message for turn in turns for message in turn.messages)

    def leave(self, run: TurnRun) -> None:
        """End a turn without a change."""
        if self._active is run:
            self._active = None

    def settle(self, run: TurnRun, outcome: Outcome) -> None:
        """Add what a turn leaves behind, before it leaves."""
        self.logged = run.logged
        if outcome.messages:
            self._turns = self._turns[:-1] if run.continues else self._closed_turns()
            self._turns.append(Turn(messages=with_ids(outcome.messages)))
            if self.title is None:
                self.title = outcome.messages[0].text.strip()[:_TITLE] or None
            if self.model == run.session_model:  # else it was swapped meanwhile
                self.omitted, self.summary = outcome.omitted, outcome.summary
        self._forget_ids()

    def account(self, usage: Usage | None, cost: Cost | None) -> None:
        """Add what a turn used; a cost that is not known makes the sum unknown."""
        if usage is not None:
            self._usage += usage
        if cost is not None:
            self._cost = cost if self._cost is None else self._cost + cost
        elif usage is not None and usage.total_tokens:
            self._has_unknown_cost = True

    async def flush(self) -> None:
        """Wait until the store has everything, such as an `undo`; `send` does this by itself."""
        if self._stored is not None:
            await self._stored.write(self.saved())

    def _closed_turns(self) -> list[Turn]:
        """The turns, where the last one has a result for each call."""
        if not self._turns:
            return []
        *before, last = self._turns
        closed = close_calls(last.messages)
        return [*before, last if closed is last.messages else replace(last, messages=closed)]

    def _forget_ids(self) -> None:
        if self.tool_ids:
            self.tool_ids.keep(call_ids(self.messages))

    def _refuse_active(self, what: str) -> None:
        if self._active is not None:
            raise ConfigurationError(
                f"Cannot {what}: a turn of this session is active. Await it, read its stream to "
                "the end or close it, or call interrupt()."
            )


def _check_texts(model: Any, history: Any) -> None:
    if model is not None and (not isinstance(model, str) or not model):
        refuse("model", "the name of a model", model)
    if history not in get_args(HistoryMode):
        refuse("history", "'full', 'dynamic' or 'stateless'", history)


def _read_messages(messages: Any) -> tuple[Message, ...]:
    from interlingua.api.run.messages import read_messages

    return read_messages(messages)


def _read_tools(tools: Any) -> tuple[AnyTool, ...]:
    from interlingua.api.tools.tool import read_tools

    return read_tools(tools)


def _store_in(store: SessionStore, session_id: str) -> StoredSession:
    from interlingua.api.session.stored import StoredSession

    return StoredSession(store, session_id)


def _check_store(store: Any) -> None:
    from interlingua.api.session.store import SessionStore

    if not isinstance(store, SessionStore):
        refuse("store", "a SessionStore", store)


_OF_A_TURN = frozenset(("resume", "approvals", "request_id"))
_OF_THE_SESSION = frozenset(("messages", "resume", "session_id", "history", "store"))
_OF_THE_SESSION_HINT = "The session has the history; pass what is new as the prompt."
_AFTER_LOADING = {
    "history": "Set `session.history`.",
    "messages": "Send what is new as a prompt.",
    "model": "Call `session.swap`, or pass the model to a turn.",
}
