"""Settings that cannot be are told when an adapter is made, not when it is used."""

import math
import pickle

import pytest

from interlingua.local import LocalServer
from interlingua.providers.adapter import HttpAdapter, OpenAIAdapter
from interlingua.providers.adapter_options import check_settings
from interlingua.spec.defaults import Timeouts
from interlingua.spec.errors import ConfigurationError
from interlingua.transport.canned import CannedTransport

GOOD = {
    "base_url": "https://a.example/v1",
    "dialect": "openai_chat",
    "default_headers": {"x-team": "search"},
    "timeout": 0,
    "max_retries": 0,
    "options": {},
    "profile": {"tools": False},
    "model_profiles": {"m": {"tools": True}},
    "read_files": False,
    "strict": True,
    "transport": CannedTransport([]),
    "name": "mine",
}


def test_what_is_right_passes():
    """Each as it was given, 0 and False among them; None is as good as nothing."""
    assert check_settings(GOOD) == GOOD
    assert check_settings(dict.fromkeys(GOOD)) == {}
    assert OpenAIAdapter("k", **GOOD).name == "mine"
    assert check_settings({"timeout": Timeouts(request=None, connect=1)})


@pytest.mark.parametrize(
    ("name", "near"),
    [("baseurl", "base_url"), ("max_retry", "max_retries"), ("timeoutt", "timeout")],
)
def test_a_mistyped_name_is_told_with_the_nearest(name, near):
    """It is not left out in silence."""
    with pytest.raises(ConfigurationError, match=f"no setting '{name}'. Did you mean '{near}'"):
        OpenAIAdapter("k", **{name: "x"})
    with pytest.raises(ConfigurationError, match="no setting 'zzz'"):
        OpenAIAdapter("k", zzz=1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("base_url", 1),
        ("base_url", "api.example.com/v1"),
        ("dialect", "openai_chatt"),
        ("default_headers", "x-team: search"),
        ("default_headers", {"x-team": 1}),
        ("default_headers", {1: "x"}),
        ("default_headers", {"Content-Length": "3"}),
        ("organization", 5),
        ("timeout", "5"),
        ("timeout", True),
        ("timeout", -1),
        ("timeout", math.nan),
        ("timeout", math.inf),
        ("timeout", Timeouts(connect=-1)),
        ("timeout", Timeouts(stream_read="9")),
        ("max_retries", -1),
        ("max_retries", 1.5),
        ("max_retries", True),
        ("options", []),
        ("profile", {"tool": False}),
        ("profile", {"quirks": {"no_such_quirk": 1}}),
        ("model_profiles", {"m": {"tools": "maybe"}}),
        ("model_profiles", {"m": 1}),
        ("read_files", 0),
        ("strict", "yes"),
        ("transport", object()),
        ("name", 7),
    ],
)
def test_a_wrong_value_is_told_with_its_name(name, value):
    """At once; which setting it was can be asked."""
    with pytest.raises(ConfigurationError) as caught:
        OpenAIAdapter("k", **{name: value})

    assert caught.value.setting == name
    assert pickle.loads(pickle.dumps(caught.value)).setting == name  # noqa: S301 -- our own


def test_values_that_may_be_secrets_are_not_repeated():
    """Neither a key nor a header."""
    with pytest.raises(ConfigurationError) as key:
        OpenAIAdapter(b"hunter2hunter2")
    with pytest.raises(ConfigurationError) as header:
        OpenAIAdapter("k", default_headers={"x-token": b"hunter2hunter2"})

    assert "hunter2" not in key.value.message + header.value.message


def test_what_only_one_row_has():
    """A model file is the local row's; an address is everybody's."""
    for name, value in (("gguf", "m.gguf"), ("server", LocalServer())):
        with pytest.raises(ConfigurationError, match="for the row `local`"):
            HttpAdapter("openai", "k", **{name: value})
    with pytest.raises(
        ConfigurationError,
        match=r"'azure' has no address of its own\. Set AZURE_OPENAI_ENDPOINT, or pass base_url=",
    ):
        HttpAdapter("azure", "k")
