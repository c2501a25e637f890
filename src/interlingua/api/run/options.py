"""The parameters of the high-level functions, and the request that they make."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, Protocol, TypeAlias, TypedDict

import msgspec

from interlingua.api.run.clients import BlockingClient
from interlingua.api.run.limits import RunLimits
from interlingua.api.run.loop import StopCondition
from interlingua.api.run.results import GenerateResult
from interlingua.client.client import Client
from interlingua.client.retry_policy import DEFAULT_POLICY, RetryPolicy
from interlingua.lazy import names_of
from interlingua.prepare.history.scan import PROMPTS
from interlingua.providers.keys import Key
from interlingua.providers.tariffs import Prices
from interlingua.runtime.cancel import AbortSignal
from interlingua.runtime.ulid import new_ulid
from interlingua.spec.check import (
    Count,
    Duration,
    Positive,
    Row,
    Rule,
    Seconds,
    advice,
    check_fields,
    plain_strings,
    refuse,
    row_of_option,
)
from interlingua.spec.content import PART_TYPES, Part, Text
from interlingua.spec.errors import ConfigurationError, SDKError
from interlingua.spec.messages import AnyMessage, Message, SdkObject, is_sdk_object
from interlingua.spec.request import AnyTool, Request, to_response_format, to_tool_choice
from interlingua.spec.request_check import check_request
from interlingua.spec.response import Warning
from interlingua.spec.settings import RequestSettings
from interlingua.spec.warnings import make_warning

if TYPE_CHECKING:
    from interlingua.api.run.validation import OutputValidator
    from interlingua.api.tools.check import RepairToolCall
    from interlingua.api.tools.context import ToolContext
    from interlingua.api.tools.runner import ToolErrorText, ToolObserver
    from interlingua.api.tools.tool import ToolOrFunction
    from interlingua.client.middleware.usage_reports import UsageCallback

    SystemFunction: TypeAlias = Callable[[ToolContext[Any]], Any]
    """Returns the system prompt of a run, from its context."""
else:  # the names in the annotations of options, which are loaded when such an option is checked
    SystemFunction = Callable[..., Any]
    __getattr__ = names_of(
        __name__,
        {
            "interlingua.api.run.validation": ("OutputValidator",),
            "interlingua.api.tools.check": ("RepairToolCall",),
            "interlingua.api.tools.runner": ("ToolErrorText",),
            "interlingua.client.middleware.usage_reports": ("UsageCallback",),
        },
    )


class TimeoutConfig(msgspec.Struct, frozen=True, kw_only=True):
    """
    Timeouts in seconds: for the whole run with retries and tools, and for one model call.

    The time that the reader of a stream needs between two events does not count.
    """

    total: Seconds | None = None
    """The whole run, with retries and tools."""
    per_step: Seconds | None = None
    """Each call of the model."""


class Resumable(Protocol):
    """The result of a run that can be resumed, such as that of `execute`."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """The whole conversation."""


Summarizer: TypeAlias = Callable[[tuple[Message, ...]], str | Awaitable[str]]
"""Sums up messages that do not fit into the context window; sync or async."""
OnOverflow: TypeAlias = Literal["raise", "truncate"] | Summarizer
Continued: TypeAlias = Annotated[
    GenerateResult[Any] | SDKError | Resumable,
    Rule(lambda value: hasattr(value, "messages"), "the result or the error of a run"),
]
Observer: TypeAlias = Annotated[
    "ToolObserver",
    Rule(lambda value: callable(getattr(value, "on_tool_start", None)), "a ToolObserver"),
]


class ConversationOptions(TypedDict, total=False):
    """What is asked, and with which tools."""

    system: str | SystemFunction | None
    """The system prompt, or a function of the `ToolContext` that returns it, sync or async."""
    messages: Iterable[AnyMessage] | None
    """Each one is a `Message`, the text of a user message, or a message of a vendor's SDK."""
    tools: Iterable[ToolOrFunction] | None
    """`Tool` objects, functions, definitions, dicts, tools of the provider."""


