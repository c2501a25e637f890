"""What is loaded or made at its first use."""

import subprocess
import sys
from copy import copy

import pytest

from interlingua import lazy, middleware, stores


class Owner:
    made = 0

    @lazy.attribute
    def part(self):
        """A part."""
        type(self).made += 1
        return object()


def test_an_attribute_is_made_once():
    """Later reads give the same object, and so do copies."""
    owner = Owner()
    before = Owner.made

    assert "part" not in vars(owner)
    assert owner.part is owner.part is copy(owner).part
    assert Owner.made == before + 1
    assert Owner.part.__doc__ == "A part."


def test_an_attribute_can_be_made_again():
    """After it was forgotten; what was not made yet may be forgotten too."""
    owner = Owner()
    first = owner.part

    lazy.forget(owner, "part", "other")

    assert owner.part is not first


@pytest.mark.parametrize("module", [middleware, stores])
def test_names_of_a_module(module):
    """All that are listed are there, and any other is an error with the name of the module."""
    assert all(getattr(module, name) is getattr(module, name) for name in module.__all__)
    with pytest.raises(AttributeError, match=rf"'{module.__name__}' has no attribute 'Telegraph'"):
        module.Telegraph  # noqa: B018 -- it is what raises


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("from interlingua.middleware import RateLimit", "interlingua.client.middleware.telemetry"),
        ("from interlingua.stores import MemoryStore", "interlingua.client.stores.sqlite"),
        ("from interlingua.sync import generate", "interlingua.sync.session"),
        ("from interlingua.dialects import get; get('openai_chat')", "interlingua.streams"),
    ],
)
def test_a_name_loads_only_its_own_module(statement, absent):
    """A program pays for what it uses."""
    code = f"import sys; {statement}; print({absent!r} in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"
