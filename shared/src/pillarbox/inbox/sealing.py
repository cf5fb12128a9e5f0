"""Which updates are sealed: a text, caption or document in them is an OpenPGP message.

Looked for in the bytes, before anybody reads them, and rather once too often: also in what a message answers
or quotes. Nothing is opened here.
"""

import re

ARMOR = b"BEGIN PGP MESSAGE"
MIME = re.compile(rb'"application\\?/pgp-encrypted"')
FILE = re.compile(rb'"file_name"\s*:\s*"(?:[^"\\]|\\.)*\.(?:asc|gpg|pgp)"', re.IGNORECASE)


def is_sealed(body: bytes) -> bool:
    if ARMOR in body:
        return True
    return b"document" in body and (MIME.search(body) or FILE.search(body)) is not None
