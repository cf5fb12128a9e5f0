"""`python -m pillarbox.probe URL`: exit code 0 when the address answers 200, else 1 and a line that says why.

The health check of the containers, whose image has no curl. It runs every few seconds, so it imports little.
"""

import http.client
import sys
from urllib.parse import urlsplit

TIMEOUT = 4.0
SHOWN = 300


def ask(url: str, timeout: float = TIMEOUT) -> str | None:
    """What is wrong with the answer of `url`; None when it is 200."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.netloc, timeout=timeout)
    try:
        connection.request("GET", address.path or "/")
        answer = connection.getresponse()
        body = answer.read(SHOWN).decode(errors="replace").strip()
    except (OSError, http.client.HTTPException) as error:
        return type(error).__name__
    finally:
        connection.close()
    return None if answer.status == 200 else f"{answer.status} {body}"


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m pillarbox.probe URL")
    wrong = ask(sys.argv[1])
    if wrong is not None:
        raise SystemExit(wrong)


if __name__ == "__main__":
    main()
