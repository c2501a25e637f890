"""A call before it is sent."""

import logging

from interlingua.providers.call import DryRun, headers_for, join_headers, log_losses
from interlingua.spec.contracts import NEUTRAL_PROFILE, WireCall
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import Warning


def test_headers_are_laid_over_each_other():
    """By lower-cased name, the encoder's last; flags add up."""
    wire = WireCall(headers={"anthropic-version": "2", "anthropic-beta": "c"}, stream=True)

    defaults = join_headers(
        {"Anthropic-Version": "1", "anthropic-beta": "a"}, {"ANTHROPIC-BETA": "b,a"}
    )

    assert headers_for(wire, defaults) == {
        "content-type": "application/json",
        "accept": "text/event-stream",
        "accept-encoding": "identity",
        "anthropic-version": "2",
        "anthropic-beta": "a,b,c",
    }


def test_secrets_in_headers_are_not_shown():
    """A dry run is looked at in logs and debuggers."""
    headers = {"proxy-authorization": "Basic aHVudGVyMg==", "x-team": "search"}
    call = DryRun(profile=NEUTRAL_PROFILE, url="u", headers=headers, body={})

    assert "aHVudGVyMg" not in repr(call)
    assert "search" in repr(call)


def test_a_path_that_leads_nowhere_is_logged_all_the_same(caplog):
    """A warning about a setting, or about a message that is not there."""
    warnings = [
        Warning(code="seed_dropped", message="no seed", path="seed"),
        Warning(code="odd", message="odd", path="messages[9].content[1]"),
        Warning(code="empty", message="empty", path="messages[0].content[4]"),
        Warning(code="none", message="none"),
    ]
    request = Request(messages=(Message(role="user", content="hi", id="m0"),), request_id="r")
    with caplog.at_level(logging.WARNING, logger="interlingua"):
        log_losses(tuple(warnings), request, "openai")

    assert [(r.reason, r.message_id, r.part_kind) for r in caplog.records] == [
        ("seed_dropped", None, None),
        ("odd", None, None),
        ("empty", "m0", None),
        ("none", None, None),
    ]
