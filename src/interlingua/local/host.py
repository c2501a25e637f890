"""
The process that holds llama.cpp: settings come on stdin, its address goes out on stdout.

It is a process of its own because llama.cpp's threads do not survive a fork (a forked child
of a process that holds them hangs or aborts at its end), because loading holds the
interpreter's lock, and because a failed assertion in it would end the caller's program.
Run by its path, so it uses nothing of this package.
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
    """Serve until stdin ends, which it does when the parent stops or dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent to answer
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answer:
        os.dup2(2, 1)  # whatever llama.cpp prints is a log
        settings = json.loads(sys.stdin.buffer.readline())
        sys.path[:] = settings["sys_path"]
        try:
            server = _start(settings)
        except Exception:  # noqa: BLE001 # whatever it is, the parent reads it and says it
            traceback.print_exc()
            os._exit(1)
        answer.write(server.listening_address + "\n")
    sys.stdin.buffer.read()
    os._exit(0)  # nothing to save, and no wait for answers that nobody reads


def _start(settings: dict[str, Any]) -> Any:
    xllamacpp = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = settings["gguf"]
    params.model_alias = {settings["name"]}
    params.chat_template = settings["template"]
    params.verbosity = settings["verbosity"]
    params.port = 0  # any free one; the host is loopback by default
    params.ui = False
    params.cors_origins = ""  # no web page may read from it
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
