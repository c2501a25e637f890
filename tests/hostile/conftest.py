"""What every test against a hostile server needs."""

import pytest

from interlingua.transport import AiohttpTransport, HttpxTransport


@pytest.fixture(params=[AiohttpTransport, HttpxTransport], ids=["aiohttp", "httpx2"])
def transport_type(request):
    """Each transport that opens sockets."""
    return request.param
