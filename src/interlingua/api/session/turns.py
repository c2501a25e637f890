"""The turns of a session: what a turn that did not end leaves behind, and how history is split."""

from __future__ import annotations

from itertools import zip_longest

from msgspec.structs import replace

from interlingua import dialects
from interlingua.api.run.loop import in_call_order, with_results
from interlingua.runtime.ulid import new_ulid
from interlingua.spec.content import Record, ToolCall, ToolResult
from interlingua.spec.facts import HistoryRules
from interlingua.spec.messages import Message

NOT_RUN = "This call was not run: the conversation went on without it."
_CUT = ("cancelled", "error")


class Turn(Record, frozen=True, kw_only=True):
    """One turn: what was asked, and everything that followed from it."""

    messages: tuple[Message, ...]

    @property
    def is_open(self) -> bool:
        """Whether the model has yet to answer: there are results, or calls without a result."""
        last = self.messages[-1] if self.messages else None
        return last is not None and (last.role == "tool" or bool(open_calls(self.messages)))


def split_turns(messages: tuple[Message, ...]) -> list[Turn]:
    """The turns of a history: each begins with a user message; prompts belong to the first."""
    turns: list[list[Message]] = []
    for message in messages:
        follows_prompt = bool(turns) and all(each.role in _PROMPTS for each in turns[-1])
        if not turns or (message.role == "user" and not follows_prompt):
            turns.append([])
        turns[-1].append(message)
    return [Turn(messages=tuple(turn)) for turn in turns]


_PROMPTS = ("system", "developer")


def open_calls(messages: tuple[Message, ...]) -> tuple[ToolCall, ...]:
    """The calls of a turn that have no result."""
    answered = {
        part.tool_call_id
        for message in messages
        for part in message.content
        if isinstance(part, ToolResult)
    }
    calls = (call for message in messages for call in message.tool_calls)
    return tuple(call for call in calls if call.id not in answered)


def close_calls(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages of a turn with an error result for each call that has none."""
    missing = {call.id for call in open_calls(messages)}
    if not missing:
        return messages
    closed: list[Message] = []
    results: list[ToolResult] = []  # for the calls of the last answer
    for message in messages:
        if results and message.role == "tool":
            content = in_call_order(closed[-1], (*message.content, *results))
            message = replace(message, content=content)  # noqa: PLW2901
        elif results:
            closed.append(_results(results))
        closed.append(message)
        results = [_not_run(call) for call in message.tool_calls if call.id in missing]
    return (*closed, _results(results)) if results else tuple(closed)


def _results(results: list[ToolResult]) -> Message:
    return Message(role="tool", content=tuple(results), id=new_message_id())


def join_results(messages: tuple[Message, ...], given: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages of a turn with results that the caller gives, and what else is given."""
    first, *others = given
    results = tuple(part for part in first.content if isinstance(part, ToolResult))
    return (*with_results(messages, results), *others)


def _not_run(call: ToolCall) -> ToolResult:
    return ToolResult(tool_call_id=call.id, name=call.name, content=NOT_RUN, is_error=True)


def close_turn(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """
    The messages of a turn that was cut short, as every provider accepts them.

    An answer that was cut keeps its text. Its calls are left out, because none of them was run, and
    so is thinking that has no signature or that nothing follows. Other calls get a result.
    """
    whole: list[Message] = []
    for message in messages:
        is_cut = message.metadata.get("finish_reason") in _CUT and message.role == "assistant"
        whole += _without_loose_ends(message) if is_cut else (message,)
    return close_calls(tuple(whole))


def _without_loose_ends(message: Message) -> tuple[Message, ...]:
    """What remains of an answer that was cut; nothing if that is nothing."""
    from interlingua.prepare.history.messages import is_blank
    from interlingua.prepare.history.rules import apply_rules

    content = tuple(part for part in message.content if not is_blank(part))
    return apply_rules((replace(message, content=content),), _rules_for_cut(message))


def complete_rounds(
    messages: tuple[Message, ...], given: tuple[Message, ...]
) -> tuple[Message, ...]:
    """
    The messages of a turn that failed, up to its last tool results; none if no tool was run.

    The messages that are also in `given` were there before. So a turn that failed leaves nothing
    behind but what its tools did.
    """
    pairs = enumerate(zip_longest(messages, given))
    rounds = [at for at, (new, old) in pairs if new and new.role == "tool" and new != old]
    return close_turn(messages[: rounds[-1] + 1]) if rounds else ()


def _rules_for_cut(message: Message) -> HistoryRules:
    """What remains of an answer that was cut, so that its maker and all others accept it."""
    marks = {dialect for part in message.content for dialect in part.extra}
    made_by = next((name for name in dialects.names() if name in marks), None)
    made = HistoryRules(dialect="") if made_by is None else dialects.get(made_by).FACTS.history
    return HistoryRules(
        dialect=made.dialect,
        paired_calls=True,
        signed_thinking=True,
        bare_thinking=False,
        thinking_content=made.thinking_content,
        paired_thinking=made.paired_thinking,
        bound=made.bound,
        trailing_thinking=False,
        thinking_only=False,
        empty_text=False,
        empty_messages=False,
        lone_surrogates=False,
    )


def new_message_id() -> str:
    """A new id of a message."""
    return f"msg_{new_ulid()}"


def with_ids(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages, each with an id."""
    return tuple(
        replace(message, id=new_message_id()) if message.id is None else message
        for message in messages
    )
