"""
Finds e-mail addresses, phone numbers, numbers of cards, accounts and insurances, and IP addresses.

Every function returns the places as pairs of start and end, in order. The time grows in proportion
to the text, whatever it contains. What comes before a match never makes it one, so that a text may
be cut before a word or a match.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from ipaddress import AddressValueError, IPv6Address
from typing import TypeAlias

Places: TypeAlias = list[tuple[int, int]]
Finder: TypeAlias = Callable[[str], Places]

# Latin letters only: in a script without spaces, an address has no other beginning.
_NAME = r"A-Za-z0-9\u00c0-\u024f_"
_find_emails = re.compile(
    rf"(?<![{_NAME}.%+\-])[{_NAME}.%+\-]++@[{_NAME}\-]++(?:\.[{_NAME}\-]++)+"
).finditer
# As in URLs, in HTML and in JSON.
_find_encoded_emails = re.compile(
    rf"(?<![{_NAME}.+\-])[{_NAME}.+\-]{{1,64}}+(?i:%40|&#64;|&#x40;|&commat;|\\u0040)"
    rf"[{_NAME}\-]++(?:(?i:\.|%2e|&#46;|&#x2e;|&period;|\\u002e)[{_NAME}\-]++)+"
).finditer
# Written apart, so that no program finds them: `ada @ example . com`, `ada (at) example (dot) com`,
# `ada at example dot com`. The last part has letters only: `5 @ 3.00` is a price.
_AT = r"(?: @ |@ | ?[\[({<] ?(?:@|(?i:at)) ?[\])}>] ?)"
_DOT = r"(?:\.| \. | (?i:dot) | ?[\[({<] ?(?:\.|(?i:dot)) ?[\])}>] ?)"
_find_spaced_emails = re.compile(
    rf"(?<![{_NAME}.%+\-])[{_NAME}.%+\-]{{1,30}}+(?:"
    rf"{_AT}[{_NAME}\-]{{1,24}}+(?:{_DOT}[{_NAME}\-]{{1,24}}+){{0,2}}{_DOT}[A-Za-z]{{2,24}}+"
    rf"| (?i:at) [{_NAME}\-]{{1,24}}+(?: (?i:dot) [{_NAME}\-]{{1,24}}+){{0,2}}"
    rf" (?i:dot) [A-Za-z]{{2,24}}+)(?![{_NAME}\-])"
).finditer
# With a country code, or in the American form.
_find_phones = re.compile(
    r"(?<![A-Za-z0-9+])(?:\+|00)[1-9][0-9]{0,2}[ ./()\-]{0,2}(?:[0-9][ ./()\-]{0,2}){5,13}[0-9]"
    r"(?![0-9])"
    r"|(?<![A-Za-z0-9])(?:\([0-9]{3}\) ?|[0-9]{3}[.\-])[0-9]{3}[.\-][0-9]{4}(?![0-9])"
).finditer
# In one piece, or in the groups that are printed on cards: 4-4-4-4, with a rest of 1 to 3 digits;
# 4-6-5 and 4-6-4; 4-3-3-3.
_search_card = re.compile(
    r"(?<![0-9])(?:[2-6][0-9]{12,18}"
    r"|(?P<long>[2-6][0-9]{3}( - |[ \-./\u00a0\u202f])[0-9]{4}\2[0-9]{4}\2[0-9]{4})"
    r"(?:\2[0-9]{1,3})?"
    r"|3[0-9]{3}( - |[ \-./\u00a0\u202f])[0-9]{6}\3[0-9]{4,5}"
    r"|4[0-9]{3}( - |[ \-./\u00a0\u202f])[0-9]{3}\4[0-9]{3}\4[0-9]{3})(?![0-9])"
).search
_search_iban = re.compile(
    r"(?<![A-Za-z0-9])[A-Za-z]{2}[ \-.\u00a0\u202f]?[0-9]{2}"
    r"(?:[ \-.\u00a0\u202f]?[A-Za-z0-9]){11,30}"
).search
_find_ssns = re.compile(
    r"(?<![A-Za-z0-9\-])(?!000|666|9)[0-9]{3}([ \-])(?!00)[0-9]{2}\1(?!0000)[0-9]{4}"
    r"(?![A-Za-z0-9\-])"
).finditer
_find_ipv4 = re.compile(
    r"(?<![A-Za-z0-9.])(?:(?:25[0-5]|2[0-4][0-9]|1?[0-9]{1,2})\.){3}"
    r"(?:25[0-5]|2[0-4][0-9]|1?[0-9]{1,2})(?![0-9]|\.[0-9])"
).finditer
_find_ipv6 = re.compile(
    r"(?<![A-Za-z0-9:.])[0-9A-Fa-f:]{3,39}+(?:\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3})?"
).finditer

LONGEST = 160
"""
Nothing that has spaces is longer, with what follows it.

