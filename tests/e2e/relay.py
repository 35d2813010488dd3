"""Let a container reach what listens on loopback, and nobody else: a relay on the address of the engine's bridge."""

import contextlib
import selectors
import socket
import socketserver
import threading
from collections.abc import Iterator

CHUNK = 65_536
QUIET_S = 60.0


def pump(one: socket.socket, other: socket.socket) -> None:
    """Pass bytes both ways until one side ends, or nothing comes for `QUIET_S`."""
    with selectors.DefaultSelector() as selector:
        selector.register(one, selectors.EVENT_READ, other)
        selector.register(other, selectors.EVENT_READ, one)
        while ready := selector.select(QUIET_S):
            for key, _ in ready:
                source = key.fileobj
                assert isinstance(source, socket.socket)
                if not (chunk := source.recv(CHUNK)):
                    return
                key.data.sendall(chunk)


@contextlib.contextmanager
def relay(host: str, url: str) -> Iterator[str]:
    """Relay connections to `host` at a free port to a loopback URL, until the block ends; gives the URL to use instead.

    Raises:
        OSError: `host` is no address of this machine.
    """
    port = int(url.rpartition(":")[2])

    class Connection(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection(("127.0.0.1", port)) as inner, contextlib.suppress(OSError):
                pump(self.request, inner)

    with socketserver.ThreadingTCPServer((host, 0), Connection) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield f"http://{host}:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
