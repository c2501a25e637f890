"""What a target is told by."""

import msgspec

from interlingua.dialects.openai_chat.facts import ChatQuirks
from interlingua.prepare.history.edit import DEFAULT_POLICY, RepairPolicy
from interlingua.prepare.history.target import kinds_without_urls, rules_for
from interlingua.spec.contracts import NEUTRAL_PROFILE, Profile
from interlingua.spec.facts import HistoryRules
from interlingua.spec.request import Request
from support.facts import FACTS, HISTORY


def test_a_target_is_data():
    """It goes through JSON, with only what is said of it."""
    target = HistoryRules(dialect="openai_chat", call_id="[a-z]{9}", thinking="none")

    document = msgspec.json.encode(target)

    assert msgspec.json.decode(document) == {
        "dialect": "openai_chat",
        "call_id": "[a-z]{9}",
        "thinking": "none",
    }
    assert msgspec.json.decode(document, type=HistoryRules) == target


def test_every_dialect_has_one():
    """They are found by name, and speak of no model."""
    assert all(name == target.dialect for name, target in HISTORY.items())
    assert {target.model for target in HISTORY.values()} == {""}


def test_the_default_policy_keeps_calls():
    """What can be repaired without a loss is."""
    kept = RepairPolicy(unanswered="error", foreign_thinking="drop", unsigned_calls="sentinel")

    assert kept == DEFAULT_POLICY


def test_what_a_request_and_its_server_add():
    """A stored conversation, another operation, and a server's quirks, which win."""
    plain = Request(model="m")

    def found(dialect, options=(), profile=NEUTRAL_PROFILE):
        return rules_for(FACTS[dialect], plain, profile, dict(options))

    responses = "openai_responses"
    assert found(responses) is HISTORY[responses]
    assert found(responses, {"prompt": {"id": "p"}}.items()).stored
    assert not found("openai_chat", {"prompt": {"id": "p"}}.items()).stored
    assert found(responses, {"path": "/v1/responses/compact"}.items()).least == "nothing"
    assert found(responses, profile=Profile(tool_result_types=())).result_media is False
    takes_media = Profile(tool_result_types=(), quirks=ChatQuirks(tool_result_media=True))
    assert found("openai_chat", profile=takes_media).result_media is True


def test_what_must_be_sent_as_bytes():
    """The kinds of media of which a server takes the bytes but no address."""
    assert kinds_without_urls(FACTS["openai_chat"], NEUTRAL_PROFILE) == ("audio", "document")
    fetches = Profile(quirks=ChatQuirks(document_url=True))
    assert kinds_without_urls(FACTS["openai_chat"], fetches) == ("audio",)
    others = ("openai_responses", "anthropic_messages", "gemini_generate")
    assert {kinds_without_urls(FACTS[name], NEUTRAL_PROFILE) for name in others} == {()}
