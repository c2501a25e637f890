"""Seals: what was sealed comes back exactly, or not at all."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlingua.errors import ConfigurationError
from interlingua.spec.content import Text, Thinking, ToolCall, ToolResult
from interlingua.wire.seal import Origin, seal, unseal
from interlingua.wire.seal_marks import (
    MARK,
    append_to_id,
    has_seal,
    is_seal,
    split_id,
    without_seal,
)

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


def test_an_id_and_its_seal_are_split_again():
    """The id is as the model made it; an id without a seal is left alone."""
    text = seal(STATE, KEY, ORIGIN)
    whole = append_to_id("call_a+b/=", text, 512)

    assert whole.startswith("call_a+b/=")
    own, sealed = split_id(whole)
    assert own == "call_a+b/="
    assert unseal(sealed, KEY, ORIGIN) == (STATE, "")
    assert split_id("call_1") == ("call_1", None)
    assert split_id("x" * 600) == ("x" * 600, None)


def test_an_id_is_never_too_long():
    """None, if the id and the seal have more characters than allowed."""
    text = seal(STATE, KEY, ORIGIN)
    length = len("call_1" + text.rstrip("="))

    assert append_to_id("call_1", text, length) is not None
    assert append_to_id("call_1", text, length - 1) is None


def test_seals_in_ids_and_nested_fields_are_removed():
    """Calls and results have their own ids again, and the other fields stay."""
    text = seal(STATE, KEY, ORIGIN)
    fields = {"extra_content": {"google": {"thought_signature": text}, "other": 1}, "empty": {}}
    call = ToolCall(id=append_to_id("c", text, 512), name="f", extra={"d": fields})
    result = ToolResult(tool_call_id=append_to_id("c", text, 512), content="ok")

    assert has_seal(call)
    assert has_seal(result)
    bare = without_seal(call)
    assert (bare.id, bare.extra) == ("c", {"d": {"extra_content": {"other": 1}, "empty": {}}})
    assert without_seal(result).tool_call_id == "c"
    assert not has_seal(bare)


def test_the_seal_of_a_signature_fits_into_an_id():
    """A signature of 200 characters leaves room for the id of the call."""
    signature = base64.b64encode(bytes(range(150))).decode()
    state = [{"fields": {"thoughtSignature": signature}, "part": "call call_0123456789abcdef"}]

    assert append_to_id("call_0123456789abcdef", seal(state, KEY, ORIGIN), 512) is not None