class RequestOptions(ConversationOptions, RequestSettings, total=False):
    """The fields of the request. None means not set; 0, 0.0 and "" are values."""


class GenerateOptions(RequestOptions, total=False):
    """The options of `generate` and `stream`: the request and how it is run."""

    limits: RunLimits | None
    """How many requests, tokens, dollars and tool calls the run may take."""
    output_validator: OutputValidator | None
    """
    Checks the text, or the object of `generate_object`, and may raise `Retry` to ask again.

    What it returns, unless it is None, becomes `result.output`.
    """
    max_validation_retries: Count | None
    """How often an answer is sent back. Defaults to 1 with `output_validator`, else 0."""
    max_tool_rounds: Count
    """How often the tool calls of an answer are run and sent back. Defaults to 1."""
    stop_when: StopCondition | None
    """A function of the steps, sync or async, that can end the run early."""
    repair_tool_call: RepairToolCall | None
    """A function that corrects a tool call with invalid arguments."""
    tool_timeout: Duration | None
    """Seconds for each call of a tool that has no `timeout` of its own."""
    max_concurrent_tools: Positive | None
    """How many tools run at once; all runs together have 64 threads. Defaults to 64."""
    max_tool_output: Positive | None
    """The limit of a tool's output in characters; None is unlimited. Defaults to 1,000,000."""
    resume: Continued | None
    """
    The result or the error of a run to go on with, instead of a prompt or messages.

    Its open tool calls are run first, and no call is run twice. The new result has its steps too.
    """
    approvals: Mapping[str, bool] | None
    """
    Decisions about `result.pending_approvals`, by call id.

    They apply to the calls at the end of `messages`, not to later calls.
    """
    tool_observer: Observer | None
    """An object that is called when a tool starts, ends or fails."""
    tool_error: ToolErrorText | None
    """
    Makes what the model is sent for a call that failed, from the call and the exception.

    Defaults to the class and message of the exception.
    """
    deps: Any
    """The `deps` of each `ToolContext`."""
    on_overflow: OnOverflow
    """
    What to do when the history is too long: raise, or drop the oldest turns and send it again.

    A function gets the messages that would be dropped and returns a summary of them, which is sent
    in their place. The result still has the dropped turns, and a warning. Defaults to `"raise"`.
    """
    max_retries: Count
    """How often each model call is retried. Defaults to 2."""
    retry_policy: RetryPolicy | None
    """The retry policy; replaces `max_retries`."""
    timeout: Seconds | TimeoutConfig | None
    """Seconds for the whole run, or a `TimeoutConfig`."""
    abort_signal: AbortSignal | None
    """The signal of an `AbortController`, which aborts the run."""
    api_key: Key | None
    """The API key for this run, at the provider of the model; that need not be configured then."""
    base_url: str | None
    """The address of the provider for this run."""
    headers: Mapping[str, str] | None
    """More headers for this run, at the provider of the model."""
    prices: Prices | None
    """Rates by model for this run, over those of the client and of the catalog."""
    on_usage: UsageCallback | None
    """
    Called with a `UsageReport` at the end of each model call, sync or async.

    In a stream also on the way, with estimates. Its exceptions are logged, not raised.
    """
    usage_batch_size: Positive | None
    """How many output tokens there are between two reports of a stream. Defaults to 100."""
    caller_id: str | None
    """An id of the program for the reports, such as that of a user."""
    client: Client | BlockingClient | None
    """The client to use, async or blocking. Defaults to the module-level client."""


_SETTINGS = frozenset(RequestSettings.__annotations__)
_CONVERSATION = frozenset(ConversationOptions.__annotations__)
_RECORDS = frozenset(("timeout",))
"""The options that may be records of numbers, which are checked one by one."""
_SECRET = frozenset(("api_key", "headers"))
_FIRST = frozenset(("system", "stop_sequences", "active_skills", "active_connectors"))
"""Options of requests that are checked here: a `Request` takes more, such as a single string."""
_WORDS = {
    "abort_signal": "an AbortSignal (`controller.signal`)",
    "api_key": "a string, a function that makes one, or AwsCredentials",
    "client": "an interlingua.Client or interlingua.sync.Client",
    "prices": "a mapping of models to rates",
}
"""What is expected, where the type alone says too little."""
_CHECKED = _FIRST | (GenerateOptions.__annotations__.keys() - RequestOptions.__annotations__.keys())
"""The options that are checked here; other settings are checked with the request."""


