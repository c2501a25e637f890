"""A guard before the simulator that checks the keys of requests as the clouds do."""

import re
from datetime import UTC, datetime
from unittest.mock import patch
from urllib.parse import urlsplit

import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from interlingua.serving.asgi import headers_of, read_body
from interlingua.wire.json_text import dumps, loads

_match_signature = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<id>[^/]+)/(?P<date>\d+)/(?P<region>[^/]+)/(?P<service>[^/]+)"
    r"/aws4_request, SignedHeaders=(?P<names>\S+), Signature=(?P<signature>[0-9a-f]{64})"
).fullmatch


class Received:
    """A request as the server got it."""

    def __init__(self, scope, body):
        raw, query = scope["raw_path"].decode(), scope.get("query_string", b"").decode()
        self.target = f"{raw.partition('?')[0]}?{query}" if query else raw.partition("?")[0]
        self.method = scope["method"]
        self.headers = headers_of(scope)
        self.content = body
        self.body = loads(body) if body else None


class Guard:
    """
    An ASGI app that lets requests through which `check` accepts, and refuses others with 401.

    `received` has all requests.
    """

    def __init__(self, app, check):
        self.app, self.check, self.received = app, check, []

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = await read_body(receive)
        request = Received(scope, body)
        self.received.append(request)
        if not self.check(request):
            content = dumps({"message": "The security token is invalid."})
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": content})
            return
        pending = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay():
            return pending.pop() if pending else await receive()

        await self.app(scope, replay, send)


def has_header(name, value):
    """A check for one header."""
    return lambda request: request.headers.get(name) == value


def is_signed(keys, *, service="bedrock", region="eu-central-1"):
    """A check that computes the signature of what arrived with botocore."""

    def check(request):
        match = _match_signature(request.headers.get("authorization", ""))
        if match is None or (match["id"], match["region"], match["service"]) != (
            *(keys.access_key_id, region, service),
        ):
            return False
        if request.headers.get("x-amz-security-token") != keys.session_token:
            return False
        return match["signature"] == _expected(request, match, keys)

    return check


def _expected(request, match, keys):
    """The signature over the headers that the client says it has signed."""
    names = match["names"].split(";")
    signed = {name: request.headers[name] for name in names if not name.startswith("x-amz-")}
    time = datetime.strptime(request.headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    url = f"http://{request.headers['host']}{request.target}"
    assert urlsplit(url).path
    again = AWSRequest(method=request.method, url=url, headers=signed, data=request.content)
    credentials = Credentials(keys.access_key_id, keys.secret_access_key, keys.session_token)
    now = time.replace(tzinfo=None)
    with patch.object(botocore.auth, "get_current_datetime", lambda: now):
        botocore.auth.SigV4Auth(credentials, match["service"], match["region"]).add_auth(again)
    return again.headers["Authorization"].rpartition("Signature=")[2]
