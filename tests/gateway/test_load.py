"""Streams under load: nothing is lost for those who stay, nothing is left of those who leave."""

import asyncio
import sys

import pytest
import uvicorn

from interlingua.gateway.config import ServerTimeouts
from interlingua.gateway.editions import Editions
from interlingua.gateway.protocol import timed_protocol
from interlingua.gateway.server import listen, url_of
from interlingua.gateway.source import Source
from interlingua.simulator import serve_in_thread
from support.gateways import SECRET, Program, file_text
from support.load import CountingSimulator, check, read_streams, shake, until

ROUTES = ("any: openai:gpt-5.2", "any: openai:gpt-5.1, other: openai:x")


def test_no_task_is_left_of_streams_and_reloads(tmp_path):
    """In one process: clients leave at random while the file is reloaded again and again."""
    upstream = CountingSimulator(between=0.005)

    async def serve(url):
        path = tmp_path / "interlingua.yaml"
        path.write_text(file_text(url, routes=ROUTES[0]), encoding="utf-8")
        source = Source(secret=SECRET, environ={}, path=str(path)).renew({})
        app = Editions(source)
        protocol = timed_protocol(ServerTimeouts())
        server = uvicorn.Server(uvicorn.Config(app, http=protocol, lifespan="off", log_config=None))
        with listen("127.0.0.1", 0) as bound:
            before = asyncio.all_tasks()
            serving = asyncio.create_task(server.serve([bound]))
            await until(lambda: server.started)
            streams = asyncio.create_task(read_streams(url_of(bound), Program.key, 120, over=0.5))
            for number in range(10):
                await asyncio.sleep(0.05)
                path.write_text(file_text(url, routes=ROUTES[number % 2]), encoding="utf-8")
                app.replace(source.renew({}))
            outcomes = await streams
            await until(lambda: not server.server_state.tasks)
            await until(lambda: not upstream.active)
            await asyncio.sleep(0.1)
            left = asyncio.all_tasks() - before - {serving}
            server.should_exit = True
            await serving
            await app.close()
        return outcomes, left

    with serve_in_thread(upstream) as server:
        outcomes, left = asyncio.run(serve(server.url))

    check(outcomes)
    assert not left
    assert sum(each.has_left for each in outcomes) > 10
    assert upstream.most > 5


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_streams_outlive_what_happens_to_other_workers(tmp_path):
    """Workers are killed and reloaded; only the streams of a killed one are cut."""
    upstream = CountingSimulator(between=0.02)
    with serve_in_thread(upstream) as server:
        texts = [file_text(server.url, routes=routes) for routes in ROUTES]
        with Program(tmp_path, texts[0], "--workers", "2") as front:
            found = asyncio.run(shake(front, upstream, texts, 150, over=3, kills=1))

    check(found.outcomes, found.cut)
    assert sum(each.is_whole for each in found.outcomes) > 50
    assert [*found.grown.values()] == [0]