class _Rows(dict[str, "Row | None"]):
    """What each option must be; made when one is first given: reading annotations takes time."""

    def __missing__(self, name: str) -> Row | None:
        row = row_of_option(name, GenerateOptions)
        self[name] = row and row._replace(
            is_optional=row.is_optional or name in _FIRST,
            expected=_WORDS.get(name, row.expected),
        )
        return self[name]


_ROWS = _Rows()


def check_options(options: Mapping[str, Any], known: Collection[str] = ()) -> None:
    """
    Raise `ConfigurationError` for unknown options and for values of the wrong type.

    The fields of the request are checked with it. `known` are the options of the function, if it
    has others than `generate`.
    """
    for name, value in options.items():
        row = _ROWS[name] if name in _CHECKED else None
        if row is not None:
            _, is_optional, types, rule, _ = row
            if not (isinstance(value, types) and (rule is None or rule(value))):
                if value is not None or not is_optional:
                    _refuse_option(row, value)
            elif name in _RECORDS and isinstance(value, msgspec.Struct):
                check_fields(value, name)
        elif name not in _CHECKED and name not in _SETTINGS and name not in _CONVERSATION:
            names = known or GenerateOptions.__annotations__
            raise ConfigurationError(f"Unknown option {name!r}. {advice(name, names)}")
    if options.get("retry_policy") is not None and "max_retries" in options:
        raise ConfigurationError("Pass either max_retries or retry_policy, not both.")


def _refuse_option(row: Row, value: object) -> NoReturn:
    if row.name in _SECRET:  # the value must not be in the message
        kind = type(value).__name__
        raise ConfigurationError(f"{row.name} must be {row.expected}, not a {kind}.")
    refuse(row.name, row.expected, value)


def reusable(options: Mapping[str, Any]) -> dict[str, Any]:
    """
    The options for several runs, which a session also saves.

    An iterator would be used up by the first run. Dicts become the records that they stand for.
    """
    settings: dict[str, Any] = {
        name: tuple(value) if isinstance(value, Iterator) else plain_strings(value)
        for name, value in options.items()
    }
    if isinstance(settings.get("tool_choice"), Mapping):
        settings["tool_choice"] = to_tool_choice(settings["tool_choice"])
    if isinstance(settings.get("response_format"), Mapping):
        settings["response_format"] = to_response_format(settings["response_format"])
    return settings


def timeouts_of(timeout: float | TimeoutConfig | None) -> TimeoutConfig:
    """The timeouts; a number is the total timeout."""
    return timeout if isinstance(timeout, TimeoutConfig) else TimeoutConfig(total=timeout)


def policy_of(options: Mapping[str, Any]) -> RetryPolicy:
    """The retry policy of the options, or the default one with their `max_retries`."""
    policy: RetryPolicy | None = options.get("retry_policy")
    if policy is not None:
        return policy
    if "max_retries" in options:
        return RetryPolicy(max_retries=options["max_retries"])
    return DEFAULT_POLICY


Prompt: TypeAlias = (
    str
    | Message
    | Part
    | Iterable[str | Part | Message | Mapping[str, Any] | SdkObject]
    | Mapping[str, Any]
    | SdkObject
    | None
)
"""What to answer: a text, a message, or a list of texts and parts, which is one message."""


