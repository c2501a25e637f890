"""Video jobs against the simulator: a client with one adapter for each form of the API."""

import contextlib

from interlingua.client.client import Client
from interlingua.providers.adapter import HttpAdapter
from interlingua.simulator import Simulator, serve_in_thread

KEY = "sk-planted-key-of-a-test"
MODELS = {
    "gemini": "gemini:veo-3.1-generate-001",
    "vertex": "vertex:veo-3.1-generate-001",
    "xai": "xai:grok-imagine-video",
    "openai_compatible": "openai_compatible:sora-2",
}
"""A model for each form."""
FAST = 0.001  # seconds between two questions


class VideoPeer:
    """A simulator that runs, and a client for it."""

    def __init__(self, app, server, **settings):
        self.app = app
        self.server = server
        self.settings = settings
        self.client = Client(adapters(server.url), **settings)

    @property
    def calls(self):
        """The method and path of each call that the simulator has received."""
        return [f"{each.method} {each.call.path}" for each in self.app.script.received]


def adapters(url):
    project = f"{url}/v1/projects/p/locations/l/publishers/google"
    bases = {"gemini": url, "vertex": project, "openai": url}
    bases |= dict.fromkeys(("xai", "openai_compatible"), f"{url}/v1")
    return {name: HttpAdapter(name, KEY, base_url=base) for name, base in bases.items()}


@contextlib.contextmanager
def video_peer(*scripts, **settings):
    """A simulator whose jobs go on as the scripts say."""
    app = Simulator(key=KEY, videos=scripts)
    with serve_in_thread(app) as server:
        yield VideoPeer(app, server, **settings)
