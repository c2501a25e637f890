"""Log records for warnings."""

import logging

from msgspec.structs import replace

from interlingua.runtime.log import log_warnings
from interlingua.spec.messages import Message
from interlingua.spec.request import Request
from interlingua.spec.response import Warning

REQUEST = Request(
    model="m", messages=(Message(role="user", content="hi", id="m0"),), request_id="r"
)


def test_a_path_that_leads_nowhere_is_logged_all_the_same(caplog):
    """A warning about a setting, or about a message that does not exist."""
    warnings = (
        Warning(code="seed_dropped", message="no seed", path="seed"),
        Warning(code="odd", message="odd", path="messages[9].content[1]"),
        Warning(code="empty", message="empty", path="messages[0].content[4]"),
        Warning(code="none", message="none"),
    )
    with caplog.at_level(logging.WARNING, logger="interlingua"):
        log_warnings(warnings, REQUEST, "openai", set())

    assert [(r.reason, r.message_id, r.part_kind) for r in caplog.records] == [
        ("seed_dropped", None, None),
        ("odd", None, None),
        ("empty", "m0", None),
        ("none", None, None),
    ]
    assert {(r.request_id, r.adapter, r.model) for r in caplog.records} == {("r", "openai", "m")}


def test_a_code_is_logged_once(caplog):
    """Once per set of logged codes, however often it occurs."""
    part = Warning(code="image_dropped", message="no image", path="messages[0].content[0]")
    other = Warning(code="seed_dropped", message="no seed", path="seed")
    logged = {"seed_dropped"}
    with caplog.at_level(logging.WARNING, logger="interlingua"):
        log_warnings((part, part, other), REQUEST, "openai", logged)
        log_warnings((part, other), REQUEST, "openai", logged)

    assert [(r.reason, r.part_kind) for r in caplog.records] == [("image_dropped", "text")]
    assert logged == {"image_dropped", "seed_dropped"}


def test_the_session_is_a_field(caplog):
    """Of the request, or of its metadata."""
    warning = Warning(code="seed_dropped", message="no seed", path="seed")
    requests = [
        REQUEST,
        replace(REQUEST, session_id="s1"),
        replace(REQUEST, metadata={"session_id": "s2"}),
    ]
    with caplog.at_level(logging.WARNING, logger="interlingua"):
        for request in requests:
            log_warnings((warning,), request, "openai", set())

    assert [record.session_id for record in caplog.records] == [None, "s1", "s2"]
