"""The provider of the distributed jobs: the simulator as a process, which notes each request."""

import sys
import time
from pathlib import Path

from interlingua.simulator import Simulator, latency, serve_in_thread, text


def main() -> None:
    """Serve until stdin is closed; the first line of stdout is the address."""
    with Path(sys.argv[1]).open("a", encoding="utf-8", buffering=1) as log:

        def reply(request):
            log.write(f"{time.time()} {request.messages[-1].text}\n")
            return text("Novel.") + latency(first=0.05)

        with serve_in_thread(Simulator(reply)) as server:
            print(server.url, flush=True)
            sys.stdin.read()


if __name__ == "__main__":
    main()
