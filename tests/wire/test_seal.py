"""Seals: what was sealed comes back exactly, or not at all."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.errors import ConfigurationError
from interlingua.spec.content import Text, Thinking, ToolCall
from interlingua.wire.seal import Origin, seal, unseal
from interlingua.wire.seal_marks import MARK, has_seal, is_seal, without_seal

KEY = b"0123456789abcdef"
ORIGIN = Origin(dialect="gemini_generate", provider="gemini", model="gemini-3-pro")
STATE = {"fields": {"thoughtSignature": "c2ln"}, "part": "call c1"}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(json_values, st.text(), st.text())
def test_what_was_sealed_comes_back(state, provider, model):
    """Any state, in plain base64 and in the alphabet for URLs, with and without padding."""
    origin = Origin(dialect="d", provider=provider, model=model)
    text = seal(state, KEY, origin)
    urlsafe = base64.urlsafe_b64encode(base64.b64decode(text)).decode()

    assert is_seal(text)
    for spelled in (text, urlsafe, urlsafe.rstrip("=")):
        assert unseal(spelled, KEY, origin) == (state, "")


def test_a_flipped_bit_anywhere():
    """Every bit of the text counts."""
    text = seal(STATE, KEY, ORIGIN)
    flipped = [
        text[:i] + chr(ord(letter) ^ (1 << bit)) + text[i + 1 :]
        for i, letter in enumerate(text)
        for bit in range(7)
    ]

    assert len(flipped) > 500
    assert all(unseal(each, KEY, ORIGIN).state is None for each in flipped)


def test_cut_anywhere():
    """A part of a seal is none, and more than a seal is none."""
    text = seal(STATE, KEY, ORIGIN).rstrip("=")

    assert all(unseal(text[:i], KEY, ORIGIN).state is None for i in range(len(text)))
    assert unseal(text + "A", KEY, ORIGIN).state is None


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"dialect": "openai_chat"}, "state of gemini-3-pro"),
        ({"provider": "vertex"}, "state of gemini-3-pro"),
        ({"model": "gemini-3-flash"}, "state of gemini-3-pro"),
    ],
)
def test_another_origin(change, problem):
    """A seal is bound to the dialect, the provider and the model."""
    other = {"dialect": ORIGIN.dialect, "provider": ORIGIN.provider, "model": ORIGIN.model}
    opened = unseal(seal(STATE, KEY, ORIGIN), KEY, Origin(**{**other, **change}))

    assert opened.state is None
    assert problem in opened.problem


def test_another_key():
    """Who does not have the key can neither make a seal nor change one."""
    opened = unseal(seal(STATE, KEY, ORIGIN), b"another key of 16", ORIGIN)

    assert opened == (None, "It is damaged, or was sealed with another key")


def test_time():
    """An expired seal is not used; without a clock, a seal that can expire is not used either."""
    text = seal(STATE, KEY, ORIGIN, expires_at=100.0)

    assert unseal(text, KEY, ORIGIN, now=99.0).state == STATE
    assert unseal(text, KEY, ORIGIN, now=100.0).problem == "It has expired"
    assert unseal(text, KEY, ORIGIN).problem == "It has expired"


def test_a_short_key():
    """A key that could be guessed is refused."""
    with pytest.raises(ConfigurationError, match="at least 16"):
        seal(STATE, b"short", ORIGIN)


def test_a_state_that_is_too_large():
    """It is not sealed: a client could not carry it."""
    assert seal("x" * 5_000_000, KEY, ORIGIN) is None


def test_seals_in_parts():
    """A seal is found in every opaque field, and taken out."""
    text = seal(STATE, KEY, ORIGIN)
    details = {"openai_chat": {"reasoning_details": [{"data": text}]}}
    call = ToolCall(id="c", name="f", extra={"gemini_generate": {"thoughtSignature": text}})

    assert has_seal(Thinking(signature=text))
    assert has_seal(Thinking(data=text))
    assert has_seal(Thinking(extra=details))
    assert has_seal(call)
    assert without_seal(call) == ToolCall(id="c", name="f")
    assert without_seal(Thinking(signature=text)) is None
    assert not has_seal(Text(MARK))
