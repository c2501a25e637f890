"""HTTP requests before they are sent."""

from interlingua.providers.http_requests import DryRun, headers_for, join_headers
from interlingua.spec.contracts import NEUTRAL_PROFILE


def test_headers_are_laid_over_each_other():
    """By lower-cased name, the encoder's last; flags add up."""
    own = {"anthropic-version": "2", "anthropic-beta": "c"}
    defaults = join_headers(
        {"Anthropic-Version": "1", "anthropic-beta": "a"}, {"ANTHROPIC-BETA": "b,a"}
    )

    assert headers_for(own, defaults, stream=True) == {
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
