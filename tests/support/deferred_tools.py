"""An Anthropic request with deferred tools, one of which has been loaded."""

SCHEMA = {"type": "object"}


def deferred_request(prompt, search):
    """A body in which the tool `search` has named the tool `send`, and not the tool `lost`."""
    found = [{"type": "tool_reference", "tool_name": "send"}]
    result = {"type": "tool_result", "tool_use_id": "t1", "content": found}
    return {
        "model": "m",
        "max_tokens": 9,
        "messages": [
            {"role": "user", "content": prompt},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "t1", "name": search, "input": {}}],
            },
            {"role": "user", "content": [result]},
        ],
        "tools": [
            {"name": search, "input_schema": SCHEMA},
            {"name": "lost", "input_schema": SCHEMA, "defer_loading": True},
            {"name": "send", "input_schema": SCHEMA, "defer_loading": True},
        ],
    }
