"""The run of one turn: it begins with the history of the session, and its end changes it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from msgspec.structs import replace

from interlingua.api.run.loop import MARGIN
from interlingua.api.run.options import with_system
from interlingua.api.run.results import GenerateResult
from interlingua.api.run.stream_run import StreamRun
from interlingua.api.session.turns import Turn, close_calls, close_turn, complete_rounds
from interlingua.api.tools.runner import ToolRound, ToolRunner
from interlingua.client.client import Client
from interlingua.client.middleware.contract import ToolNext
from interlingua.runtime.cancel import CANCELLED, CancelScope
from interlingua.spec.content import ToolCall, ToolResult
from interlingua.spec.errors import AbortError, NoObjectGeneratedError, SDKError
from interlingua.spec.events import Finish, StreamEvent
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import Cost, Response, Usage
from interlingua.spec.warnings import make_warning

if TYPE_CHECKING:
    from interlingua.api.objects.strategy import ObjectGoal
    from interlingua.api.run.validation import Goal
    from interlingua.api.session.session import Session


class Outcome(NamedTuple):
    """What a turn leaves behind; no messages if nothing has arrived."""

    messages: tuple[Message, ...]
    omitted: int
    """How many messages of the history its requests left out, with `summary` in their place."""
    summary: str | None


class Continued(NamedTuple):
    """The open turn that a run goes on with, as `resume=` takes it."""

    messages: tuple[Message, ...]


class TurnRun(StreamRun):
    """A run that is a turn of a session."""

    _places_system = False  # it is placed in front of the history, when the turn begins

    def __init__(
        self,
        session: Session,
        own: tuple[Message, ...],
        continues: Turn | None,
        model: str | None,
        options: Mapping[str, Any],
        goal: Goal | None = None,
    ) -> None:
        super().__init__(model, None, options, goal)
        self._files = _Files(self.client, self.loop.request or Request())
        if self._runner is None:
            self._runner = ToolRunner(layers=(self._files,))
        else:
            self._runner = replace(self._runner, layers=(self._files, *self._runner.layers))
        self.continues = continues
        """The open turn that this run goes on with."""
        self.session_model = session.model
        """The model of the session when the turn was made."""
        self._object_goal = None if goal is None else _as_object_goal(goal)
        self._session = session
        self._call_ids = session.tool_ids
        self._own = own
        self._options = options
        self._system = None if self._make_system is not None else options.get("system")
        self._max_tokens: int | None = options.get("max_tokens")
        # The position of its own first message in the conversation.
        self._begins_at = len(self.loop.messages) - len(own)
        self._is_settled = False  # whether the session has what it leaves behind
        self._is_over = False
        # A warning about a message of the history was logged when it was first sent.
        self._logged = {key for key in session.logged if ":" in key}

    @property
    def logged(self) -> set[str]:
        """The warnings that were logged, as `log_warnings` keeps them."""
        return self._logged

    @property
    def request_id(self) -> str:
        """The id of the run."""
        return self._request_id

    async def generate(self) -> GenerateResult[Any]:
        """Run the turn; each answer is read whole."""
        await self._enter()
        try:
            result = await super().generate()
        except BaseException as error:
            await self._end(error)
            raise
        await self._end()
        return result

    async def stream(self) -> AsyncGenerator[StreamEvent, None]:
        """Run the turn as a stream; the session has it before `Finish` is delivered."""
        await self._enter()
        try:
            async with aclosing(super().stream()) as events:
                async for event in events:
                    if type(event) is Finish:
                        await self._end(self._error or _interruption(event))
                    yield event
        except BaseException as error:
            await self._end(error)
            raise

    # The beginning.

    async def _enter(self) -> None:
        """Begin with the history of the session and the bytes of the files in the prompt."""
        session = self._session
        history = session.enter(self)
        try:
            self._own = await self._files.load(self._own)
            conversation = (*history, *self._own)
            if self._system is not None:
                conversation = with_system(self._system, conversation)
            self._begins_at = len(conversation) - len(self._own)
            self.loop.begin_with(conversation)
            if self._system is not None:
                self._check_prompts()
            if self._make_system is None:
                self._leave_out()
            await session.flush()
        except BaseException:
            session.leave(self)
            raise
        if self._is_settled:  # it was interrupted meanwhile
            raise AbortError(CANCELLED)

    async def _set_system(self, scope: CancelScope) -> None:
        before = len(self.loop.messages)
        await super()._set_system(scope)
        self._begins_at += len(self.loop.messages) - before
        self._leave_out()

    def _leave_out(self) -> None:
        """Leave the messages out that the history mode or an earlier summary leaves out."""
        from interlingua.prepare.history.messages import end_of_prompts

        session, end = self._session, self._begins_at
        begin = min(end_of_prompts(self.loop.messages), end)
        if session.history == "stateless":
            self.loop.drop(range(begin, end), code=None)
            return
        if session.omitted:
            omitted = range(begin, min(begin + session.omitted, end))
            self.loop.drop(omitted, session.summary, code=None)
        if session.history == "dynamic" and not callable(self._on_overflow):
            self._on_overflow = "truncate"
            self._fit()

    def _fit(self) -> None:
        """Leave the oldest turns out that do not fit into the context window of the model."""
        request = self.loop.request
        window = None if request is None else self.client.profile_for(request).context_window
        if request is None or window is None:
            return
        limit = window - (self._max_tokens or 0)
        from interlingua.tokens.estimate import estimate_request

        if estimate_request(request) > limit * MARGIN:
            self.loop.shorten(limit=limit)

    # Answers, in which a middleware may have put calls with ids of its own.

    async def _take_answer(self, response: Response, scope: CancelScope) -> ToolRound | None:
        session = self._session
        missing = [name for name in session.not_restored if not self._options.get(name)]
        if missing:
            warning = make_warning("options_not_restored", names=", ".join(missing))
            response = replace(response, warnings=(*response.warnings, warning))
        session.not_restored = ()
        return await super()._take_answer(session.tool_ids.own(response), scope)

    def _open_step(
        self, request: Request, scope: CancelScope, step: int
    ) -> AsyncGenerator[StreamEvent, None]:
        return self._session.tool_ids.own_events(super()._open_step(request, scope, step))

    # The end.

    async def _end(self, error: BaseException | None = None) -> None:
        """Give the session what the turn leaves behind and what it has used, once."""
        if self._is_over:
            return
        self._is_over = True
        spent: tuple[Usage | None, Cost | None] | None = None
        try:
            is_large = self._accumulator is not None and self._accumulator.is_large
            sum_up = partial(self._sum_up, error)
            outcome, spent = await asyncio.to_thread(sum_up) if is_large else sum_up()
            if outcome is not None:
                loaded = await self._files.load(outcome.messages)
                self.settle(outcome._replace(messages=loaded))
        finally:
            self._session.leave(self)
            self._session.account(*(spent or self._spent(error)))
        await self._session.flush()

    def _sum_up(
        self, error: BaseException | None
    ) -> tuple[Outcome | None, tuple[Usage | None, Cost | None]]:
        """What it leaves behind, unless the session has that, and what it used and cost."""
        return None if self._is_settled else self.outcome(error), self._spent(error)

    def settle(self, outcome: Outcome) -> None:
        """Add the outcome to the session, unless an interruption did so before."""
        if not self._is_settled:
            self._is_settled = True
            self._session.settle(self, outcome)

    def interrupt(self) -> None:
        """End the turn with what has arrived."""
        self.client.calls.scopes.cancel(self.request_id)
        try:
            if not self._is_settled:
                outcome = self.outcome(AbortError(CANCELLED))
                found = self._files.find(outcome.messages)
                loaded = outcome.messages if found is None else _load_media(found)
                self.settle(outcome._replace(messages=loaded))
        finally:
            self._session.leave(self)

    def outcome(self, error: BaseException | None = None) -> Outcome:
        """What the turn leaves behind, after its end or after this error."""
        begin, loop = self._begins_at, self.loop
        if error is None:
            messages = self._closed()[begin:]
        elif isinstance(error, _INTERRUPTIONS):
            arrived, given = self.conversation(self.partial())[begin:], len(self._own)
            messages = close_turn(arrived)
            if not messages[given:] and arrived[:given] == self._own:  # nothing has arrived
                messages = ()
        else:
            messages = complete_rounds(self.conversation()[begin:], self._own)
        omitted = 0
        if loop.summary is not None:
            omitted = sum(1 for at in loop.dropped if at < begin)
        return Outcome(messages, omitted, loop.summary)

    def _closed(self) -> tuple[Message, ...]:
        """The conversation after the end; a call that is the object of a schema is answered."""
        messages, goal = self.loop.messages, self._object_goal
        if goal is None or self.loop.pending_approvals:
            return messages
        response = self.loop.steps[-1].response
        try:
            goal.read(response)
        except NoObjectGeneratedError:
            return close_calls(messages)
        return (*messages, *goal.closing(response))

    def _spent(self, error: BaseException | None) -> tuple[Usage | None, Cost | None]:
        """What all its answers used and cost; a cost is None if a price is not known."""
        if isinstance(error, SDKError) and error.total_usage is not None:
            return error.total_usage, error.total_cost
        partial = None if error is None else self.partial()
        attempts = () if self._attempts is None else self._attempts.records
        return self.loop.total_usage(partial), self.loop.total_cost(partial, attempts)


def _as_object_goal(goal: Goal) -> ObjectGoal | None:
    from interlingua.api.objects.strategy import ObjectGoal

    return goal if isinstance(goal, ObjectGoal) else None


def _load_media(request: Request) -> tuple[Message, ...]:
    from interlingua.transport.media import load_media

    return load_media(request).messages


class _Files:
    """
    The files of a turn, whose bytes the session stores.

    It is a layer around all middleware of tools: a file that a tool returns and that cannot be
    read is an error of this tool, which is sent to the model.
    """

    def __init__(self, client: Client, request: Request) -> None:
        self._client = client
        self._request = request

    async def load(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """The messages with the bytes of their files, which are read in a thread."""
        found = self.find(messages)
        if found is None:
            return messages
        return await asyncio.to_thread(_load_media, found)

    def find(self, messages: tuple[Message, ...]) -> Request | None:
        """A request with the messages, if they name files; an error if the adapter reads none."""
        from interlingua.transport.media import names_files, paths_from_urls, refuse_files

        calls = self._client.calls
        if calls.routing.reads_path_urls:
            messages = paths_from_urls(Request(messages=messages)).messages
        if not names_files(messages):
            return None
        request = replace(self._request, messages=messages)
        adapter = calls.adapters.get(calls.routing.address(request).provider or "")
        if not getattr(adapter, "reads_files", True):
            refuse_files(request)
        return request

    async def run_tool(
        self, call: ToolCall, request: Request, call_next: ToolNext, /
    ) -> ToolResult:
        """The result with the bytes of its files."""
        del call, request
        message = Message(role="tool", content=(await call_next(),))
        (loaded,) = await self.load((message,))
        return cast(ToolResult, loaded.content[0])


_INTERRUPTIONS = (AbortError, asyncio.CancelledError, GeneratorExit, KeyboardInterrupt)
"""What ends a turn because it is not wanted any more: its partial answer is kept."""


def _interruption(finish: Finish) -> AbortError | None:
    """The error that stands for a stream that was cancelled by its id."""
    return AbortError(CANCELLED) if finish.finish_reason.reason == "cancelled" else None
