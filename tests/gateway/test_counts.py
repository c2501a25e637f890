"""Token counts, in the form of each vendor."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from interlingua.simulator import Simulator, serve_in_thread
from support.gateways import gateway
from support.simulated import adapters

QUESTION = "How many tokens does this question have, about?"
UPSTREAMS = {
    "openai": "openai:gpt-5.2",
    "openai_compatible": "openai_compatible:house-model",
    "anthropic": "anthropic:claude-haiku-4-5",
    "gemini": "gemini:gemini-2.5-flash",
}


def count_anthropic(front, model):
    messages = [{"role": "user", "content": QUESTION}]
    return front.anthropic().messages.count_tokens(model=model, messages=messages).input_tokens


def count_gemini(front, model):
    google = front.gemini()
    return google.models.count_tokens(model=model, contents=QUESTION).total_tokens


def count_responses(front, model):
    return front.openai().responses.input_tokens.count(model=model, input=QUESTION).input_tokens


FORMS = {"anthropic": count_anthropic, "gemini": count_gemini, "responses": count_responses}
every_form = pytest.mark.parametrize("form", FORMS)


@pytest.fixture(scope="module")
def stage():
    app = Simulator()
    with serve_in_thread(app) as upstream, gateway(adapters(upstream.url)) as front:
        yield app, front


@every_form
@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_the_upstream_counts_where_it_can(stage, form, upstream):
    """An upstream without the operation is not asked; the estimate is near the count."""
    app, front = stage
    before = len(app.script.received)
    tokens = FORMS[form](front, UPSTREAMS[upstream])
    asked = len(app.script.received) - before

    assert 5 <= tokens <= 40
    assert asked == (upstream != "openai_compatible")


def test_many_counts_at_once(stage):
    """Claude Code sends 24."""
    _, front = stage
    client = front.anthropic()
    messages = [{"role": "user", "content": QUESTION}]

    def count(_):
        counted = client.messages.count_tokens(model=UPSTREAMS["anthropic"], messages=messages)
        return counted.input_tokens

    with ThreadPoolExecutor(24) as pool:
        assert len(set(pool.map(count, range(24)))) == 1


@every_form
@pytest.mark.parametrize("model", ["nothing", "nobody:model"])
def test_an_unknown_model_is_404(stage, form, model):
    """As it is for an answer; the upstream is not asked."""
    app, front = stage
    before = len(app.script.received)
    with pytest.raises(Exception, match="does not exist, or this key may not use it") as caught:
        FORMS[form](front, model)

    assert getattr(caught.value, "status_code", getattr(caught.value, "code", 0)) == 404
    assert len(app.script.received) == before


@every_form
def test_a_count_that_fails_is_estimated(form):
    """An agent that only asks how much room is left goes on."""
    with gateway(adapters("http://127.0.0.1:9")) as front:
        assert 5 <= FORMS[form](front, UPSTREAMS["anthropic"]) <= 40


async def knows_no_model(scope, receive, send):  # noqa: ARG001 -- as ASGI calls it
    """Answers every request with 404."""
    body = b'{"error": {"type": "not_found_error", "message": "model: x"}}'
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": body})


@every_form
def test_a_model_that_the_upstream_does_not_know_is_404(form):
    """An estimate would say that it exists."""
    with serve_in_thread(knows_no_model) as upstream, gateway(adapters(upstream.url)) as front:
        with pytest.raises(Exception, match="model: x") as caught:
            FORMS[form](front, UPSTREAMS["anthropic"])
        assert getattr(caught.value, "status_code", getattr(caught.value, "code", 0)) == 404
