"""
The options of `generate` with their meanings, for `help`.

Written by scripts/docs_tables.py from the docstrings in `options.py`.
"""

OPTIONS = """
Options:

- `system` (str | SystemFunction | None): The system prompt, or a function of the
  `ToolContext` that returns it, sync or async.
- `messages` (Iterable[AnyMessage] | None): Each one is a `Message`, the text of a user
  message, or a message of a vendor's SDK.
- `tools` (Iterable[ToolOrFunction] | None): `Tool` objects, functions, definitions, dicts,
  tools of the provider.
- `provider` (str | None): The provider, if the name of the model does not contain it.
- `tool_choice` (ToolChoice | str | Mapping[str, Any] | None): `auto`, `none`, `required`
  (or `any`), the name of a tool, or a `ToolChoice`.
- `parallel_tool_calls` (bool | None): Whether the model may call several tools in one
  answer.
- `temperature` (float | None): Sampling temperature: higher values give more varied
  answers.
- `top_p` (float | None): Samples only from the most likely tokens that together have this
  probability.
- `top_k` (int | None): Samples only from this many of the most likely tokens.
- `max_tokens` (int | None): The maximum number of tokens in one answer.
- `stop_sequences` (Iterable[str] | None): Strings at which generation stops.
- `seed` (int | None): Seed for reproducible sampling, where the provider supports it.
- `frequency_penalty` (float | None): Penalises tokens in proportion to how often they have
  appeared.
- `presence_penalty` (float | None): Penalises tokens that have appeared.
- `logprobs` (int | None): Asks for the probabilities of the tokens, with this many
  alternatives to each. See `Request.logprobs`.
- `reasoning_effort` (str | None): How much the model should think, as the provider's value:
  `low`, `high`, …
- `thinking_budget` (int | None): How much the model should think, in tokens.
- `include_thinking` (bool | None): Whether to ask for visible thoughts, or for none, where
  a provider can be asked. See `Request.include_thinking`.
- `verbosity` (str | None): How long the answer should be: `low`, `medium` or `high`.
- `provider_options` (Mapping[str, Any]): Fields of the wire format, by provider or dialect;
  merged last, `tools` are added.
- `on_loss` (OnLoss | None): Which losses raise `UnsupportedError` before anything is sent.
  Defaults to `content`. See `Request.on_loss`.
- `response_format` (ResponseFormat | Mapping[str, Any] | None): The format of the text; for
  objects use `generate_object`.
- `user` (str | None): An id of the end user, for the provider's abuse detection.
- `metadata` (Mapping[str, Any] | None): Labels, for providers that store them.
- `request_id` (str | None): The id of the run or call, for `client.cancel(id)` and logs.
  Defaults to a new one.
- `keep_raw` (bool): Whether `Response.raw` of a stream has its wire events. Never sent.
  Defaults to False.
- `upload` (UploadMode | None): `"auto"` stores media that makes the request too large at
  the provider, during the run or call. See `Request.upload`.
- `session_id` (str | None): The conversation that this is a turn of, for logs, events and
  limits; never sent.
- `active_skills` (Iterable[str]): The skills in use, for a `Behaviour` that limits the
  number of tools; never sent. See `Request.active_skills`.
- `active_connectors` (Iterable[str]): The connectors in use, for the same; a tool belongs
  to one as to a skill. Never sent.
- `chosen_because` (str | None): Why this model was chosen, for events and the metadata of
  the answer; never sent.
- `limits` (RunLimits | None): How many requests, tokens, dollars and tool calls the run may
  take.
- `output_validator` (OutputValidator | None): Checks the text, or the object of
  `generate_object`, and may raise `Retry` to ask again. What it returns, unless it is None,
  becomes `result.output`.
- `max_validation_retries` (int | None): How often an answer is sent back. Defaults to 1
  with `output_validator`, else 0.
- `max_tool_rounds` (int): How often the tool calls of an answer are run and sent back.
  Defaults to 1.
- `stop_when` (StopCondition | None): A function of the steps, sync or async, that can end
  the run early.
- `repair_tool_call` (RepairToolCall | None): A function that corrects a tool call with
  invalid arguments.
- `tool_timeout` (float | None): Seconds for each call of a tool that has no `timeout` of
  its own.
- `max_concurrent_tools` (int | None): How many tools run at once; all runs together have 64
  threads. Defaults to 64.
- `max_tool_output` (int | None): The limit of a tool's output in characters; None is
  unlimited. Defaults to 1,000,000.
- `resume` (GenerateResult[Any] | SDKError | Resumable | None): The result or the error of a
  run to go on with, instead of a prompt or messages. Its open tool calls are run first, and
  no call is run twice. The new result has its steps too.
- `approvals` (Mapping[str, bool] | None): Decisions about `result.pending_approvals`, by
  call id. They apply to the calls at the end of `messages`, not to later calls.
- `tool_observer` (ToolObserver | None): An object that is called when a tool starts, ends
  or fails.
- `tool_error` (ToolErrorText | None): Makes what the model is sent for a call that failed,
  from the call and the exception. Defaults to the class and message of the exception.
- `deps` (Any): The `deps` of each `ToolContext`.
- `on_overflow` (OnOverflow): What to do when the history is too long: raise, or drop the
  oldest turns and send it again. A function gets the messages that would be dropped and
  returns a summary of them, which is sent in their place. The result still has the dropped
  turns, and a warning. Defaults to `"raise"`.
- `max_retries` (int): How often each model call is retried. Defaults to 2.
- `retry_policy` (RetryPolicy | None): The retry policy; replaces `max_retries`.
- `timeout` (float | TimeoutConfig | None): Seconds for the whole run, or a `TimeoutConfig`.
- `abort_signal` (AbortSignal | None): The signal of an `AbortController`, which aborts the
  run.
- `api_key` (Key | None): The API key for this run, at the provider of the model; that need
  not be configured then.
- `base_url` (str | None): The address of the provider for this run.
- `headers` (Mapping[str, str] | None): More headers for this run, at the provider of the
  model.
- `prices` (Prices | None): Rates by model for this run, over those of the client and of the
  catalog.
- `on_usage` (UsageCallback | None): Called with a `UsageReport` at the end of each model
  call, sync or async. In a stream also on the way, with estimates. Its exceptions are
  logged, not raised.
- `usage_batch_size` (int | None): How many output tokens there are between two reports of a
  stream. Defaults to 100.
- `caller_id` (str | None): An id of the program for the reports, such as that of a user.
- `client` (Client | BlockingClient | None): The client to use, async or blocking. Defaults
  to the module-level client.
"""
