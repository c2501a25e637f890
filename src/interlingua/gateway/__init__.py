"""
The gateway: any client in, any model out (`interlingua serve`).

`config` reads the section `gateway` of the registry file, `keys` checks who calls, `server` runs
`serving.ClientApplication` on uvicorn, over the connections of `protocol`. The way of a request is
in `serving/client_application.py`.

`source` is what a gateway is made of. `reload` runs one in this process; `workers` is the parent of
several processes, `worker` each of them, `channel` what they tell each other. In each, `editions`
replaces the configuration while requests are under way.
"""
