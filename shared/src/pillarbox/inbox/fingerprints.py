"""A key's fingerprint in the one form that is stored and compared."""

import re

from pillarbox.errors import FingerprintRefused

FORM = re.compile(r"\A(?:[0-9A-F]{40}|[0-9A-F]{64})\Z")


def fingerprint_of(text: str) -> str:
    """Upper case, without the blanks that programs show between groups; raises FingerprintRefused."""
    fingerprint = "".join(text.split(" ")).upper()
    if not FORM.match(fingerprint):
        raise FingerprintRefused("a fingerprint is 40 or 64 hexadecimal digits")
    return fingerprint
