"""Bodies, ids and losses."""

import pytest
from hypothesis import given

from interlingua.conformance.strategies import json_objects, json_values
from interlingua.spec.errors import DecodeError
from interlingua.spec.response import Response
from interlingua.wire.fields import carried_body, carry_body, whole_object
from interlingua.wire.tool_calls import counting_ids


@given(json_values)
def test_body_is_carried_whole(body):
    """A body with no canonical form comes back the same, to its dialect only."""
    response = carry_body("openai_chat", body)

    assert carried_body(response, "openai_chat") == body
    assert carried_body(response, "gemini_generate") is None
    assert response.raw == body
    assert response.message.content == ()


@given(json_objects)
def test_object_is_itself(body):
    """A body that is an object is taken as it is."""
    assert whole_object(body) is body


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"error": {"message": "no"}}, "error"),
        ({"error": "no"}, "error"),
        ({"error": None}, "other"),
        ({"error": {}}, "other"),
        ({"input_tokens": 5}, "other"),
        (None, "other"),
        ([], "other"),
    ],
)
def test_reason_of_a_carried_body(body, reason):
    """A carried body finishes with `error` if it carries one."""
    assert carry_body("openai_chat", body).finish_reason.reason == reason


@pytest.mark.parametrize("extra", [{}, {"openai_chat": 5}, {"openai_chat": {"a": 1}}])
def test_no_body_carried(extra):
    """A response that carries no body has none."""
    assert carried_body(Response(extra=extra), "openai_chat") is None


@pytest.mark.parametrize("body", [None, [], "text", 5])
def test_body_that_is_no_object(body):
    """Anything but an object is refused by its type."""
    with pytest.raises(DecodeError, match=f"Expected a JSON object.*{type(body).__name__}"):
        whole_object(body)


def test_counting_ids():
    """Ids count from one, each counter for itself."""
    one, other = counting_ids(), counting_ids()

    assert [one(), one(), one()] == ["1", "2", "3"]
    assert other() == "1"
