"""An ASGI application and an HTTP server over the dialects' `serve`: for simulator and gateway."""
