"""Sessions against the simulator."""

from interlingua.api.session.session import Session
from interlingua.api.tools.tool import tool
from interlingua.spec.content import Document, Image, ToolCall, ToolResult
from support.runs import named


@tool
def look(city: str) -> str:
    """Look at the weather."""
    return f"{city}: 4 C, rain"


def session_of(client, provider, **options):
    options.setdefault("tools", [look])
    return Session(named(provider), client=client, **options)


def calls_in(messages):
    return [part for message in messages for part in message.content if type(part) is ToolCall]


def results_in(messages):
    return [part for message in messages for part in message.content if type(part) is ToolResult]


def sent_ids(exchange):
    """The ids of calls and of results in a request, as they were on the wire."""
    messages = exchange.request.messages
    return [call.id for call in calls_in(messages)], [r.tool_call_id for r in results_in(messages)]


def in_words(messages):
    """A history without what differs by provider: ids, metadata, marks."""
    words = []
    names = {}
    for message in messages:
        parts = []
        for part in message.content:
            if isinstance(part, ToolCall):
                number = names.setdefault(part.id, len(names))
                parts.append(("call", number, part.name, part.arguments))
            elif isinstance(part, ToolResult):
                parts.append(("result", names.get(part.tool_call_id), part.content, part.is_error))
            elif isinstance(part, Image | Document):
                parts.append((part.kind, part.media_type, part.data))
            else:
                parts.append((part.kind, part.text))
        words.append((message.role, parts))
    return words
