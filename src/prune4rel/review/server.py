"""The server behind the page: who may ask, what is answered, nothing else.

It serves one folder to whoever holds its token. Every question carries the token, decisions in a header that no other
site can make a browser send; a `Host` that is not this server's is refused, so that no other name can be made to lead
here. The page may load nothing from anywhere else and run no script but its own.
"""

import errno
import hmac
import ipaddress
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from prune4rel.decisions import ConflictError
from prune4rel.errors import InputError
from prune4rel.reading import parse_json
from prune4rel.review.session import Filter, Review
from prune4rel.review.thumbnails import Thumbnails

CARRIER = "x-token"
MOST_BODY = 1_000_000
"""Bytes a request may bring."""

LONGEST_NAME = 80
PORTS_TRIED = 20
LOOPBACK = ("127.0.0.1", "localhost", "::1")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
PAGE = {
    "/": ("index.html", "text/html"),
    "/review.css": ("review.css", "text/css"),
    "/examples.js": ("examples.js", "text/javascript"),
    "/review.js": ("review.js", "text/javascript"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
OPEN = frozenset(PAGE) - {"/"}
"""What says nothing of the examples and needs no token."""

STRANGER = """<!doctype html><html lang="en"><meta charset="utf-8"><title>prune4rel review</title>
<h1>This address lacks its token</h1>
<p>Open the whole address that <code>prune4rel review</code> printed; it ends in <code>?token=...</code>.
Nothing that was shown as saved is lost.</p>"""


def make_app(review: Review, thumbnails: Thumbnails | None, *, token: str, host: str, port: int) -> Starlette:
    """Make the application.

    Parameters
    ----------
    review
        What there is to see and to decide.
    thumbnails
        Its pictures, if it has any.
    token
        What every question has to carry.
    host, port
        Where it is going to listen.
    """

    async def picture(request: HttpRequest) -> Response:
        if thumbnails is None:
            raise InputError("these examples are no pictures")
        row, size = _number(request, "row"), _number(request, "size")
        split = request.query_params.get("split", "train")
        data, kind = await run_in_threadpool(thumbnails.picture, row, size, split)
        return Response(data, media_type=kind, headers={"Cache-Control": "private, max-age=3600"})

    routes = [
        *(Route(path, _page) for path in PAGE),
        Route("/picture", picture),
        _asked("about", lambda _: review.about()),
        _asked("rows", lambda asked: review.rows(_filter(asked), _number(asked, "start"), _number(asked, "count"))),
        _asked("example", lambda asked: review.example(_number(asked, "row"))),
        _asked("changes", lambda asked: review.changes(_number(asked, "since"))),
        _asked("left", lambda asked: review.left(_filter(asked), _number(asked, "position"))),
        _told("look", lambda body, _: review.look(*_bulk(body, review))),
        _told("decide", lambda body, who: review.decide(_list(body, "decisions"), who)),
        _told("undo", lambda body, who: review.undo(_text(body, "batch"), who)),
        _told("accept", lambda body, who: review.accept(*_bulk(body, review), _text(body, "ticket") or "", who)),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Gate, token=token, host=host, port=port)],
        exception_handlers={ConflictError: _conflict, InputError: _refused},
    )


async def _page(request: HttpRequest) -> Response:
    name, kind = PAGE[request.url.path]
    text = (files("prune4rel.review") / "page" / name).read_bytes()
    return Response(text, media_type=kind, headers={"Cache-Control": "no-cache"})


def _asked(name: str, ask: Callable[[HttpRequest], Any]) -> Route:
    async def endpoint(request: HttpRequest) -> Response:
        return JSONResponse(await run_in_threadpool(ask, request))

    return Route(f"/api/{name}", endpoint, methods=["GET"])


def _told(name: str, do: Callable[[dict[str, Any], str], Any]) -> Route:
    async def endpoint(request: HttpRequest) -> Response:
        body = await _body(request)
        who = body.get("who")
        if not isinstance(who, str) or len(who) > LONGEST_NAME:
            raise InputError("who decides? give a name")
        return JSONResponse(await run_in_threadpool(do, body, who))

    return Route(f"/api/{name}", endpoint, methods=["POST"])


