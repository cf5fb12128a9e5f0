"""The chat page: its files, read once."""

from importlib.resources import files

from pillarbox_simulator.web import Header

SCRIPT = b"text/javascript; charset=utf-8"
FILES = {
    "/": ("index.html", b"text/html; charset=utf-8"),
    "/page.css": ("page.css", b"text/css; charset=utf-8"),
    "/page.js": ("page.js", SCRIPT),
    "/api.js": ("api.js", SCRIPT),
    "/bubbles.js": ("bubbles.js", SCRIPT),
    "/faults.js": ("faults.js", SCRIPT),
    "/icon.svg": ("icon.svg", b"image/svg+xml"),
}
POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Page:
    headers: tuple[Header, ...] = (
        (b"content-security-policy", POLICY),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
        (b"cache-control", b"no-cache"),
    )

    def __init__(self) -> None:
        folder = files(__name__)
        self._files = {
            path: (kind, folder.joinpath(name).read_bytes()) for path, (name, kind) in FILES.items()
        }

    def __contains__(self, path: str) -> bool:
        return path in self._files

    def read(self, path: str) -> tuple[bytes, bytes]:
        """Content type and bytes."""
        return self._files[path]
