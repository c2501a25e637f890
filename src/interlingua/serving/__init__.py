"""
ASGI applications that answer as the providers do, in every dialect that has a server side.

Import from here to put a model behind programs that speak a provider's API, such as coding agents.
The simulator is built on this module.
"""

from interlingua.serving.application import (
    Application,
    Incoming,
    RefusedError,
    check_form,
    check_key,
    count_body,
    error_reply,
    failure_reply,
    frames_reply,
    json_reply,
    serve_of,
)
from interlingua.serving.asgi import Delivery, Receive, Reply, Send
from interlingua.serving.client_application import Caller, ClientApplication, Routes
from interlingua.serving.exchange import ModelRoute
from interlingua.serving.kept_responses import KeptResponses
from interlingua.serving.sealed_state import SealedState
from interlingua.serving.storage import Storage
from interlingua.spec.operations import Failure

__all__ = [
    "Application",
    "Caller",
    "ClientApplication",
    "Delivery",
    "Failure",
    "Incoming",
    "KeptResponses",
    "ModelRoute",
    "Receive",
    "RefusedError",
    "Reply",
    "Routes",
    "SealedState",
    "Send",
    "Storage",
    "check_form",
    "check_key",
    "count_body",
    "error_reply",
    "failure_reply",
    "frames_reply",
    "json_reply",
    "serve_of",
]