def _bulk(body: dict[str, Any], review: Review) -> tuple[int, int, float]:
    given, predicted, confidence = (body.get(name) for name in ("given", "predicted", "confidence"))
    if type(given) is not int or type(predicted) is not int or not isinstance(confidence, int | float):
        raise InputError("name two classes and a confidence")
    classes = range(len(review.labels.class_names))
    if given not in classes or predicted not in classes or given == predicted:
        raise InputError("name two different classes")
    return given, predicted, float(confidence)


def _filter(request: HttpRequest) -> Filter:
    return Filter.read(parse_json(request.query_params.get("filter", "{}"), "the filter"))


@contextmanager
def listen(host: str, port: int) -> Iterator[socket.socket]:
    """Open a socket to listen on; where the port is taken, on the next free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in (port, *range(port + 1, min(port + PORTS_TRIED, 2**16)), 0):
        place = socket.socket(family, socket.SOCK_STREAM)
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            place.bind((host, candidate))
        except OSError as error:
            place.close()
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                continue
            raise InputError(f"{host}: cannot listen there ({error.strerror or error})") from None
        with place:
            yield place
        return
    raise InputError(f"{host}: no port is free")


class Gate:
    """Lets in who holds the token and asks for this server by its name; adds the headers that shut others out."""

    def __init__(self, app: ASGIApp, *, token: str, host: str, port: int) -> None:
        self.app, self.token, self.host, self.port = app, token, host, port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = HttpRequest(scope)

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *extra]}
            await send(message)

        refusal = self._refusal(request)
        await (self.app if refusal is None else refusal)(scope, receive, sealed)

    def _refusal(self, request: HttpRequest) -> Response | None:
        if not self._is_mine(request.headers.get("host", "")):
            return Response("this server is not called that\n", 421, media_type="text/plain")
        if request.url.path in OPEN:
            return None
        given = request.headers.get(CARRIER) or (
            "" if request.method == "POST" else request.query_params.get("token", "")
        )
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            if request.url.path == "/":
                return Response(STRANGER, 403, media_type="text/html")
            return JSONResponse({"error": "the token is missing or wrong; open the address that was printed"}, 403)
        if request.method == "POST" and (origin := request.headers.get("origin")) is not None:
            scheme, _, rest = origin.partition("://")
            if scheme not in ("http", "https") or not self._is_mine(rest):
                return JSONResponse({"error": "another site asked for this"}, 403)
        return None

    def _is_mine(self, address: str) -> bool:
        """Whether an address names this server: by the host it was given, this machine, or a number."""
        name, _, port = address.rpartition(":") if not address.endswith("]") else (address, "", "")
        if not port.isdecimal() or int(port) != self.port:
            return False
        name = name.removeprefix("[").removesuffix("]").lower()
        if name in LOOPBACK or name == self.host.lower():
            return True
        if self.host not in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound # nosec
            return False
        if name == socket.gethostname().lower():
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


async def _body(request: HttpRequest) -> dict[str, Any]:
    data = b""
    async for part in request.stream():
        data += part
        if len(data) > MOST_BODY:
            raise InputError("this is too much at a time")
    body = parse_json(data, "what was sent")
    if not isinstance(body, dict):
        raise InputError("this is no JSON object")
    return body


def _number(request: HttpRequest, name: str) -> int:
    text = request.query_params.get(name, "")
    if not text.isascii() or not text.isdecimal() or len(text) > len(str(2**53)):
        raise InputError(f"{name} must be a whole number, not {text[:LONGEST_NAME]!r}")
    return int(text)


def _list(body: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = body.get(name)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise InputError(f"{name} must be a list of objects")
    return found


def _text(body: dict[str, Any], name: str) -> str | None:
    found = body.get(name)
    if not isinstance(found, str | None):
        raise InputError(f"{name} must be text")
    return found


async def _refused(_: HttpRequest, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 400)


async def _conflict(_: HttpRequest, error: Exception) -> Response:
    return JSONResponse({"error": str(error), "conflict": True}, 409)
