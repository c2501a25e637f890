"""Servers that others wrote, for an ASGI application: h11, and uvicorn with both of its parsers."""

import asyncio
import threading
from contextlib import contextmanager

import h11
import uvicorn

from support.patience import PATIENCE
from support.servers import Server


@contextmanager
def serve_with_h11(app):
    """The address of the application behind h11 on a socket."""
    with Server(_h11_script(app)) as server:
        yield server.url.removesuffix("/v1/x")


def _h11_script(app):
    """Answers requests until one side wants no more; h11 reads and writes."""

    async def script(connection):
        peer = h11.Connection(h11.SERVER)

        async def next_event():
            while (event := peer.next_event()) is h11.NEED_DATA:
                peer.receive_data(await connection.reader.read(65536))
            return event

        async def send(message):
            if message["type"] == "http.response.start":
                headers = message["headers"]
                event = h11.Response(status_code=message["status"], headers=headers)
                connection.writer.write(peer.send(event))
                return
            connection.writer.write(peer.send(h11.Data(data=message.get("body", b""))))
            if not message.get("more_body"):
                connection.writer.write(peer.send(h11.EndOfMessage()))
            await connection.writer.drain()

        async def receive():
            event = await next_event()
            is_data = isinstance(event, h11.Data)
            return {
                "type": "http.request",
                "body": bytes(event.data) if is_data else b"",
                "more_body": is_data,
            }

        while isinstance(request := await next_event(), h11.Request):
            connection.requests.append(request)
            path = request.target.decode().partition("?")[0]
            scope = {
                "type": "http",
                "method": request.method.decode(),
                "path": path,
                "headers": list(request.headers),
            }
            await app(scope, receive, send)
            if peer.our_state is not h11.DONE or peer.their_state is not h11.DONE:
                # Closing what is not read yet would be a reset (RFC 9112, section 9.6).
                await connection.gone()
                return
            peer.start_next_cycle()

    return script


@contextmanager
def _serve_with_uvicorn(app, parser):
    config = uvicorn.Config(
        app, port=0, http=parser, loop="asyncio", lifespan="off", ws="none", log_level="critical"
    )  # fmt: skip
    server = uvicorn.Server(config)
    started = threading.Event()

    async def serve():
        task = asyncio.ensure_future(server.serve())
        while not server.started and not task.done():  # noqa: ASYNC110 -- it has no event for it
            await asyncio.sleep(0.001)
        started.set()
        await task

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert started.wait(PATIENCE)
    try:
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = server.force_exit = True
        thread.join(PATIENCE)


@contextmanager
def serve_with_uvicorn_h11(app):
    """The address of the application under uvicorn, which reads with h11."""
    with _serve_with_uvicorn(app, "h11") as url:
        yield url


@contextmanager
def serve_with_uvicorn_httptools(app):
    """The address of the application under uvicorn, which reads with httptools."""
    with _serve_with_uvicorn(app, "httptools") as url:
        yield url


PEERS = {
    "h11": serve_with_h11,
    "uvicorn-h11": serve_with_uvicorn_h11,
    "uvicorn-httptools": serve_with_uvicorn_httptools,
}
