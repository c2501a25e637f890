"""Personal data in text: what is found, and what is not."""

import pytest

from interlingua.wire.personal_data import FINDERS, LONGEST

FOUND = {
    "email": ["ada@example.com", "a.b+c%d_e-f@mail.example.co.uk", "müller@example.de", "1@2.3"],
    "phone": [
        "+49 30 1234567",
        "+1 (555) 123-4567",
        "0049-30-1234567",
        "+33612345678",
        "(555) 123-4567",
        "555-123-4567",
        "555.123.4567",
    ],
    "card": [
        "4111111111111111",
        "4111 1111 1111 1111",
        "5555-5555-5555-4444",
        "378282246310005",
        "3782 822463 10005",
        "6011000990139424",
        "4222222222222",
    ],
    "iban": [
        "DE89370400440532013000",
        "DE89 3704 0044 0532 0130 00",
        "GB82 WEST 1234 5698 7654 32",
        "NO9386011117947",
        "FR1420041010050500013M02606",
        "MT84MALT011000012345MTLCAST001S",
    ],
}
NOT_FOUND = {
    "email": ["a @ b.c", "@handle", "ada@localhost", "a@", "@.", "5 @ 3.00"],
    "phone": ["2024-01-02", "1234567", "12:30:45", "+1", "version 10.2.33", "+123"],
    "card": ["4111111111111112", "1234567890123", "41111111111111111111", "0000 0000 0000 0000"],
    "iban": ["DE89370400440532013001", "DE8937040044053201300", "XX89370400440532013000"],
}
CASES = [(kind, text) for kind, texts in FOUND.items() for text in texts]


def found(kind, text):
    return [text[start:end] for start, end in FINDERS[kind](text)]


@pytest.mark.parametrize(("kind", "text"), CASES)
@pytest.mark.parametrize("frame", ["{}", "It is {}, or so.", "({})", "以前{}以后", "A {} B {} C"])
def test_it_is_found_wherever_it_stands(kind, text, frame):
    """Alone, in a sentence, in brackets, and in a script without spaces."""
    assert found(kind, frame.replace("{}", text)) == [text] * frame.count("{}")


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in NOT_FOUND.items() for text in texts]
)
def test_other_text_is_not_found(kind, text):
    """A wrong check digit, another length, or another form."""
    assert found(kind, text) == []


def test_what_does_not_pass_the_check_hides_nothing():
    """A number that begins within another one is found."""
    assert found("card", "1234 4111 1111 1111 1111 12") == ["4111 1111 1111 1111"]
    assert found("iban", "AB12 DE89 3704 0044 0532 0130 00 AND MORE") == [
        "DE89 3704 0044 0532 0130 00"
    ]


@pytest.mark.parametrize(("kind", "text"), [case for case in CASES if case[0] != "email"])
def test_no_number_is_longer_than_the_limit(kind, text):
    """`LONGEST` counts separators."""
    spaced = " ".join(text)

    assert all(end - start < LONGEST for start, end in FINDERS[kind](spaced))
