"""
The program of the child process that runs llama.cpp.

It reads its settings from stdin and writes its address to stdout. llama.cpp runs in a separate
process because its threads do not survive a fork (a forked child hangs or aborts at exit),
because loading a model holds the GIL, and because a failed assertion in llama.cpp would end the
caller's program. It is run by path, so it imports nothing from this package.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import traceback
from typing import Any


def main() -> None:
    """Serve until stdin is closed: by the parent, or by the system when the parent dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as output:
        os.dup2(2, 1)  # everything that llama.cpp prints goes to stderr, as a log
        settings = json.loads(sys.stdin.buffer.readline())
        sys.path[:] = settings["sys_path"]
        try:
            server = _start(settings)
        except Exception:  # noqa: BLE001 # the parent reads the traceback and reports the error
            traceback.print_exc()
            os._exit(1)
        output.write(server.listening_address + "\n")
    sys.stdin.buffer.read()
    os._exit(0)  # there is nothing to save, and nobody reads the unfinished answers


def _start(settings: dict[str, Any]) -> Any:
    xllamacpp = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = settings["gguf"]
    params.model_alias = {settings["name"]}
    params.chat_template = settings["template"]
    params.verbosity = settings["verbosity"]
    params.port = 0  # any free port; the host is loopback by default
    params.ui = False
    params.cors_origins = ""  # web pages must not use the server
    params.cors_origins_explicit = True
    params.n_ctx = settings["context"]
    params.n_parallel = settings["slots"]
    params.kv_unified = True  # the slots share the context instead of splitting it
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    if settings["embeddings"]:
        params.embedding = True
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    return xllamacpp.Server(params)


if __name__ == "__main__":
    main()
