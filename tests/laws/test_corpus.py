"""The laws over every recorded exchange."""

import random

import pytest

from interlingua import dialects
from interlingua.conformance.laws import (
    LAWS,
    check,
    chunking_never_shows,
    cut_is_an_error,
    errors_always_decode,
)
from support import corpus
from support.exceptions import EXCEPTIONS, NARROWED, REPAIRED
from support.run_profile import FULL

pytestmark = pytest.mark.skipif(not corpus.is_here(), reason="no recorded exchanges at hand")

CHUNKING = "1 chunking never shows"
CUT = "5 a cut is an error"
UNKNOWN = "6 the unknown survives"
ERRORS = "7 errors always decode"
CUT_SAMPLE = 24 if FULL else 8
CUT_BYTES = 6_000
CHUNK_CUTS = 3
BYTEWISE_SHARE = 0.05


def chunking_in_a_few_places(dialect, case):
    """Law 1 with a few cuts, and byte by byte on a small share of the records."""
    source = random.Random(case.name)
    if case.stream is None or len(case.stream) <= CHUNK_CUTS or source.random() < BYTEWISE_SHARE:
        return chunking_never_shows(dialect, case)
    cuts = source.sample(range(1, len(case.stream)), CHUNK_CUTS)
    return chunking_never_shows(dialect, case, cuts)


def errors_of_one_status(dialect, case):
    """Law 7 with one status for a record that is no error, and with three for one that is."""
    statuses = [random.Random(case.name).choice((400, 429, 500))] if case.status < 400 else None
    return errors_always_decode(dialect, case, statuses)


CHEAPER = {CHUNKING: chunking_in_a_few_places, ERRORS: errors_of_one_status}
TRIED = LAWS if FULL else {**LAWS, **CHEAPER}


@pytest.mark.parametrize("dialect", dialects.names())
@pytest.mark.parametrize("law", [law for law in TRIED if law != CUT])
def test_law_holds_on_every_record(dialect, law):
    """Each law holds on every record but the listed ones, and on 99.5 % in any case."""
    cases = corpus.cases(dialect)

    report = check(dialects.get(dialect), cases, {law: TRIED[law]})

    broken = {violation.case: violation.details for violation in report.violations}
    listed = {name for (about, name) in EXCEPTIONS if about == law} & {c.name for c in cases}
    assert {name: broken[name][:2] for name in sorted(broken.keys() - listed)} == {}
    assert listed - broken.keys() == set(), "these keep the law now; take them off the list"
    assert len(broken) <= 0.005 * len(cases)


@pytest.mark.parametrize("dialect", dialects.names())
def test_cut_at_every_byte(dialect):
    """A sample of streams, cut at each of their bytes, never gives a short success."""
    short = [c for c in corpus.cases(dialect) if c.stream and len(c.stream) <= CUT_BYTES]
    sample = random.Random(dialect).sample(short, min(CUT_SAMPLE, len(short)))

    broken = {
        case.name: found
        for case in sample
        if (found := cut_is_an_error(dialects.get(dialect), case))
    }

    assert {
        name: found[:2] for name, found in broken.items() if (CUT, name) not in EXCEPTIONS
    } == {}


@pytest.mark.parametrize("dialect", dialects.names())
def test_no_loss_is_warned_of(dialect):
    """What came from a dialect is said in it again without a single warning."""
    spoken = dialects.get(dialect)
    warned = {}
    for case in corpus.cases(dialect):
        if case.call is not None:
            request = spoken.decode_request(case.call)
            warnings = spoken.encode_request(request, stream=case.call.stream).warnings
            if warnings:
                warned[case.name] = [warning.code for warning in warnings]

    expected = REPAIRED.keys() | NARROWED.keys()
    assert warned.keys() == expected & {case.name for case in corpus.cases(dialect)}


def test_exceptions_are_few_and_reasoned():
    """The list stays short, and each entry says why."""
    assert len(EXCEPTIONS) <= 20
    assert all(len(reason) > 20 for reason in EXCEPTIONS.values())
