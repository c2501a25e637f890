"""
Parts <-> the parts of a content.

Wire parts have their names in camelCase here. A part that could not be written back as it was
becomes `Opaque`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, assert_never

import msgspec

from interlingua.dialects.gemini_generate.facts import (
    ABSENT,
    DATA,
    NAME,
    SIGNATURE,
    extra_for,
    mark_absent,
    take_absent,
    take_nested,
    take_text,
)
from interlingua.dialects.gemini_generate.tool_calls import Links
from interlingua.prepare.media import media_note
from interlingua.spec.content import (
    Audio,
    Document,
    Image,
    Json,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UncheckedJson,
)
from interlingua.spec.errors import DecodeError
from interlingua.spec.warnings import WarningList
from interlingua.wire.fields import Fields, extra_of, restore, wrong_type
from interlingua.wire.json_text import dump_text
from interlingua.wire.media import decode_base64, encode_base64, media_type_for, parse_data_url
from interlingua.wire.tool_calls import input_object

_NO_CALLS: Mapping[str, ToolCall] = {}
_RESPONSE = "response"
_PLAIN = "text/plain"
_DEFAULT_TYPES = {"image": "image/png", "audio": "audio/wav", "document": "application/pdf"}


def decode_part(part: UncheckedJson, links: Links, path: str = "") -> Part:
    """One part; a part of an unknown kind becomes `Opaque`."""
    if not isinstance(part, dict):
        raise wrong_type(path, "a part", part)
    # `data` is a oneof of protobuf: a part with two kinds, or with none, is not understood.
    kinds = [key for key in part if key in DATA and part[key] is not None]
    match kinds[0] if len(kinds) == 1 and ABSENT not in part else None:
        case "text":
            return _decode_text(Fields(part, path))
        case "functionCall":
            return decode_tool_call(part, links, path)
        case "functionResponse":
            return decode_result(part, links, path)
        case "inlineData" | "fileData":
            return decode_media(part, path)
    from interlingua.dialects.gemini_generate.tools import hosted_use

    return hosted_use(part)


def read_part(part: UncheckedJson, links: Links) -> Part:
    """One part of an answer; a malformed part becomes `Opaque`, because answers never fail."""
    try:
        return decode_part(part, links)
    except (DecodeError, RecursionError):
        return Opaque(dialect=NAME, data=part)


def encode_part(
    part: Part, warnings: WarningList, calls: Mapping[str, ToolCall] = _NO_CALLS
) -> dict[str, Json] | None:
    """
    The wire part; None, with a warning, if the API has no form for it.

    `calls` are the earlier tool calls by id: a result carries the name of its tool call.
    """
    match part:
        case Text():
            return restore({"text": part.text}, part, NAME)
        case ToolCall():
            return encode_tool_call(part)
        case ToolResult():
            return encode_result(part, calls, warnings)
        case Image() | Audio() | Document():
            return encode_media(part, warnings)
        case Thinking():
            return encode_thinking(part, warnings)
        case Refusal():
            warnings.add_here("refusal_as_text")
            return {"text": part.text}
        case Opaque():
            if part.dialect == NAME and isinstance(part.data, dict):
                return part.data
            warnings.add_here("foreign_block_dropped", owner=part.dialect)
            return None
    assert_never(part)


def encode_answer_part(part: Part) -> list[Json]:
    """
    The wire part of an answer, or none.

    An answer may show another model's thoughts, without their signatures, and an `Opaque` that
    was decoded from something other than an object is that value again.
    """
    if isinstance(part, Opaque) and part.dialect == NAME:
        return [part.data]
    wire = show_thinking(part) if isinstance(part, Thinking) else encode_part(part, WarningList())
    return [] if wire is None else [wire]


# Text, and thinking: text parts that are marked as thoughts.


def _decode_text(fields: Fields) -> Text | Thinking:
    if fields.left.get("thought") is True:
        return decode_thinking(fields)
    text = fields.need("text")
    # An explicit default is written again.
    if "thought" in fields.left and fields.flag("thought") is False:
        fields.left["thought"] = False
    return Text(text=text, extra=extra_for(fields.left))


def decode_thinking(fields: Fields) -> Thinking:
    """A thought, with its signature."""
    text = fields.need("text")
    fields.take("thought")
    signature = fields.text(SIGNATURE)
    # An empty `extra` would not show that the thought is this API's own.
    return Thinking(text=text, signature=signature, extra={NAME: fields.left})


def encode_thinking(part: Thinking, warnings: WarningList) -> dict[str, Json] | None:
    """A thought of this API's own models; None, with a warning, for any other."""
    wire = show_thinking(part) if _is_native(part) else None
    if wire is None:
        reason = f"{warnings.target} accepts only its own thinking"
        warnings.add_here("foreign_thinking_dropped", reason=reason)
    return wire