This is what decides how much of a stream is held back.
"""

_IBAN_LENGTHS: Mapping[str, int] = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22,
    "BR": 29, "BY": 28, "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "DO": 28,
    "EE": 20, "EG": 29, "ES": 24, "FI": 18, "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23,
    "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26,
    "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20,
    "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MR": 27, "MT": 31, "MU": 30,
    "NL": 18, "NO": 15, "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22,
    "SA": 24, "SC": 31, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "ST": 25, "SV": 28, "TL": 23,
    "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20,
}  # fmt: skip


def find_emails(text: str) -> Places:
    """Addresses such as `ada@example.com`, also encoded (`ada%40example.com`) or written apart."""
    places = {match.span() for match in _find_emails(text)} if "@" in text else set()
    places |= {match.span() for match in _find_encoded_emails(text)}
    places |= {match.span() for match in _find_spaced_emails(text)}
    return sorted(places)


def find_phones(text: str) -> Places:
    """Numbers with a country code (`+49 30 1234567`), or as in `(555) 123-4567`."""
    return [match.span() for match in _find_phones(text)]


def find_cards(text: str) -> Places:
    """Card numbers of 13 to 19 digits, also in groups, whose check digit is right."""
    return list(_checked(text, _search_card, _end_of_card))


def find_ibans(text: str) -> Places:
    """Numbers of bank accounts whose check digits are right, also in groups."""
    return list(_checked(text, _search_iban, _end_of_iban))


def find_ssns(text: str) -> Places:
    """Social security numbers of the USA, such as `219-09-9999`, which were given out."""
    return [match.span() for match in _find_ssns(text)]


def find_ips(text: str) -> Places:
    """Addresses such as `192.0.2.1` and `2001:db8::1`."""
    longer: Places = []
    if "::" in text or text.count(":") > 6:
        longer = [match.span() for match in _find_ipv6(text) if _is_ipv6(match)]
    ends = {end for _, end in longer}  # an address of the new form may end in one of the old
    shorter = (match.span() for match in _find_ipv4(text))
    return sorted((*longer, *(place for place in shorter if place[1] not in ends)))


def _is_ipv6(match: re.Match[str]) -> bool:
    address, after = match.group(), match.string[match.end() : match.end() + 1]
    is_cut = after.isascii() and (after.isalnum() or after == ":")
    if is_cut or address.count(":") < 2 or not address.strip(":"):
        return False
    try:
        IPv6Address(address)
    except AddressValueError:
        return False
    return True


def _checked(
    text: str,
    search: Callable[[str, int], re.Match[str] | None],
    end_of: Callable[[re.Match[str]], int | None],
) -> Iterator[tuple[int, int]]:
    """The candidates that pass a check; after one that does not, another may begin within it."""
    match = search(text, 0)
    while match is not None:
        start, end = match.start(), end_of(match)
        if end is not None:
            yield start, end
        match = search(text, start + 1 if end is None else end)


def _end_of_card(match: re.Match[str]) -> int | None:
    """Of four groups of four digits, another number may follow."""
    if _has_check_digit(match.group()):
        return match.end()
    long = match["long"]
    return match.end("long") if long is not None and _has_check_digit(long) else None


def _end_of_iban(match: re.Match[str]) -> int | None:
    """Its country says how long it is: words in capitals may follow."""
    text, start, count = match.string, match.start(), 0
    length = _IBAN_LENGTHS.get(text[start : start + 2].upper(), 0)
    for end in range(start, match.end()):
        count += text[end].isalnum()
        if count == length:
            break
    else:
        return None
    number = "".join(filter(str.isalnum, text[start : end + 1]))
    rotated = "".join(str(int(each, 36)) for each in number[4:] + number[:4])
    after = text[end + 1 : end + 2]
    is_cut = after.isascii() and after.isalnum()
    return None if is_cut or int(rotated) % 97 != 1 else end + 1


def _has_check_digit(number: str) -> bool:
    """Whether the last digit is the one that the others give (Luhn)."""
    digits = [int(each) for each in reversed(number) if each.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


FINDERS: Mapping[str, Finder] = {
    "email": find_emails,
    "phone": find_phones,
    "card": find_cards,
    "iban": find_ibans,
    "ssn": find_ssns,
    "ip": find_ips,
}
"""The kinds of personal data, by name."""
