"""
Django: blocking views in a project of one file, with whole answers and with streams.

    pip install django
    python examples/django_app.py
    curl -d 'prompt=Hello!' http://127.0.0.1:8002/ask
    curl -N 'http://127.0.0.1:8002/stream?prompt=Hello!'

needs no key: the model is scripted. For a real model set its key in the environment (such as
`OPENAI_API_KEY`):

    MODEL=openai:gpt-5.2 python examples/django_app.py
"""

import os
import sys
from collections.abc import Iterator

import django
from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpRequest, JsonResponse, StreamingHttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from interlingua import SDKError, set_default_client, sync
from interlingua.simulator import echo, latency, scripted

settings.configure(
    ALLOWED_HOSTS=["127.0.0.1", "localhost"], ROOT_URLCONF=__name__, SECRET_KEY=os.urandom(32).hex()
)
django.setup()

MODEL = os.environ.get("MODEL", "scripted:assistant")
if MODEL.startswith("scripted:"):
    # Without this, the functions use a client that is made from the environment at first use.
    set_default_client(scripted(lambda asked: echo(asked) + latency(between=0.05)))


@csrf_exempt  # for curl; a form of your own page has a token
@require_POST
def ask(request: HttpRequest) -> JsonResponse:
    try:
        result = sync.generate(MODEL, request.POST["prompt"], timeout=60)
    except SDKError as error:
        return JsonResponse({"error": error.message}, status=502)
    return JsonResponse({"answer": result.text, "tokens": result.usage.output_tokens})


@require_GET
def stream(request: HttpRequest) -> StreamingHttpResponse:
    def pieces() -> Iterator[str]:
        # The server closes this generator when the browser has left. Leaving the block then
        # closes the connection to the model.
        with sync.stream(MODEL, request.GET["prompt"]) as answer:
            yield from answer.text_stream

    return StreamingHttpResponse(pieces(), content_type="text/plain")


urlpatterns = [path("ask", ask), path("stream", stream)]

if __name__ == "__main__":
    port = sys.argv[1] if len(sys.argv) > 1 else "8002"
    execute_from_command_line([sys.argv[0], "runserver", "--noreload", f"127.0.0.1:{port}"])
