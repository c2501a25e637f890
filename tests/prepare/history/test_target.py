"""What a target is told by."""

import msgspec

from interlingua.prepare.history.target import (
    DEFAULT_POLICY,
    TARGETS,
    RepairPolicy,
    Target,
    target_for,
)
from interlingua.spec.contracts import NEUTRAL_PROFILE, Profile
from interlingua.spec.request import Request


def test_a_target_is_data():
    """It goes through JSON, with only what is said of it."""
    target = Target(dialect="openai_chat", call_id="[a-z]{9}", thinking="none")

    document = msgspec.json.encode(target)

    assert msgspec.json.decode(document) == {
        "dialect": "openai_chat",
        "call_id": "[a-z]{9}",
        "thinking": "none",
    }
    assert msgspec.json.decode(document, type=Target) == target


def test_every_dialect_has_one():
    """They are found by name, and speak of no model."""
    assert all(name == target.dialect for name, target in TARGETS.items())
    assert {target.model for target in TARGETS.values()} == {""}


def test_the_default_policy_keeps_calls():
    """What can be repaired without a loss is."""
    kept = RepairPolicy(unanswered="error", foreign_thinking="drop", unsigned_calls="sentinel")

    assert kept == DEFAULT_POLICY


def test_what_a_request_and_its_server_add():
    """A stored conversation, another operation, a server's own ways, which win."""
    plain = Request(model="m")

    def found(options=(), profile=NEUTRAL_PROFILE, quirks=None):
        return target_for("openai_responses", plain, profile, dict(options), quirks)

    assert found() is TARGETS["openai_responses"]
    assert found({"prompt": {"id": "p"}}.items()).stored
    assert found({"path": "/v1/responses/compact"}.items()).least == "nothing"
    assert found(profile=Profile(tool_result_types=())).result_media is False
    ways = {"result_media": True}
    assert found(profile=Profile(tool_result_types=()), quirks=ways).result_media is True
