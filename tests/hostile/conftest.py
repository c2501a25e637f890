"""What every test against a hostile server needs."""

import pytest

from interlingua.transport import HttpTransport, HttpxTransport


@pytest.fixture(params=[HttpTransport, HttpxTransport], ids=["http1", "httpx2"])
def transport_type(request):
    """Each transport that opens sockets."""
    return request.param
