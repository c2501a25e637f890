"""The made-up values are worth testing with."""

from hypothesis import given, settings

from interlingua.conformance import strategies
from interlingua.spec.json_form import from_json, to_json
from interlingua.spec.request import Request
from interlingua.spec.response import Response
from support.run_profile import examples


@given(strategies.requests())
@settings(max_examples=examples(50), deadline=None)
def test_requests_are_canonical(request):
    """Each is a value of the language: it survives JSON."""
    assert from_json(to_json(request), Request) == request


@given(strategies.responses())
@settings(max_examples=examples(50), deadline=None)
def test_responses_are_canonical(response):
    """The same for responses."""
    assert from_json(to_json(response), Response) == response


def test_they_reach_the_interesting_corners():
    """Tool rounds, failed results, media and a zero setting do occur."""
    seen = set()

    @settings(max_examples=150, database=None, derandomize=True, deadline=None)
    @given(strategies.requests())
    def look(request):
        parts = [part for message in request.messages for part in message.content]
        seen.update(part.kind for part in parts)
        seen.update("failed" for part in parts if getattr(part, "is_error", False))
        seen.update(["zero"] if request.temperature == 0 else [])

    look()

    assert seen >= {
        "text",
        "image",
        "document",
        "audio",
        "tool_call",
        "tool_result",
        "failed",
        "zero",
    }
