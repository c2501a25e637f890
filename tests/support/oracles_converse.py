"""The client of botocore as an oracle: what it makes of an answer of Converse that we encoded."""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Iterable, Iterator
from typing import Any

import botocore.session
from botocore.awsrequest import AWSResponse
from botocore.config import Config

from interlingua.spec.content import Json
from interlingua.spec.contracts import Frame
from interlingua.wire.aws_event_stream import encode_event
from support.oracles_botocore import event_problems, response_problems
from support.oracles_responses import Answer, Call, Oracle

_ASKED: dict[str, Any] = {
    "modelId": "m",
    "messages": [{"role": "user", "content": [{"text": "x"}]}],
}


class _Body(io.BytesIO):
    """The body of a reply, as botocore reads it from a connection."""

    def stream(self) -> Iterator[bytes]:
        """For a stream of events."""
        yield self.read()


@functools.cache
def client() -> Any:
    """The client, made once: its exceptions are classes of its own."""
    session = botocore.session.Session()
    session.set_credentials("none", "none")
    config = Config(retries={"total_max_attempts": 1})
    return session.create_client("bedrock-runtime", region_name="us-east-1", config=config)


class Converse(Oracle):
    """`converse` and `converse_stream` of `bedrock-runtime`; its types are the service model."""

    def __init__(self) -> None:
        self._client = client()
        self._client.meta.events.register("before-send.bedrock-runtime", self._reply)
        self._status, self._headers, self._body = 500, {}, b""

    def _reply(self, request: Any, **_: Any) -> AWSResponse:
        return AWSResponse(request.url, self._status, self._headers, _Body(self._body))

    def _say(self, status: int, body: bytes, kind: str, headers: dict[str, str]) -> None:
        self._status, self._body = status, body
        self._headers = {**headers, "content-type": kind}

    def read(self, body: Json) -> Answer:
        self._say(200, json.dumps(body).encode(), "application/json", {})
        return self.receive()

    def read_stream(self, frames: Iterable[Frame]) -> Answer:
        data = b"".join(map(encode_event, frames))
        self._say(200, data, "application/vnd.amazon.eventstream", {})
        return self.receive_stream()

    def read_error(self, status: int, headers: dict[str, str], body: Json) -> Exception:
        self._say(status, json.dumps(body).encode(), "application/json", headers)
        try:
            self.receive()
        except Exception as error:  # noqa: BLE001 -- which one it is is the question
            return error
        msg = "no error was raised"
        raise AssertionError(msg)

    def validate(self, body: Json) -> list[str]:
        return response_problems(body)

    def validate_stream(self, frames: Iterable[Frame]) -> list[str]:
        found = (
            fault for frame in frames for fault in event_problems(frame.event, _object(frame.data))
        )
        return list(dict.fromkeys(found))

    def receive(self) -> Answer:
        reply = self._client.converse(**_ASKED)
        return _show(reply["output"]["message"]["content"], reply)

    def receive_stream(self) -> Answer:
        blocks: dict[int, dict[str, Any]] = {}
        told: dict[str, Any] = {}
        for event in self._client.converse_stream(**_ASKED)["stream"]:
            match event:
                case {"contentBlockStart": {"start": start, "contentBlockIndex": index}}:
                    blocks[index] = start
                case {"contentBlockDelta": {"delta": delta, "contentBlockIndex": index}}:
                    _add(blocks.setdefault(index, {}), delta)
                case {"messageStop": fields} | {"metadata": fields}:
                    told |= fields
        return _show(list(blocks.values()), told)


def _add(block: dict[str, Any], delta: dict[str, Any]) -> None:
    """Add a delta to its block, as the users of botocore do."""
    match delta:
        case {"text": text}:
            block["text"] = block.get("text", "") + text
        case {"reasoningContent": {"text": text}}:
            inner = block.setdefault("reasoningContent", {}).setdefault("reasoningText", {})
            inner["text"] = inner.get("text", "") + text
        case {"toolUse": {"input": text}}:
            block["toolUse"]["input"] = block["toolUse"].get("input", "") + text


def _show(blocks: list[dict[str, Any]], told: dict[str, Any]) -> Answer:
    thoughts = [block.get("reasoningContent", {}).get("reasoningText", {}) for block in blocks]
    uses = [block["toolUse"] for block in blocks if "toolUse" in block]
    usage = told["usage"]
    return Answer(
        text="".join(map(_text, blocks)),
        refusal="",
        thinking="".join(thought.get("text", "") for thought in thoughts),
        calls=[Call(use["toolUseId"], use["name"], _object(use.get("input", ""))) for use in uses],
        finish=told["stopReason"],
        usage={
            "input": usage["inputTokens"],
            "output": usage["outputTokens"],
            "cache_read": usage.get("cacheReadInputTokens"),
            "cache_write": usage.get("cacheWriteInputTokens"),
        },
    )


def _text(block: dict[str, Any]) -> str:
    """The text of a block; a whole answer has text with citations in a block of its own."""
    cited = block.get("citationsContent", {}).get("content", ())
    return "".join([block.get("text", ""), *(piece["text"] for piece in cited)])


def _object(value: Any) -> Any:
    """Argument text of a stream as a user would read it; what is no JSON stays as it is."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value or "{}")
    except ValueError:
        return value
