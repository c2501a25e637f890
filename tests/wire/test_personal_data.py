"""Personal data in text: what is found, and what is not."""

import pytest

from interlingua.wire.personal_data import FINDERS, LONGEST

FOUND = {
    "email": [
        "ada@example.com",
        "a.b+c%d_e-f@mail.example.co.uk",
        "müller@example.de",
        "1@2.3",
        "ada%40example.com",
        "ada%40example%2Ecom",
        "ada&#64;example.com",
        "ada&commat;example&period;com",
        "ada\\u0040example.com",
        "ada @ example.com",
        "ada@ example.com",
        "ada @ example . com",
        "ada (at) example (dot) com",
        "ada[at]mail[dot]example[dot]com",
        "ada at example dot com",
        "Ada AT mail DOT example DOT com",
        "a.b {at} example.com",
    ],
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
        "4222 222 222 222",
        "4111.1111.1111.1111",
        "4111\u00a01111\u00a01111\u00a01111",
        "4111 - 1111 - 1111 - 1111",
        "4111/1111/1111/1111",
        "3056 930902 5904",
        "6304 0000 0000 0000 000",
    ],
    "iban": [
        "DE89370400440532013000",
        "DE89 3704 0044 0532 0130 00",
        "GB82 WEST 1234 5698 7654 32",
        "NO9386011117947",
        "FR1420041010050500013M02606",
        "MT84MALT011000012345MTLCAST001S",
        "de89 3704 0044 0532 0130 00",
        "DE89-3704-0044-0532-0130-00",
        "DE89.3704.0044.0532.0130.00",
        "DE89\u00a03704\u00a00044\u00a00532\u00a00130\u00a000",
        "DE 89 370 400 44 0532 0130 00",
    ],
    "ssn": ["219-09-9999", "219 09 9999"],
    "ip": [
        "192.0.2.1",
        "255.255.255.255",
        "2001:db8::1",
        "2001:0db8:85a3:0000:0000:8a2e:0370:7334",
        "fe80::1",
        "::1",
        "::ffff:192.0.2.1",
    ],
}
NOT_FOUND = {
    "ssn": [
        "219099999",
        "000-12-3456",
        "666-12-3456",
        "912-12-3456",
        "219-00-9999",
        "219-09-0000",
        "219-09 9999",
        "1219-09-9999",
        "219-09-99991",
        "2024-01-02",
    ],
    "ip": [
        "1.2.3",
        "256.1.1.1",
        "1.2.3.4.5",
        "v1.2.3.4",
        "12:30:45",
        "::",
        "std::vector",
        "a:b:c",
        "00:1A:2B:3C:4D:5E",
        "1:2:3:4:5:6:7:8:9",
    ],
    "email": [
        "a @ b.c",
        "@handle",
        "ada@localhost",
        "a@",
        "@.",
        "5 @ 3.00",
        "hello @user.name",
        "look at example.com",
        "meet at noon dot",
        "50%40",
        "a%40b",
    ],
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
