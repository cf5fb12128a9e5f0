"""What is kept of an error: type, message and place, as in `KeyError: 'city' at bot.py:31`.

Of a sealed update's error no message of any kind is kept: it could quote what was opened.
"""

import re

MOST = 2000
TYPE = r"^([A-Za-z_][A-Za-z0-9_.]*)(?=:| at |$)"
"""For PostgreSQL too; `\\Z` is what it calls `$`."""
_TYPE = re.compile(TYPE.replace("$", r"\Z"))
_PLACE = re.compile(r" at [^ /]{1,200}\.py:[0-9]{1,9}\Z")


def error_type(error: str) -> str:
    """`KeyError` of `KeyError: 'city' at bot.py:31`; a text of another form is its own type."""
    found = _TYPE.match(error)
    return found[1] if found else error


def kept_error(error: str, *, sealed: bool = False) -> str:
    """What any database takes of it, and its place in any case; for a sealed update without the message."""
    text = without_message(error) if sealed else error
    if len(text) > MOST:
        place = _place(text)
        text = text[: MOST - len(place)] + place
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def without_message(error: str) -> str:
    found = _TYPE.match(error)
    return (found[1] if found else "Error") + _place(error)


def _place(error: str) -> str:
    found = _PLACE.search(error)
    return found[0] if found else ""
