"""`POST /v1/moderations`: both sides; also as Mistral has it."""

from __future__ import annotations

from collections.abc import Mapping

from interlingua.dialects.openai_shared.embeddings import (
    OWNER,
    decode_parts,
    read_usage,
    served_fields,
)
from interlingua.prepare.options import body_with_options
from interlingua.spec.content import Image, Json, Part, Text
from interlingua.spec.contracts import Profile, WireCall
from interlingua.spec.errors import DecodeError, InvalidRequestError, UnsupportedError
from interlingua.spec.modalities.judgements import (
    ModeratedContent,
    ModerateInput,
    Moderation,
    ModerationResult,
)
from interlingua.spec.operations import InputLimits, Operation, ServedReply
from interlingua.spec.response import Usage
from interlingua.wire.fields import Fields, extra_of, is_number, restore
from interlingua.wire.json_text import loads
from interlingua.wire.media import make_data_url
from interlingua.wire.resources import serve

_PATH = "/v1/moderations"
# The number is ours: the documentation has none.
_LIMITS = InputLimits(items=32)


def moderate_operations(name: str) -> dict[str, Operation]:
    """The operation for a dialect of this name, in all its variants."""

    def encode(value: ModerateInput, _profile: Profile) -> WireCall:
        return _call(_inputs(value), value, name)

    def encode_texts(value: ModerateInput, _profile: Profile) -> WireCall:
        texts = [_only_text(content, value) for content in value.inputs]
        return _call(texts, value, name)

    operation = Operation(
        name="moderate", encode=encode, decode=_decode, limits=lambda _value: _LIMITS
    )
    mistral = Operation(
        name="moderate", encode=encode_texts, decode=_decode, limits=lambda _value: _LIMITS
    )
    return {"moderate": operation, "moderate.mistral": mistral}


def _call(inputs: Json, value: ModerateInput, name: str) -> WireCall:
    body = {"model": value.model, "input": inputs}
    return WireCall(path=_PATH, body=body_with_options(body, value, name))


def _inputs(value: ModerateInput) -> list[Json]:
    """Texts are judged one by one; parts are judged as one, so they fill a call."""
    # The SDK's `input`: «a single string, an array of strings, or an array of multi-modal input
    # objects»; the objects of one array get one verdict:
    # https://developers.openai.com/api/docs/guides/moderation
    texts = [content for content in value.inputs if isinstance(content, str)]
    if len(texts) == len(value.inputs):
        return [*texts]
    if len(value.inputs) != 1:
        raise UnsupportedError(f"{value.model} judges images in one input of a call.")
    return [_block(part, value) for part in value.inputs[0] if not isinstance(part, str)]


def _block(part: Part, value: ModerateInput) -> Json:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Image) and (part.url or part.data is not None):
        url = part.url or make_data_url(part.data or b"", part.media_type)
        return {"type": "image_url", "image_url": {"url": url}}
    raise UnsupportedError(f"{value.model} judges text and images, not {part.kind}.")


def _only_text(content: ModeratedContent, value: ModerateInput) -> str:
    if isinstance(content, str):
        return content
    if not all(isinstance(part, Text) for part in content):
        raise UnsupportedError(
            f"{value.model} judges only text. openai:omni-moderation-latest takes images."
        )
    return "\n".join(part.text for part in content if isinstance(part, Text))


def _decode(_status: int, _headers: Mapping[str, str], body: bytes) -> ModerationResult:
    value = loads(body)
    fields = Fields(value, strict=False)
    rows = fields.array("results")
    if rows is None or not all(isinstance(row, dict) for row in rows):
        raise DecodeError("The reply has no results of a moderation.")
    usage = fields.object("usage")
    return ModerationResult(
        model=fields.text("model") or "",
        results=tuple(map(_judgement, rows)),
        extra={OWNER: fields.left} if fields.left else {},
        raw=value,
        usage=read_usage(usage) if usage else Usage(),
    )


def _judgement(row: dict[str, Json]) -> Moderation:
    fields = Fields(row, strict=False)
    given, scores = fields.object("categories") or {}, fields.object("category_scores") or {}
    categories = {name: is_in for name, is_in in given.items() if isinstance(is_in, bool)}
    flagged = fields.flag("flagged")
    if flagged is None and not categories:
        raise DecodeError("A result of a moderation has no verdict and no categories.")
    return Moderation(
        flagged=any(categories.values()) if flagged is None else flagged,  # Mistral has no field
        categories=categories,
        scores={name: float(score) for name, score in scores.items() if is_number(score)},
        extra={OWNER: fields.left} if fields.left else {},
    )


def _decode_served(call: WireCall, _params: Mapping[str, str]) -> ModerateInput:
    fields = served_fields(call)
    given = fields.take("input")
    inputs: tuple[ModeratedContent, ...]
    if isinstance(given, str):
        inputs = (given,)
    elif isinstance(given, list) and given and all(isinstance(each, str) for each in given):
        inputs = tuple(given)
    elif isinstance(given, list) and given:
        inputs = (decode_parts(given),)
    else:
        raise InvalidRequestError("'input' must be a text or a list.", status_code=400)
    return ModerateInput(model=fields.text("model") or "", inputs=inputs)


def _encode_served(result: ModerationResult, _value: ModerateInput) -> ServedReply:
    rows = [
        restore(
            {
                "flagged": each.flagged,
                "categories": dict(each.categories),
                "category_scores": dict(each.scores),
            },
            each,
            OWNER,
        )
        for each in result.results
    ]
    body = {
        "id": f"modr-{result.request_id or 'simulated'}",
        "model": result.model,
        "results": rows,
    }
    return ServedReply(body={**body, **extra_of(result, OWNER)})


SERVED = (serve("moderate", "POST", r".*/moderations", _decode_served, _encode_served),)
