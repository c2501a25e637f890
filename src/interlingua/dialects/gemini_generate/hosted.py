"""Tools that Gemini runs, and the parts of their calls and results."""

from __future__ import annotations

from typing import Any

from interlingua.dialects.gemini_generate.facts import NAME
from interlingua.prepare.hosted_tools import HostedForm, rename, take
from interlingua.spec.content import Opaque, UncheckedJson
from interlingua.spec.request import BuiltinTool
from interlingua.wire.fields import text_or_none

KINDS = {
    "googleSearch": "web_search",
    "codeExecution": "code_execution",
    "urlContext": "url_context",
    "fileSearch": "file_search",
    "computerUse": "computer",
}
"""The canonical name of each hosted tool."""
_STORES = {"stores": "fileSearchStoreNames", "max_results": "topK"}
_BROWSER = "ENVIRONMENT_BROWSER"
_TYPES = {
    "GOOGLE_SEARCH_WEB": "web_search",
    "URL_CONTEXT": "url_context",
    "FILE_SEARCH": "file_search",
}
_WIRE_TYPES = {name: kind for kind, name in _TYPES.items()}


def _file_search(options: dict[str, UncheckedJson]) -> dict[str, UncheckedJson]:
    return {"fileSearch": take(options, **_STORES)}


def _computer_use(options: dict[str, UncheckedJson]) -> dict[str, UncheckedJson]:
    if options.get("environment") == "browser":
        del options["environment"]
    return {"computerUse": {"environment": _BROWSER}}


def _plain(kind: str) -> HostedForm:
    return lambda _: {kind: {}}


HOSTED: dict[str, HostedForm] = {
    "code_execution": _plain("codeExecution"),
    "computer": _computer_use,
    "file_search": _file_search,
    "url_context": _plain("urlContext"),
    "web_search": _plain("googleSearch"),
}


def decode_hosted(tool: UncheckedJson) -> BuiltinTool:
    """The tool verbatim, with its canonical name and options if it is one alone."""
    names = [KINDS[key] for key in tool if key in KINDS] if isinstance(tool, dict) else []
    if len(names) != 1 or len(tool) != 1:
        return BuiltinTool(dialect=NAME, data=tool)
    inner = next(iter(tool.values()))
    options = dict(inner) if isinstance(inner, dict) else {}
    rename(options, **_STORES)
    rename(options, stores="file_search_store_names", max_results="top_k")
    if options.get("environment") == _BROWSER:
        options["environment"] = "browser"
    return BuiltinTool(dialect=NAME, data=tool, name=names[0], options=options)


# Calls and results.


def hosted_use(part: dict[str, UncheckedJson]) -> Opaque:
    """A part without a canonical form; the call or result of a hosted tool is described."""
    use: dict[str, Any] = {}
    match part:
        case {"executableCode": dict(code)}:
            use = {"tool": "code_execution", "input": {"code": code.get("code")}}
            use["tool_call_id"] = text_or_none(code.get("id"))
        case {"codeExecutionResult": dict(result)}:
            use = {"tool": "code_execution", "output": result.get("output") or ""}
            use["tool_call_id"] = text_or_none(result.get("id"))
        case {"toolCall": dict(call)}:
            use = {"tool": _tool_of(call), "tool_call_id": text_or_none(call.get("id"))}
            use["input"] = call.get("args") or {}
        case {"toolResponse": dict(result)}:
            use = {"tool": _tool_of(result), "tool_call_id": text_or_none(result.get("id"))}
            use["output"] = result.get("response") or {}
    return Opaque(dialect=NAME, data=part, **use)


def _tool_of(fields: dict[str, UncheckedJson]) -> str | None:
    kind = text_or_none(fields.get("toolType"))
    return None if kind is None else _TYPES.get(kind, kind.lower())


def hosted_parts(part: Opaque) -> tuple[Opaque, ...]:
    """The parts of a call and its result that a script describes."""
    called = part.input if isinstance(part.input, dict) else {}
    if part.tool == "code_execution":
        code = {"language": "PYTHON", "code": called.get("code", "")}
        result = {"outcome": "OUTCOME_OK", "output": part.output or ""}
        return hosted_use({"executableCode": code}), hosted_use({"codeExecutionResult": result})
    if part.tool not in _WIRE_TYPES:
        return ()
    head = {"id": part.tool_call_id, "toolType": _WIRE_TYPES[part.tool]}
    answer = {"results": part.output or []}
    return (
        hosted_use({"toolCall": {**head, "args": called}}),
        hosted_use({"toolResponse": {**head, "response": answer}}),
    )
