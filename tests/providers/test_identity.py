"""The identity of an adapter: what makes its answers differ from those of another."""

import gc

import pytest

from interlingua import HttpAdapter
from interlingua.catalog import Provider
from interlingua.client.middleware.balance import Balance
from interlingua.local import LocalServer
from interlingua.providers.identity import IGNORED, PARTS, identity_of
from interlingua.providers.rows import find_provider, providers
from interlingua.spec.behaviour import Behaviour
from interlingua.spec.defaults import Timeouts
from interlingua.transport import Limits
from support.rows import address_of

PLAIN = identity_of(HttpAdapter("openai", "key"), "m")
MATTERS = {
    "base_url": "https://elsewhere.example/v1",
    "dialect": "openai_chat",
    "default_headers": {"x-mode": "fast"},
    "organization": "acme",
    "project": "p",
    "options": {"temperature": 0},
    "profile": {"max_output_tokens": 10},
    "model_profiles": {"m": {"max_output_tokens": 10}},
    "read_files": False,
    "behaviour": Behaviour(prompt_addendum="Call tools."),
    "strict": True,
    "on_loss": "warn",
    "name": "other",
}
HARMLESS = {"timeout": Timeouts(connect=1), "limits": Limits(body=1), "max_retries": 5}


def openai(key="key", **settings):
    return HttpAdapter("openai", key, **settings)


@pytest.mark.parametrize("setting", MATTERS)
def test_each_setting_that_changes_answers_changes_the_identity(setting):
    """Default options, address, headers and profile count."""
    assert identity_of(openai(**{setting: MATTERS[setting]}), "m") not in (PLAIN, None)


@pytest.mark.parametrize("setting", HARMLESS)
def test_other_settings_do_not(setting):
    """Timeouts and retries change no answer."""
    assert identity_of(openai(**{setting: HARMLESS[setting]}), "m") == PLAIN


def test_equal_adapters_have_one_identity():
    """Another process with the same settings finds the answers."""
    assert identity_of(openai(), "m") == PLAIN
    assert identity_of(openai(options={}), "m") == PLAIN
    assert identity_of(openai(), "gpt-5.2") != identity_of(openai(), "o3")


def test_the_key_counts_unless_the_caller_names_the_tenant():
    """So do headers that hold a key."""
    other = openai("another", default_headers={"x-api-token": "secret"})

    assert identity_of(other, "m") != PLAIN
    assert identity_of(other, "m", with_key=False) == identity_of(openai(), "m", with_key=False)
    assert identity_of(openai("third"), "m") != PLAIN


@pytest.mark.parametrize("name", sorted(providers()))
def test_every_row_has_an_identity(name):
    """No setting of a row is without a JSON form."""
    row = find_provider(name)

    assert identity_of(HttpAdapter(row, "key", base_url=address_of(row)), "m") is not None


def test_the_row_counts():
    """Two providers at one address are two."""
    rows = [
        Provider(name=name, dialect="openai_chat", base_url="https://a.example") for name in "ab"
    ]
    first, second = (identity_of(HttpAdapter(row, "key"), "m") for row in rows)

    assert first != second


def test_the_local_model_counts():
    """The file and the template of a local server."""
    servers = [LocalServer(), LocalServer("a.gguf"), LocalServer("a.gguf", template="{{ x }}")]
    found = [identity_of(HttpAdapter("local", server=server), "m") for server in servers]

    assert len(set(found)) == 3


def test_an_adapter_of_several_is_known_by_its_members():
    """Another process with the same keys finds the answers."""
    pairs = [("a", "b"), ("a", "b"), ("a", "c")]
    first, same, other = (identity_of(Balance(openai(one), openai(two)), "m") for one, two in pairs)

    assert None is not first == same != other
    assert identity_of(Balance(openai("a"), Slotted()), "m") is None


def test_every_ignored_attribute_exists():
    """The list of attributes that do not count is true, and has reasons."""
    adapter = openai()
    own = adapter.configuration
    _ = adapter.operations, own.answers_take_request, own.streams_take_request  # made on first use

    assert IGNORED.keys() <= vars(own).keys()
    assert vars(adapter).keys() == PARTS
    assert all(IGNORED.values())


class Own:
    name = "own"


class Named(Own):
    cache_identity = "v1"


class Slotted:
    __slots__ = ()
    name = "slotted"

    async def complete(self, _):
        """No answer."""


def test_an_adapter_of_another_class_is_equal_only_to_itself():
    """Its settings are unknown, unless it says what it is."""
    one, other = Own(), Own()
    found = identity_of(one, "m")

    assert found == identity_of(one, "m") != identity_of(other, "m")
    assert identity_of(Named(), "m") == identity_of(Named(), "m")
    assert identity_of(Slotted(), "m") is None
    del one
    gc.collect()
    assert identity_of(Own(), "m") != found
