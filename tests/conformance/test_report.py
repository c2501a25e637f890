"""Running the laws and counting."""

from interlingua import dialects
from interlingua.conformance.laws import Case, check, read_cases
from interlingua.spec.contracts import WireCall
from support import corpus

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