def show_thinking(part: Thinking) -> dict[str, Json] | None:
    """A thought of any model, as an answer shows it; only this API's signatures are kept."""
    is_native = _is_native(part)
    if part.redacted or (part.text == "" and not is_native):
        return None
    wire: dict[str, Json] = {"text": part.text, "thought": True}
    if part.signature is not None and is_native:
        wire[SIGNATURE] = part.signature
    return restore(wire, part, NAME)


def is_signed(part: Text | Thinking) -> bool:
    """Whether it has a signature; a signed part is never joined with another."""
    if isinstance(part, Thinking):
        return part.signature is not None
    return extra_of(part, NAME).get(SIGNATURE) is not None


def _is_native(part: Thinking) -> bool:
    return NAME in part.extra or (not part.extra and part.data is None)


# Images, audio and documents <-> `inlineData` and `fileData`.


def decode_media(part: dict[str, Json], path: str = "") -> Part:
    """A part by its media type; a part that cannot be written back exactly becomes `Opaque`."""
    fields = Fields(part, path)
    inline, file = part.get("inlineData"), part.get("fileData")
    media = None
    # With `thought`, the image is a draft that the model made for itself.
    if not part.get("thought") and ABSENT not in part and None in (inline, file):
        media = _decode_file(fields) if inline is None else _decode_inline(fields)
    return media or Opaque(dialect=NAME, data=part)


def _decode_inline(fields: Fields) -> Part | None:
    blob = fields.fields("inlineData")
    if blob is None:
        return None
    media_type, base64 = blob.text("mimeType"), blob.text("data")
    data = None if base64 is None else decode_base64(base64)
    if not media_type or data is None:
        return None
    if encode_base64(data) != base64:  # the URL-safe alphabet, or no padding
        blob.left["data"] = base64
    if blob.left:
        fields.left["inlineData"] = blob.left
    if media_type == _PLAIN:
        try:
            return _make_media(media_type, fields, text=data.decode())
        except UnicodeDecodeError:
            pass
    return _make_media(media_type, fields, data=data)


def _decode_file(fields: Fields) -> Part | None:
    file = fields.fields("fileData")
    if file is None:
        return None
    url, media_type = file.text("fileUri"), take_text(file, "mimeType")
    if not url or url[:5].lower() == "data:":  # a data URL would be written as `inlineData`
        return None
    if file.left or media_type is None:  # even if empty: it keeps the encoder from guessing a type
        fields.left["fileData"] = file.left
    return _make_media(media_type, fields, url=url)


def _make_media(media_type: str | None, fields: Fields, **source: Any) -> Part:
    kind = (media_type or "").partition("/")[0].lower()
    extra = extra_for(fields.left)
    if kind == "image":
        return Image(media_type=media_type, extra=extra, **source)
    if kind == "audio":
        return Audio(media_type=media_type, extra=extra, **source)
    return Document(media_type=media_type, extra=extra, **source)


def encode_media(part: Image | Audio | Document, warnings: WarningList) -> dict[str, Json] | None:
    """The wire part; None, with a warning, if the API cannot reach the source."""
    if isinstance(part, Document) and part.file_name is not None:
        # `Blob.display_name` is «used in the Gemini calls only when server-side tools» are on.
        warnings.add_here("file_name_dropped")
    if isinstance(part, Image) and part.detail not in (None, "auto"):
        warnings.add_here("detail_dropped")
    data, media_type = part.data, part.media_type
    if part.url is not None:
        inline = parse_data_url(part.url)
        if inline is None:
            return _encode_file(part.url, part, warnings)
        data, media_type = inline[0], media_type or inline[1]
    elif part.file_id is not None:
        # A file of this API is named by its URI or by its name, `files/…`.
        if "://" in part.file_id or part.file_id.startswith("files/"):
            return _encode_file(part.file_id, part, warnings)
        warnings.media_dropped(part.kind, "files of another provider")
        return None
    elif isinstance(part, Document) and part.text is not None:
        data, media_type = part.text.encode("utf-8", "replace"), media_type or _PLAIN
    if data is None:
        warnings.media_dropped(part.kind, f"{part.kind} without a source")
        return None
    media_type = media_type or media_type_for(data, getattr(part, "file_name", None))
    extra = dict(extra_of(part, NAME))
    blob = take_nested(extra, "inlineData")
    base64 = blob.get("data")  # the text that was read, see `_decode_inline`
    if not isinstance(base64, str) or decode_base64(base64) != data:
        base64 = encode_base64(data)
    blob |= {"mimeType": media_type or _DEFAULT_TYPES[part.kind], "data": base64}
    return {"inlineData": blob, **extra}


