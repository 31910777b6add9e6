"""The server of the explorer: the page, its modules, and what it asks for, on this computer only.

It answers only requests whose Host is a loopback address with its own port, and whose Origin, if there is one, is its
own: a web page elsewhere cannot ask it. It never opens a path that a request names: the files of the page are a list
made at the start.
"""

import json
import secrets
import select
import socket
import sys
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, urlsplit

from jumok.errors import ConfigError, JumokError
from jumok.lens.session import Session

ADDRESS = "127.0.0.1"
LARGEST_REQUEST = 1 << 25  # bytes; a photo is large
TYPES = {".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".html": "text/html"}
POLICY = (
    "default-src 'none'; script-src 'self' 'nonce-{nonce}'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def web_files() -> dict[str, str]:
    """The files of the page by name: hand-written, and served as they are."""
    directory = files("jumok.lens") / "web"
    return {
        file.name: file.read_text(encoding="utf-8")
        for file in sorted(directory.iterdir(), key=lambda file: file.name)
        if file.is_file() and "." in file.name and "." + file.name.rsplit(".", 1)[1] in TYPES
    }


def import_map(names: list[str], address: Callable[[str], str]) -> str:
    """Where the modules of the page are: they import each other as `jumok/NAME`."""
    return json.dumps({"imports": {f"jumok/{name}": address(name) for name in names if name.endswith(".js")}})


class Explorer(ThreadingHTTPServer):
    """The server; `serve_forever()` runs it. Port 0: any that is free."""

    daemon_threads = True

    def __init__(self, session: Session, port: int, start: dict[str, Any] | None = None) -> None:
        self.session, self.start, self.web = session, start or {}, web_files()
        try:
            super().__init__((ADDRESS, port), _Handler)
        except (OSError, OverflowError) as error:
            raise ConfigError(f"Port {port} cannot be used ({error}). Choose another with `port=`.") from error

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{ADDRESS}:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the middle is no error; anything else is shown."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def page(self, nonce: str) -> str:
        """index.html with the map of its modules and what it starts with."""
        names = import_map(list(self.web), lambda name: f"/web/{name}")
        return (
            self.web["index.html"]
            .replace("<!--import-map-->", f'<script type="importmap" nonce="{nonce}">{names}</script>')
            .replace("<!--start-->", embedded_json(self.start | {"server": True, "training": self.session.training()}))
            .replace("<!--style-->", '<link rel="stylesheet" href="/web/style.css">')
            .replace("<!--main-->", '<script type="module" src="/web/main.js"></script>')
        )


def embedded_json(value: Any) -> str:
    """JSON inside of HTML that a browser does not run. `<` is escaped, so that no text can end the element."""
    text = json.dumps(value, ensure_ascii=False).replace("<", "\\u003c").replace("\u2028", "\\u2028")
    return f'<script type="application/json" id="start">{text}</script>'


class _Handler(BaseHTTPRequestHandler):
    server: Explorer
    server_version, sys_version = "jumok", ""
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if not self._is_from_here():
            return
        address = urlsplit(self.path)
        name = address.path.removeprefix("/web/")
        if address.path == "/":
            nonce = secrets.token_urlsafe(16)
            self._answer(self.server.page(nonce).encode(), "text/html", POLICY.format(nonce=nonce))
        elif address.path.startswith("/web/") and name in self.server.web:
            self._answer(self.server.web[name].encode(), TYPES["." + name.rsplit(".", 1)[1]])
        elif address.path == "/api/models":
            self._json(lambda: self.server.session.models())
        elif address.path == "/api/log":
            self._json(lambda: self.server.session.log())
        elif address.path == "/api/replay":
            step = parse_qs(address.query).get("step", [""])[0]
            self._json(lambda: self.server.session.replay(int(step) if step.isdecimal() and len(step) < 12 else None))
        elif address.path == "/api/array":
            query = {key: values[0] for key, values in parse_qs(address.query).items()}
            self._try(lambda: self._array(query.get("trace", ""), query.get("name", "")))
        else:
            self._fail(HTTPStatus.NOT_FOUND, "There is no such page.")

    def do_POST(self) -> None:
        if not self._is_from_here():
            return
        try:
            length = int(self.headers.get("Content-Length", ""))
            if not 0 <= length <= LARGEST_REQUEST or self.headers.get_content_type() != "application/json":
                raise ValueError
            contents = json.loads(self.rfile.read(length))
            if not isinstance(contents, dict):
                raise ValueError
        except (ValueError, RecursionError):
            self.close_connection = True
            self._fail(HTTPStatus.BAD_REQUEST, f"A request is a JSON object of at most {LARGEST_REQUEST:,} bytes.")
            return
        if self.path == "/api/trace":
            self._json(lambda: self.server.session.trace(contents, check=self._require_reader))
        elif self.path == "/api/attribution":
            self._json(lambda: self.server.session.attribution(contents))
        elif self.path == "/api/rank":
            self._try(lambda: self._stream(contents))
        else:
            self._fail(HTTPStatus.NOT_FOUND, "There is no such page.")

    def _is_from_here(self) -> bool:
        """Refuse requests that a page of another site sent, by its own name for this address or by its origin."""
        hosts = {f"{host}:{self.server.server_port}" for host in (ADDRESS, "localhost")}
        origin = self.headers.get("Origin")
        if self.headers.get("Host") in hosts and origin in (None, *(f"http://{host}" for host in hosts)):
            return True
        self.close_connection = True
        self._fail(HTTPStatus.FORBIDDEN, "The explorer answers only to its own page.")
        return False

    def _require_reader(self) -> None:
        """Raise if the page has closed the connection: it asked for something else meanwhile."""
        if select.select([self.connection], [], [], 0)[0] and not self.connection.recv(1, socket.MSG_PEEK):
            raise ConnectionResetError("The page no longer waits for the answer.")

    def _array(self, identity: str, name: str) -> None:
        self._answer(self.server.session.array(identity, name), "application/octet-stream")

    def _stream(self, contents: dict[str, Any]) -> None:
        """One JSON object a line, each sent as soon as it is known."""
        found = self.server.session.rank(contents)
        first = next(found, None)  # an error comes before the answer begins
        self.send_response(HTTPStatus.OK)
        self._headers("application/x-ndjson")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        while first is not None:
            self.wfile.write(json.dumps(first).encode() + b"\n")
            self.wfile.flush()
            first = next(found, None)

    def _json(self, compute: Callable[[], Any]) -> None:
        self._try(lambda: self._answer(json.dumps(compute(), ensure_ascii=False).encode(), "application/json"))

    def _try(self, answer: Callable[[], None]) -> None:
        try:
            answer()
        except JumokError as error:
            self._fail(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
        except (BrokenPipeError, ConnectionResetError):  # the page was closed, or does not want the rest
            self.close_connection = True

    def _answer(self, body: bytes, kind: str, policy: str | None = None, status: int = HTTPStatus.OK) -> None:
        self.send_response(status)
        self._headers(kind)
        self.send_header("Content-Length", str(len(body)))
        if policy:
            self.send_header("Content-Security-Policy", policy)
        self.end_headers()
        self.wfile.write(body)

    def _headers(self, kind: str) -> None:
        text = kind.startswith("text/") or kind.endswith("json")
        self.send_header("Content-Type", f"{kind}; charset=utf-8" if text else kind)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")

    def _fail(self, status: HTTPStatus, message: str) -> None:
        self._answer(json.dumps({"error": message}, ensure_ascii=False).encode(), "application/json", status=status)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal is for the address of the page."""
