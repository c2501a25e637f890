"""The server side of the dialect `postcard`."""

import re

from interlingua.spec.contracts import WireCall
from interlingua.spec.operations import Failure, Operation, ServedModel, ServerFacts, ServerRoute
from interlingua.wire.json_text import loads

SERVER = ServerFacts(
    routes=(
        ServerRoute(method="POST", pattern=re.compile(".*/postcard"), kind="answer"),
        ServerRoute(method="POST", pattern=re.compile(".*/postage"), kind="count"),
        ServerRoute(method="GET", pattern=re.compile(".*/addresses"), kind="models"),
    ),
    own_paths=("/post",),
    key_headers=("stamp",),
    stream_field="live",
    call_prefix="c",
)


def list_models(models, query):  # noqa: ARG001
    """All at once."""
    return [describe_model(model) for model in models]


def describe_model(model):
    """Its address."""
    return {"to": model.id}


def counted_call(call):
    """The call itself."""
    return call


def count_tokens(tokens):
    """The postage."""
    return {"stamps": tokens}


def error_body(failure, *, model, request_id):  # noqa: ARG001
    """The card comes back."""
    return {"returned": {"why": failure.message or f"{failure.status} {model}"}}


def wrong_key(*, is_missing, message=None):
    """No stamp, or a false one."""
    return Failure(status=401, message=message or ("no stamp" if is_missing else "a false stamp"))


OPERATIONS = {
    "list_models": Operation(
        name="list_models",
        encode=lambda *_: WireCall(method="GET", path="/addresses"),
        decode=lambda _status, _headers, body: [ServedModel(id=row["to"]) for row in loads(body)],
    )
}
