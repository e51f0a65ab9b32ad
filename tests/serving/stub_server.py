"""HTTP servers of tests, with responses that a test chooses."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class StubHandler(BaseHTTPRequestHandler):
    """The requests of one connection; subclasses respond to methods."""

    protocol_version = "HTTP/1.1"
    # Each response is one packet, sent at once.
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, *_):
        """Write no log."""

    def read_body(self):
        """Return the bytes of the request's body."""
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def respond(self, status, body, headers=()):
        """Send a response of JSON."""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


class StubServer(ThreadingHTTPServer):
    """A server at a port of 127.0.0.1, with a thread per connection."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, handler, port=0):
        super().__init__(("127.0.0.1", port), handler)
        self.port = self.server_address[1]


@contextmanager
def running(server):
    """Serve in a thread."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