def _encode_file(
    url: str, part: Image | Audio | Document, warnings: WarningList
) -> dict[str, Json]:
    extra = dict(extra_of(part, NAME))
    media_type = part.media_type
    if media_type is None and "fileData" not in extra:  # `FileData.mime_type` is «Required»
        media_type = media_type_for(b"", url.partition("?")[0].partition("#")[0])
        if not isinstance(part, Document) and not (media_type or "").startswith(part.kind):
            media_type = _DEFAULT_TYPES[part.kind]
        if media_type is not None:
            warnings.add_here("media_type_guessed", media_type=media_type)
    file = {**take_nested(extra, "fileData"), "fileUri": url}
    if media_type is not None:
        file["mimeType"] = media_type
    return {"fileData": file, **extra}


# Tool calls and results. `extra` carries the unread fields of the part and, under the name of the
# inner object, those of the inner object; `ABSENT` lists the fields that were left out.


def decode_tool_call(part: dict[str, Json], links: Links, path: str = "") -> ToolCall:
    """
    A tool call; one without an id is given one, which is not sent back.

    Seen in recordings: 278 of 309 tool calls of the models have no id.
    """
    fields = Fields(part, path)
    call = fields.fields("functionCall") or Fields({}, path)
    # A tool call without arguments may have no `args`; it is written as it was.
    mark_absent(fields.left, call.left, "args", "id")
    name = call.need("name")
    arguments = call.arguments("args")
    call_id = links.call(name, take_text(call, "id"))
    if call.left:
        fields.left["functionCall"] = call.left
    return ToolCall(id=call_id, name=name, arguments=arguments, extra=extra_for(fields.left))


def encode_tool_call(call: ToolCall) -> dict[str, Json]:
    """A tool call; its arguments must be an object, so other text goes into one under `input`."""
    arguments = input_object(call)
    if not call.extra:  # fast path
        return {"functionCall": {"name": call.name, "args": arguments, "id": call.id}}
    extra, inner, absent = _split_extra(call, "functionCall")
    wire: dict[str, Json] = {**inner, "name": call.name}
    if arguments or not ("args" in absent or "args" in inner):
        wire["args"] = arguments
    if not ("id" in absent or "id" in inner):
        wire["id"] = call.id
    return {"functionCall": wire, **extra}


def decode_result(part: dict[str, Json], links: Links, path: str = "") -> ToolResult:
    """A result; one without an id answers the first tool call of its name without an answer."""
    fields = Fields(part, path)
    inner = fields.fields("functionResponse") or Fields({}, path)
    mark_absent(fields.left, inner.left, "id", "name", _RESPONSE)
    name, call_id = inner.text("name"), take_text(inner, "id")
    response, items = inner.object(_RESPONSE), inner.array("parts")
    content, is_error = _read_response(response)
    if items:
        content = _decode_parts(response, content, items, inner.at("parts"))
    elif items is not None:
        inner.left["parts"] = items
    call_id = links.answer(name, call_id)
    if name is not None and links.name_of(call_id) not in (None, name):
        inner.left["name"] = name  # not the name of its tool call
    result = ToolResult(tool_call_id=call_id, content=content, is_error=is_error, name=name)
    if response is not None and not items and _write_response(result) != response:
        inner.left[_RESPONSE] = response  # a list that `ToolResult` took for canonical parts
    if inner.left:
        fields.left["functionResponse"] = inner.left
    return msgspec.structs.replace(result, extra=extra_for(fields.left)) if fields.left else result


