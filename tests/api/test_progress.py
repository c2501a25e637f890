"""What a reader has seen."""

import pytest

from interlingua.api.progress import Progress
from interlingua.spec.content import Text
from interlingua.spec.errors import StreamError
from interlingua.spec.events import Finish, StreamStart, TextDelta, TextEnd, TextStart
from interlingua.spec.messages import Message
from interlingua.spec.response import FinishReason, Response

ANSWER = Response(message=Message.assistant("ab"), finish_reason=FinishReason(reason="stop"))
EVENTS = [
    StreamStart(),
    TextStart(id="t", index=0),
    TextDelta(id="t", index=0, delta="a"),
    TextDelta(id="t", index=0, delta="b"),
    TextEnd(id="t", index=0, part=Text(text="ab")),
    Finish(finish_reason=FinishReason(reason="stop"), response=ANSWER),
]


@pytest.mark.parametrize("looks", [range(len(EVENTS)), [2], [3, 5], [5]], ids=repr)
def test_looking_at_it(looks):
    """Whenever somebody looks, it is what the events so far say; None before the first."""
    progress = Progress()
    assert progress.partial() is None
    seen = {}
    for place, event in enumerate(EVENTS):
        progress.feed(event)
        if place in looks:
            seen[place] = progress.partial().text

    texts = ["", "", "a", "ab", "ab", "ab"]
    assert seen == {place: texts[place] for place in looks}
    assert progress.partial().text == "ab"


def test_the_end():
    """The last answer is there when the end was seen, not before."""
    progress = Progress()
    for event in EVENTS[:-1]:
        progress.feed(event)
    with pytest.raises(StreamError):
        progress.response()
    progress.feed(EVENTS[-1])

    assert progress.response() is ANSWER
