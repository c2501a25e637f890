"""Running the laws and counting."""

import json
from types import SimpleNamespace
from xml.etree import ElementTree as ET

from interlingua import dialects
from interlingua.conformance.laws import LAWS, Case, check, read_cases
from interlingua.conformance.report import Report, as_json, as_junit, as_markdown, as_text
from interlingua.spec.contracts import WireCall
from interlingua.spec.events import ProviderEvent
from support import corpus

HI = {"role": "user", "content": "Hi."}
DIALECT = dialects.get("anthropic_messages")


def test_all_is_well():
    """Every law on every case, counted."""
    cases = list(read_cases(corpus.FIXTURES / "anthropic_messages"))
    report = check(DIALECT, cases)

    assert (
        str(report)
        == f"anthropic_messages: {9 * len(cases)} checks on {len(cases)} cases, 0 broken"
    )


def test_an_exception_is_a_violation():
    """What escapes from a dialect is told, with the case's name."""
    report = check(DIALECT, [Case(name="odd", call=WireCall(body=5))])

    assert {violation.case for violation in report.violations} == {"odd"}
    assert "raised InvalidRequestError: body: expected an object" in str(report)


def test_scores_are_counted_by_law():
    """A law that has nothing to check in a case is not applicable there."""
    request = Case(
        name="request", call=WireCall(body={"model": "m", "max_tokens": 9, "messages": [HI]})
    )
    report = check(DIALECT, [request, Case(name="odd", call=WireCall(body=5))])
    scores = {score.law: score for score in report.scores}

    assert scores["1 chunking never shows"].status == "not applicable"
    assert scores["1 chunking never shows"].not_applicable == 2
    assert (scores["3 round trip"].passed, scores["3 round trip"].failed) == (1, 1)
    assert scores["7 errors always decode"].passed == 2
    assert report.percent == 100 * 5 / 8
    assert Report(dialect="d", cases=0, checks=0, violations=()).percent == 100


def test_the_forms_of_a_report():
    """Text, Markdown, JSON and JUnit all have the score and the findings."""
    report = check(DIALECT, [Case(name="odd\x00", call=WireCall(body=5))])
    document = json.loads(json.dumps(as_json(report)))
    suite = ET.fromstring(as_junit([report]))[0]  # noqa: S314 -- our own

    assert "required: encoding what was decoded gives an equivalent body." in as_text(report)
    assert as_text(report).startswith("anthropic_messages: 25 %")
    assert "| 3 round trip |  | 1 |  |" in as_markdown(report)
    assert document["percent"] == 25
    assert {row["law"] for row in document["scores"]} == set(LAWS)
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("9", "3", "5")
    assert suite.findall("testcase/failure")[0].get("message")


def _broken(**changes):
    return SimpleNamespace(
        **{name: getattr(DIALECT, name) for name in dir(DIALECT) if name[0] != "_"} | changes
    )


class Silent:
    """A decoder that accepts every end, and counts its frames."""

    def __init__(self, inner, mode):
        self.inner, self.mode, self.count = inner, mode, 0

    def feed(self, frame):
        self.count += 1
        events = self.inner.feed(frame)
        return events[:-1] if self.mode == "drop" and self.count == 1 else events

    def finish(self):
        return []


def test_a_broken_dialect_fails_each_law():
    """For each law there is a fault that breaks it."""
    cases = [case for case in read_cases(corpus.FIXTURES / "anthropic_messages") if case.stream][:2]
    calls = [case for case in read_cases(corpus.FIXTURES / "anthropic_messages") if case.call][:2]
    numbers = iter(range(1_000_000))
    decoder = DIALECT.stream_decoder
    faults = {
        "1 chunking never shows": {
            "stream_decoder": lambda **_: _Numbered(decoder(), next(numbers))
        },
        "2 a stream equals the whole": {
            "encode_response": lambda response, request=None: {
                **DIALECT.encode_response(response, request),
                "content": [],
            }
        },
        "3 round trip": {"encode_request": lambda *_, **__: WireCall(body={"model": "other"})},
        "3 round trip of streams": {
            "stream_encoder": lambda request: _Truncated(DIALECT.stream_encoder(request))
        },
        "5 a cut is an error": {"stream_decoder": lambda **_: Silent(decoder(), "end")},
        "6 the unknown survives": {
            "encode_request": lambda *_, **__: WireCall(body={"model": "other"})
        },
        "7 errors always decode": {"encode_error": lambda _: (200, {}, {})},
        "8 the grammar holds": {"stream_decoder": lambda **_: Silent(decoder(), "drop")},
        "10 encoding is pure": {
            "encode_request": lambda *_, **__: WireCall(body={"n": next(numbers)})
        },
    }
    assert set(faults) == set(LAWS)
    for law, changes in faults.items():
        report = check(_broken(**changes), cases + calls, {law: LAWS[law]})
        assert report.scores[0].failed, law
        assert report.violations[0].required, law


class _Numbered(Silent):
    def __init__(self, inner, number):
        super().__init__(inner, "")
        self.number = number

    def feed(self, frame):
        events = super().feed(frame)
        return (
            [*events, ProviderEvent(dialect="x", data=self.number)] if self.count == 1 else events
        )


class _Truncated(Silent):
    def __init__(self, inner):
        super().__init__(inner, "")

    def feed(self, frame):
        return [] if type(frame).__name__ == "TextDelta" else super().feed(frame)

    def finish(self):
        return self.inner.finish()
