"""
The settings of a request as keywords: of `generate`, of `OtherModel` and of `Request` itself.

Written by scripts/settings_types.py from the fields of `Request`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from interlingua.spec.check import Amount, Count, Positive, ThinkingBudget
from interlingua.spec.request import OnLoss, ResponseFormat, ToolChoice, UploadMode


class ModelSettings(TypedDict, total=False):
    """The settings that another model may need in another way."""

    provider: str | None
    """The provider, if the name of the model does not contain it."""
    tool_choice: ToolChoice | str | Mapping[str, Any] | None
    """`auto`, `none`, `required` (or `any`), the name of a tool, or a `ToolChoice`."""
    parallel_tool_calls: bool | None
    """Whether the model may call several tools in one answer."""
    temperature: Amount | None
    """Sampling temperature: higher values give more varied answers."""
    top_p: Amount | None
    """Samples only from the most likely tokens that together have this probability."""
    top_k: int | None
    """Samples only from this many of the most likely tokens."""
    max_tokens: Positive | None
    """The maximum number of tokens in one answer."""
    stop_sequences: Iterable[str] | None
    """Strings at which generation stops."""
    seed: int | None
    """Seed for reproducible sampling, where the provider supports it."""
    frequency_penalty: float | None
    """Penalises tokens in proportion to how often they have appeared."""
    presence_penalty: float | None
    """Penalises tokens that have appeared."""
    logprobs: Count | None
    """
    Asks for the probabilities of the tokens, with this many alternatives to each.

    See `Request.logprobs`.
    """
    reasoning_effort: str | None
    """How much the model should think, as the provider's value: `low`, `high`, …"""
    thinking_budget: ThinkingBudget | None
    """How much the model should think, in tokens."""
    include_thinking: bool | None
    """
    Whether to ask for visible thoughts, or for none, where a provider can be asked.

    See `Request.include_thinking`.
    """
    verbosity: str | None
    """How long the answer should be: `low`, `medium` or `high`."""
    provider_options: Mapping[str, Any]
    """Fields of the wire format, by provider or dialect; merged last, `tools` are added."""
    on_loss: OnLoss | None
    """
    Which losses raise `UnsupportedError` before anything is sent.

    Defaults to `content`. See `Request.on_loss`.
    """


class RequestSettings(ModelSettings, total=False):
    """All settings of a request. None means not set; 0, 0.0 and "" are values."""

    response_format: ResponseFormat | Mapping[str, Any] | None
    """The format of the text; for objects use `generate_object`."""
    user: str | None
    """An id of the end user, for the provider's abuse detection."""
    metadata: Mapping[str, Any] | None
    """Labels, for providers that store them."""
    request_id: str | None
    """The id of the run or call, for `client.cancel(id)` and logs. Defaults to a new one."""
    keep_raw: bool
    """Whether `Response.raw` of a stream has its wire events. Never sent. Defaults to False."""
    upload: UploadMode | None
    """
    `"auto"` stores media that makes the request too large at the provider, during the run or call.

    See `Request.upload`.
    """
    session_id: str | None
    """The conversation that this is a turn of, for logs, events and limits; never sent."""
    active_skills: Iterable[str]
    """
    The skills in use, for a `Behaviour` that limits the number of tools; never sent.

    See `Request.active_skills`.
    """
    active_connectors: Iterable[str]
    """The connectors in use, for the same; a tool belongs to one as to a skill. Never sent."""
    chosen_because: str | None
    """Why this model was chosen, for events and the metadata of the answer; never sent."""
