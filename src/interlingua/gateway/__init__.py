"""
The gateway: any client in, any model out (`interlingua serve`).

`config` reads the section `gateway` of the registry file, `keys` checks who calls, `server` runs
`serving.ClientApplication` on uvicorn. The way of a request is in `serving/client_application.py`.
"""
