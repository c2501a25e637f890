"""The ASGI application and HTTP server that the simulator and a gateway are built on."""
