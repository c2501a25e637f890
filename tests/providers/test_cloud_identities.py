"""The keys of AWS and Google Cloud that an environment has."""

import asyncio
import json
import time
from datetime import UTC

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.providers.cloud_identities import google_source, read_aws_credentials
from interlingua.simulator import Simulator, serve_in_thread, text
from interlingua.spec.errors import ConfigurationError
from interlingua.spec.request import Request
from interlingua.wire.aws_credentials import AwsCredentials
from support.clouds import Guard, has_header, is_signed

ENVIRON = {
    "AWS_ACCESS_KEY_ID": "AKIDENV",
    "AWS_SECRET_ACCESS_KEY": "planted-env",
    "AWS_SESSION_TOKEN": "planted-token",
}
VARIABLE = "GOOGLE_APPLICATION_CREDENTIALS"
FILE = """
[default]
aws_access_key_id = AKIDFILE
aws_secret_access_key = planted-file
[work]
aws_access_key_id=AKIDWORK
aws_secret_access_key=planted%work
aws_session_token = planted-session
[broken]
aws_access_key_id = AKIDBROKEN
"""


@pytest.fixture
def file(tmp_path):
    """A credentials file, and the variable that names it."""
    path = tmp_path / "credentials"
    path.write_text(FILE, encoding="utf-8")
    return {"AWS_SHARED_CREDENTIALS_FILE": str(path)}


def test_variables_go_before_the_file(file):
    """With their session token; no file is needed."""
    for environ in (ENVIRON, {**ENVIRON, **file}):
        keys = read_aws_credentials(environ)
        assert (keys.access_key_id, keys.session_token) == ("AKIDENV", "planted-token")


def test_the_profiles_of_a_file(file):
    """The default one, or the one that is named, which goes before the variables."""
    assert read_aws_credentials(file).secret_access_key == "planted-file"
    work = read_aws_credentials({**ENVIRON, **file, "AWS_PROFILE": "work"})
    assert work == AwsCredentials(
        access_key_id="AKIDWORK",
        secret_access_key="planted%work",
        session_token="planted-session",
    )


@pytest.mark.parametrize(
    ("profile", "content"),
    [("absent", FILE), ("broken", FILE), ("default", None), ("default", "planted ] nonsense")],
)
def test_what_is_missing_is_named(tmp_path, profile, content):
    """The profile, the file, and what to set; never what the file holds."""
    path = tmp_path / "credentials"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    environ = {"AWS_SHARED_CREDENTIALS_FILE": str(path), "AWS_PROFILE": profile}
    with pytest.raises(ConfigurationError, match=r"No AWS keys.*AWS_ACCESS_KEY_ID") as caught:
        read_aws_credentials(environ)
    assert str(path) in caught.value.message
    assert "planted" not in caught.value.message


def test_a_client_reads_the_file_only_when_the_row_is_used(tmp_path):
    """The environment has no file yet when the client is made."""
    path = tmp_path / "later"
    environ = {"AWS_SHARED_CREDENTIALS_FILE": str(path), "AWS_REGION": "eu-central-1"}
    keys = AwsCredentials(access_key_id="AKIDFILE", secret_access_key="planted-file")
    guard = Guard(Simulator(text("Hi.")), is_signed(keys))
    with serve_in_thread(guard) as server:
        client = Client.from_env(environ).with_access(
            "bedrock_invoke:anthropic.claude-x", base_url=server.url
        )
        request = Request(model="bedrock_invoke:anthropic.claude-x", messages="Hello")

        async def work():
            async with client:
                with pytest.raises(ConfigurationError, match="No AWS keys"):
                    await client.complete(request)
                path.write_text(FILE, encoding="utf-8")
                return await client.complete(request)

        assert asyncio.run(work()).text == "Hi."


# Google Cloud, with google-auth itself and a token server on loopback.


@pytest.fixture(scope="module")
def private_key():
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


def account_file(folder, key, url):
    """A service account whose tokens are made at this URL."""
    account = {
        "type": "service_account",
        "project_id": "p",
        "private_key_id": "1",
        "private_key": key,
        "client_email": "a@p.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": f"{url}/token",
    }
    path = folder / "account.json"
    path.write_text(json.dumps(account), encoding="utf-8")
    return str(path)


class TokenServer:
    """Makes `planted-1`, `planted-2` and so on; or fails."""

    def __init__(self, status=200):
        self.made, self.status = 0, status

    async def __call__(self, _scope, receive, send):
        await receive()
        self.made += 1
        body = {"access_token": f"planted-{self.made}", "expires_in": 3600, "token_type": "Bearer"}
        if self.status != 200:
            body = {"error": "invalid_grant", "error_description": "planted-reply"}
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(body).encode()})


def test_google_auth_makes_the_token(tmp_path, private_key, monkeypatch):
    """It is made once, in a thread, and sent as a bearer token."""
    tokens = TokenServer()
    check = has_header("authorization", "Bearer planted-1")
    guard = Guard(Simulator(text("Hi."), text("Ho.")), check)
    with serve_in_thread(tokens) as issuer, serve_in_thread(guard) as server:
        monkeypatch.setenv(VARIABLE, account_file(tmp_path, private_key, issuer.url))
        adapter = HttpAdapter("vertex", base_url=f"{server.url}/v1")

        async def work():
            try:
                return [
                    (await adapter.complete(Request(model="gemini-3-pro", messages="Hello"))).text
                    for _ in range(2)
                ]
            finally:
                await adapter.close()

        assert asyncio.run(work()) == ["Hi.", "Ho."]
    assert tokens.made == 1


def test_the_end_of_a_google_token_is_known(tmp_path, private_key, monkeypatch):
    """So that it is made anew in time."""
    with serve_in_thread(TokenServer()) as issuer:
        monkeypatch.setenv(VARIABLE, account_file(tmp_path, private_key, issuer.url))
        made = google_source()()
    left = made.expires_at.replace(tzinfo=UTC).timestamp() - time.time()
    assert 3000 < left <= 3600


def test_google_failures(tmp_path, private_key, monkeypatch):
    """No file, a bad file, a refusal: each says what to do, and quotes no reply."""
    bad = tmp_path / "bad.json"
    bad.write_text("planted", encoding="utf-8")
    with serve_in_thread(TokenServer(400)) as issuer:
        refused = account_file(tmp_path, private_key, issuer.url)
        for path in (str(tmp_path / "none.json"), str(bad), refused):
            monkeypatch.setenv(VARIABLE, path)
            with pytest.raises(ConfigurationError, match=r"interlingua\[vertex\]") as caught:
                google_source()()
            assert "planted" not in caught.value.message
            assert "planted" not in str(caught.value.__context__)
