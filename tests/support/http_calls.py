"""Calls through a transport, by default the default one, and what must hold after each."""

import asyncio
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from interlingua.spec.contracts import HttpRequest
from interlingua.spec.errors import (
    SDKError,
)
from interlingua.transport.http1.transport import HttpTransport
from support.loops import run_on
from support.servers import Server
from support.simulated import settled

KEY = "sk-planted-0123456789abcdef"
SHORT = 0.2


def call(url, **fields):
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    return HttpRequest(url=f"{url}?key={KEY}", headers=headers, body=b'{"a":1}', **fields)


async def read(transport, request):
    async with transport.send(request) as got:
        return got.status, got.headers, await got.read()


async def collect(transport, request, into=None):
    chunks = [] if into is None else into
    async with transport.send(request) as got:
        async for chunk in got.chunks():
            chunks.append(chunk)
    return b"".join(chunks)


def run(work, *, loop="asyncio", kind=HttpTransport, **settings):
    """Run `work(transport)` in a loop of its own, and show that no task outlives it."""

    async def main():
        transport = kind(**settings)
        try:
            return await work(transport)
        finally:
            await transport.close()
            if kind is not HttpTransport:  # generators that were left are closed by tasks
                await settled(lambda: len(asyncio.all_tasks()) == 1)
            assert [
                task for task in asyncio.all_tasks() if task is not asyncio.current_task()
            ] == []

    return run_on(loop, main())


def fails(script, action=read, *, tls=None, has_ended=False, **settings):
    """The error of one call to a server with this script, after which the client has closed."""
    with Server(script, tls=tls) as server:

        async def work(transport):
            with pytest.raises(SDKError) as caught:
                await action(transport, call(server.url))
            # a connection whose body has ended is free for the next call
            assert has_ended or await asyncio.to_thread(server.all_closed)
            return caught.value

        error = run(work, **settings)
    assert_no_key(error)
    return error


def assert_no_key(error):
    seen = error
    while seen is not None:
        assert KEY not in f"{seen!s}{seen!r}{vars(seen)}"
        seen = seen.__cause__ or seen.__context__


def leaves(script, action, *, body=b"{}", **settings):
    """Run `action(transport, request, ready)`, and wait until the server sees the client leave."""
    with Server(script) as server:

        async def work(transport):
            request = HttpRequest(url=server.url, body=body)
            await action(transport, request, server)
            assert await asyncio.to_thread(server.all_closed)

        run(work, **settings)


async def cancel_when(task, condition):
    await settled(condition)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def complains(code, *arguments):
    """What Python says when this code runs with every warning shown; it must say nothing."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=Path(__file__).parents[1],
    )
    return done.stdout + done.stderr


def make_certificate(path, *, name="127.0.0.1", days=1):
    """Self-signed, for this host or address, and valid until so many days from now."""
    import datetime as dt
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    try:
        place = x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        place = x509.DNSName(name)
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=9))
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([place]), critical=False)
        .sign(key, hashes.SHA256())
    )
    form = serialization.Encoding.PEM
    secret = key.private_bytes(
        form, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(secret + made.public_bytes(form))
    return path


def server_tls(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context