def make_messages(
    prompt: Prompt,
    messages: AnyMessage | Iterable[AnyMessage] | None,
    system: str | None,
    resume: Any = None,
) -> tuple[Message, ...]:
    """The conversation: the system message, then the prompt, the messages or those of a run."""
    given = (prompt is not None) + (messages is not None) + (resume is not None)
    if not given:
        raise ConfigurationError("Pass a prompt or messages=: there is nothing to answer.")
    if given > 1:
        raise ConfigurationError("Pass either prompt or messages, or else resume, not both.")
    if isinstance(prompt, str):
        conversation: tuple[Message, ...] = (Message(role="user", content=(Text(text=prompt),)),)
    elif resume is not None:
        conversation = _resumed_messages(resume)
    elif messages is None:
        conversation = _from_prompt(prompt)
    else:
        from interlingua.api.run.messages import read_messages

        conversation = read_messages(messages)
    if not conversation:
        raise ConfigurationError("messages is empty: there is nothing to answer.")
    return conversation if system is None else with_system(system, conversation)


def resumed_run(resume: Any) -> Any:
    """What `resume=` continues: a result, or the error of a run, also from within a result."""
    failure = getattr(getattr(resume, "error", None), "exception", None)
    return resume if getattr(failure, "messages", None) is None else failure


def _resumed_messages(resume: Any) -> tuple[Message, ...]:
    if not resume.messages:
        raise ConfigurationError(
            "resume= needs the result or the error of a run, and this one has no messages. Pass "
            "messages= instead."
        )
    return tuple(resume.messages)


_FROM_SYSTEM = {"from_option": "system"}
"""The metadata of the message that `system=` makes, so that a later call finds it again."""


def with_system(system: str, conversation: tuple[Message, ...]) -> tuple[Message, ...]:
    """The conversation with `system`, in place of what an earlier `system=` put there."""
    message = Message(role="system", content=(Text(text=system),), metadata=_FROM_SYSTEM)
    for index, prompt in enumerate(takewhile(_is_prompt, conversation)):
        if prompt.metadata.get("from_option") == "system":
            if prompt.text == system:
                return conversation
            return (*conversation[:index], message, *conversation[index + 1 :])
    first = conversation[0]
    has_it = _is_prompt(first) and first.text == system
    return conversation if has_it else (message, *conversation)


def other_prompt(conversation: tuple[Message, ...]) -> Warning | None:
    """A warning if a conversation that begins with `system=` has another system message there."""
    prompts = [each for each in takewhile(_is_prompt, conversation) if each.role == "system"]
    others = [each for each in prompts if each.metadata.get("from_option") != "system"]
    if not others or len(others) == len(prompts):
        return None
    return make_warning("system_beside_system", f"messages[{conversation.index(others[0])}]")


def _is_prompt(message: Message) -> bool:
    return message.role in PROMPTS


def _from_prompt(prompt: Any) -> tuple[Message, ...]:
    from interlingua.api.run.messages import read_messages

    if _is_message(prompt):
        return read_messages(prompt)
    if isinstance(prompt, Iterable) and not isinstance(prompt, bytes):
        prompt = tuple(prompt)
        if any(map(_is_message, prompt)):
            return read_messages(prompt)
    elif not isinstance(prompt, PART_TYPES):
        kind = type(prompt).__name__
        raise ConfigurationError(f"prompt must be a string, a Message or parts, not a {kind}.")
    return (Message.user(prompt),)


def _is_message(item: object) -> bool:
    return isinstance(item, (Message, Mapping)) or is_sdk_object(item)


def make_request(
    model: str | None,
    conversation: tuple[Message, ...],
    tools: Iterable[AnyTool] | None,
    options: Mapping[str, Any],
) -> Request:
    """The request of the first step, from the options that are fields of it."""
    fields = {
        name: value for name, value in options.items() if value is not None and name in _SETTINGS
    }
    if "request_id" not in fields:
        fields["request_id"] = new_ulid()
    # Without a model, the client uses its default.
    request = check_request(
        Request(model=model or "", messages=conversation, tools=tools, **fields)
    )
    choice = request.tool_choice
    if choice is not None and choice.mode == "required" and not request.tools:
        raise ConfigurationError("tool_choice is 'required', but there are no tools.")
    return request
