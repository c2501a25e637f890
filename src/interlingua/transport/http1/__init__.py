"""
HTTP/1.1 on `asyncio.Protocol` and httptools (llhttp, the parser of Node.js).

`transport` is the transport that users see, `exchange` a request and its reply with timeouts and
limits, `pool` the connections of one event loop, `connection` one of them, `addresses` how one is
opened, `tls` the certificates. Only `transport` is imported before the first request.
"""
