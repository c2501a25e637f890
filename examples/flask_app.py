"""
Flask: blocking code in threads, with whole answers and with streams.

    pip install flask
    python examples/flask_app.py
    curl -d 'prompt=Hello!' http://127.0.0.1:8001/ask
    curl -N 'http://127.0.0.1:8001/stream?prompt=Hello!'

needs no key: the model is scripted. For a real model set its key in the environment (such as
`OPENAI_API_KEY`):

    python examples/flask_app.py --model openai:gpt-5.2
"""

import argparse
from collections.abc import Iterator

from flask import Flask, Response, request

from interlingua import Client, SDKError, sync
from interlingua.errors import RateLimitError
from interlingua.simulator import echo, latency, scripted


def create_app(client: Client | sync.Client, model: str) -> Flask:
    app = Flask(__name__)

    @app.post("/ask")
    def ask() -> dict[str, object]:
        result = sync.generate(model, request.form["prompt"], client=client, timeout=60)
        return {"answer": result.text, "tokens": result.usage.output_tokens}

    @app.get("/stream")
    def stream() -> Response:
        prompt = request.args["prompt"]  # read here: the request is over when the stream runs

        def pieces() -> Iterator[str]:
            # The server closes this generator when the browser has left. Leaving the block
            # then closes the connection to the model.
            with sync.stream(model, prompt, client=client) as answer:
                yield from answer.text_stream

        return Response(pieces(), mimetype="text/plain")

    @app.errorhandler(SDKError)
    def failed(error: SDKError) -> tuple[dict[str, str], int]:
        return {"error": error.message}, 429 if isinstance(error, RateLimitError) else 502

    return app


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--model", help="a real model; without it, a scripted one answers")
    parser.add_argument("--port", type=int, default=8001)
    arguments = parser.parse_args()
    slow = latency(between=0.05)
    client = Client.from_env() if arguments.model else scripted(lambda asked: echo(asked) + slow)
    app = create_app(client, arguments.model or "scripted:assistant")
    app.run(port=arguments.port)


if __name__ == "__main__":
    main()
