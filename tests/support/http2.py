"""A server of HTTP/2, for `Server` of `support.servers`; needs the package `h2`."""

import asyncio
import ssl

READ = 65536


def http2_tls(certificate):
    """A context that offers only HTTP/2."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.set_alpn_protocols(["h2"])
    return context


def http2(answer):
    """
    A script that runs `answer(state, stream_id, number)` for each complete request.

    `number` counts the requests of one connection, from 1. The return value says whether the
    connection goes on.
    """

    async def script(connection):
        from h2.config import H2Configuration
        from h2.connection import H2Connection
        from h2.events import DataReceived, StreamEnded

        state = H2Connection(H2Configuration(client_side=False))
        state.initiate_connection()
        number = 0
        while True:
            connection.writer.write(state.data_to_send())
            await connection.writer.drain()
            data = await connection.reader.read(READ)
            if not data or connection.writer.is_closing():  # a test may have closed it
                return
            for event in state.receive_data(data):
                if isinstance(event, DataReceived):
                    state.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                if not isinstance(event, StreamEnded):
                    continue
                number += 1
                connection.requests.append(number)
                goes_on = answer(state, event.stream_id, number)
                connection.writer.write(state.data_to_send())
                await connection.writer.drain()
                if not goes_on:
                    await asyncio.sleep(0.01)
                    connection.writer.close()
                    return

    return script


def send(state, stream_id, body, *, end=True, headers=()):
    """A reply with this body."""
    state.send_headers(stream_id, [(":status", "200"), *headers])
    state.send_data(stream_id, body, end_stream=end)
