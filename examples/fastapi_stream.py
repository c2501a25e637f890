"""
A streaming endpoint with FastAPI: the answer appears as it is made, and the model stops with you.

    pip install fastapi uvicorn
    python examples/fastapi_stream.py          then open http://127.0.0.1:8000

needs no key: the model is scripted. Close the page in the middle of an answer: The request to the
model is cancelled, so nothing is paid for that nobody reads. For a real model set its key in the
environment (such as `ANTHROPIC_API_KEY`):

    python examples/fastapi_stream.py --model anthropic:claude-haiku-4-5
"""

import argparse
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI
from fastapi.responses import HTMLResponse, StreamingResponse

from interlingua import Client, SDKError, stream
from interlingua.simulator import latency, scripted, text

PAGE = """<!doctype html><title>Ask</title>
<form><input name="prompt" value="Tell me a story."><button>Ask</button></form><p></p>
<script>
document.forms[0].onsubmit = (event) => {
  event.preventDefault();
  const out = document.querySelector("p");
  out.textContent = "";
  const prompt = encodeURIComponent(event.target.prompt.value);
  const source = new EventSource("/ask?prompt=" + prompt);
  source.onmessage = (message) => { out.textContent += JSON.parse(message.data); };
  source.addEventListener("end", () => source.close());
  source.addEventListener("failed", (message) => {
    out.textContent += " [" + JSON.parse(message.data) + "]";
    source.close();
  });
};
</script>"""


def event(data: object, name: str = "message") -> str:
    """A server-sent event."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


def create_app(client: Client, model: str) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with client:  # one client for the whole program: it holds the connections
            yield

    app = FastAPI(lifespan=lifespan)

    async def answer(prompt: str) -> AsyncIterator[str]:
        try:
            # When the browser leaves, FastAPI cancels this generator. Leaving the block then
            # closes the connection to the model.
            async with stream(model, prompt, client=client) as pieces:
                async for piece in pieces.text_stream:
                    yield event(piece)
            yield event({"tokens": pieces.response().usage.output_tokens}, "end")
        except SDKError as error:  # the status 200 was sent before, so it must be an event
            yield event(error.message, "failed")

    @app.get("/")
    async def page() -> HTMLResponse:
        return HTMLResponse(PAGE)

    @app.get("/ask")
    async def ask(prompt: str) -> StreamingResponse:
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}  # nginx must not wait
        return StreamingResponse(answer(prompt), media_type="text/event-stream", headers=headers)

    return app


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--model", help="a real model; without it, a scripted one answers")
    parser.add_argument("--port", type=int, default=8000)
    arguments = parser.parse_args()
    story = text("Once upon a time there was a fox who lived in a wood. " * 20)
    slow = latency(between=0.05)
    client = Client.from_env() if arguments.model else scripted(lambda _: story + slow)
    app = create_app(client, arguments.model or "scripted:storyteller")
    uvicorn.run(app, port=arguments.port, log_level="warning")


if __name__ == "__main__":
    main()
