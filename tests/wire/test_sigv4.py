"""Signature Version 4, compared with the signatures of botocore."""

from datetime import UTC, datetime
from unittest.mock import patch
from urllib.parse import quote

import botocore.auth
import pytest
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from interlingua.wire.aws_credentials import AwsCredentials
from interlingua.wire.sigv4 import sign_request

NOW = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
ANY = st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=12)
NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,12}", fullmatch=True)
VALUES = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20)
PATHS = st.lists(
    ANY.map(lambda text: quote(text, safe=":@~!$&'()*+,;=")) | st.sampled_from([".", "..", ""]),
    max_size=4,
).map("/".join)
QUERIES = st.lists(st.tuples(ANY, ANY), max_size=4).map(
    lambda pairs: "&".join(
        f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in pairs
    )
)
HOSTS = st.sampled_from(
    ["bedrock-runtime.us-east-1.amazonaws.com", "Host.example:8443", "host.example:443", "[::1]:80"]
)


def botocore_signs(method, url, headers, body, credentials, service, region):
    """The headers that botocore's own signer makes at the same time."""
    request = AWSRequest(method=method, url=url, headers=headers, data=body)
    keys = Credentials(
        credentials.access_key_id, credentials.secret_access_key, credentials.session_token
    )
    with patch.object(botocore.auth, "get_current_datetime", lambda: NOW.replace(tzinfo=None)):
        botocore.auth.SigV4Auth(keys, service, region).add_auth(request)
    return {name.lower(): value for name, value in request.headers.items()}


@given(
    method=st.sampled_from(["GET", "POST", "put"]),
    scheme=st.sampled_from(["http", "https"]),
    host=HOSTS,
    path=PATHS,
    query=QUERIES,
    headers=st.dictionaries(
        NAMES.filter(lambda name: name not in {"date", "host"}), VALUES, max_size=4
    ),
    body=st.binary(max_size=50),
    token=st.none() | st.text("abcXYZ+/=", min_size=1, max_size=20),
    secret=st.text("abcXYZ+/=", min_size=1),
    region=st.sampled_from(["us-east-1", "eu-central-1"]),
)
def test_signatures_equal_those_of_botocore(
    method, scheme, host, path, query, headers, body, token, secret, region
):
    """For any method, path, query, header, body and session token."""
    url = f"{scheme}://{host}/{path}" + (f"?{query}" if query else "")
    credentials = AwsCredentials(
        access_key_id="AKIDEXAMPLE", secret_access_key=secret, session_token=token
    )
    ours = sign_request(
        method,
        url,
        headers,
        body,
        credentials=credentials,
        service="bedrock",
        region=region,
        now=NOW,
    )
    theirs = botocore_signs(method, url, headers, body, credentials, "bedrock", region)

    assert ours["authorization"] == theirs["authorization"]
    assert ours["x-amz-date"] == theirs["x-amz-date"]
    assert ours.get("x-amz-security-token") == theirs.get("x-amz-security-token")


@pytest.mark.parametrize("change", ["method", "url", "body", "secret", "time", "header"])
def test_every_part_of_a_request_is_signed(change):
    """Another method, address, body, header, key or time has another signature."""

    def sign(method="POST", url="https://h.example/a", body=b"x", secret="s", hour=1, header="v"):  # noqa: S107
        signed = sign_request(
            method,
            url,
            {"x-amz-a": header},
            body,
            credentials=AwsCredentials(access_key_id="AKID", secret_access_key=secret),
            service="bedrock",
            region="us-east-1",
            now=datetime(2026, 1, 1, hour, tzinfo=UTC),
        )
        return signed["authorization"]

    others = {
        "method": {"method": "PUT"},
        "url": {"url": "https://h.example/b"},
        "body": {"body": b"y"},
        "secret": {"secret": "t"},
        "time": {"hour": 2},
        "header": {"header": "w"},
    }
    assert sign() == sign()
    assert sign() != sign(**others[change])


def test_credentials_do_not_show_their_keys():
    """Neither in `repr` nor in a message that has it."""
    credentials = AwsCredentials(
        access_key_id="AKIDEXAMPLE", secret_access_key="the-secret", session_token="the-token"
    )
    assert "secret" not in repr(credentials)
    assert "token" not in f"{credentials}"