def encode_result(
    result: ToolResult, calls: Mapping[str, ToolCall], warnings: WarningList
) -> dict[str, Json]:
    """A result, with the name of its tool call; its id is sent if the tool call's was."""
    call = calls.get(result.tool_call_id)
    if not result.extra:  # the usual case
        name = (call.name if call else result.name) or result.tool_call_id
        sent = {"id": result.tool_call_id} if call is None or _sends_id(call) else {}
        return {"functionResponse": {**sent, "name": name, **_encode_content(result, warnings)}}
    extra, inner, absent = _split_extra(result, "functionResponse")
    wire: dict[str, Json] = {}
    if not ("id" in absent or "id" in inner) and (call is None or _sends_id(call)):
        wire["id"] = result.tool_call_id
    if "name" in inner:
        wire["name"] = inner.pop("name")
    elif "name" not in absent:
        wire["name"] = (call.name if call else result.name) or result.tool_call_id
    has_original = _RESPONSE in inner
    original = inner.pop(_RESPONSE, None)
    if has_original and _has_content(original, result):
        wire[_RESPONSE] = original
    else:
        wire |= _encode_content(result, warnings)
        if _RESPONSE in absent and (result.content == "" or not wire[_RESPONSE]):
            del wire[_RESPONSE]
        elif has_original and original is None and not wire[_RESPONSE]:
            wire[_RESPONSE] = None
    return {"functionResponse": {**inner, **wire}, **extra}


def _split_extra(
    part: ToolCall | ToolResult, key: str
) -> tuple[dict[str, Json], dict[str, Json], Collection[str]]:
    """The unread fields of the part and of its inner object, and the absent ones."""
    if not part.extra:  # fast path
        return {}, {}, ()
    extra = dict(extra_of(part, NAME))
    return extra, take_nested(extra, key), take_absent(extra)


def _sends_id(call: ToolCall) -> bool:
    if not call.extra:
        return True
    _, inner, absent = _split_extra(call, "functionCall")
    return not ("id" in absent or "id" in inner)


# The `response` object. «Use "output" key to specify function output and "error" key to specify
# error details (if any). If "output" and "error" keys are not specified, then whole "response" is
# treated as function output.» A result that looks like a wrapper is wrapped once more.


def _read_response(response: UncheckedJson) -> tuple[UncheckedJson, bool]:
    """The content of a result, and whether it is an error."""
    if response is None:
        return "", False
    if not _is_wrapper(response):
        return response, False
    if "error" in response:
        return response["error"], True
    output = response["output"]
    if isinstance(output, dict) and not _is_wrapper(output):
        return response, False
    return output, False


def _write_response(result: ToolResult) -> dict[str, Json]:
    content = "" if result.parts is not None else result.content
    if result.is_error:
        return {"error": content}
    if isinstance(content, dict) and _read_response(content)[0] is content:
        return content
    return {"output": content}


def _has_content(response: Json, result: ToolResult) -> bool:
    content, is_error = _read_response(response)
    decoded = ToolResult(tool_call_id="", content=content)
    return is_error is result.is_error and decoded.content == result.content


def _is_wrapper(value: Json) -> bool:
    return isinstance(value, dict) and len(value) == 1 and ("output" in value or "error" in value)


# Results with media: the text is in `response`, which is required, the media are in `parts`.


def _decode_parts(
    response: dict[str, Json] | None,
    content: Json,
    items: list[UncheckedJson],
    path: str,
) -> tuple[Part, ...]:
    media = [decode_media(item, f"{path}[{i}]") for i, item in enumerate(items)]
    if not response:
        return tuple(media)
    if isinstance(content, str):
        return (Text(text=content), *media)
    # other APIs get JSON text, this one gets the object back
    return (Text(text=dump_text(response), extra={NAME: {_RESPONSE: response}}), *media)


def _encode_content(result: ToolResult, warnings: WarningList) -> dict[str, Json]:
    """`response`, and `parts` if there are media."""
    if result.parts is None:
        return {_RESPONSE: _write_response(result)}
    texts: list[str] = []
    media: list[dict[str, Json]] = []
    response: dict[str, Json] | None = None
    for warnings.inner, part in enumerate(result.parts):
        if isinstance(part, (Text, Refusal)):
            original = extra_of(part, NAME).get(_RESPONSE)
            if isinstance(original, dict) and not texts and dump_text(original) == part.text:
                response = original
            else:
                texts.append(part.text)
        elif isinstance(part, (Image, Audio, Document)):
            wire = encode_media(part, warnings)
            if wire is None:  # the model is told that something is missing
                texts.append(media_note(part).text)
            else:
                media.append(wire)
        elif isinstance(part, Opaque) and part.dialect == NAME and isinstance(part.data, dict):
            media.append(part.data)
        else:
            place = "in a tool result"
            warnings.add_here("misplaced_part_dropped", part=part.kind, place=place)
    warnings.inner = None
    if texts or (response is None and (result.is_error or not media)):
        lines = [] if response is None else [dump_text(response)]
        response = {"error" if result.is_error else "output": "\n".join([*lines, *texts])}
    return {_RESPONSE: response or {}, **({"parts": media} if media else {})}
