import pytest

from pillarbox_simulator.answers import Refused
from pillarbox_simulator.entities import plain, units


def test_tags_become_entities_with_offsets_in_utf_16() -> None:
    text, entities = plain(
        "😀 <b>bold <i>both</i></b> &lt;3 <a href='https://x.y?a=1&amp;b'>link</a>", "HTML"
    )
    assert text == "😀 bold both <3 link"
    assert entities == [
        {"type": "bold", "offset": 3, "length": 9},
        {"type": "italic", "offset": 8, "length": 4},
        {"type": "text_link", "offset": 16, "length": 4, "url": "https://x.y?a=1&b"},
    ]
    assert units("😀a") == 3


@pytest.mark.parametrize(
    ("source", "mode", "problem"),
    [
        ("a <x>b</x>", "HTML", 'can\'t parse entities: Unsupported start tag "x" at byte offset 2'),
        ("<b>x", "HTML", "can't parse entities: Can't find end tag corresponding to start tag \"b\""),
        ("é</b>", "HTML", "can't parse entities: Unexpected end tag at byte offset 2"),
        ("x", "nonsense", "unsupported parse_mode"),
    ],
)
def test_what_telegram_refuses_is_refused(source: str, mode: str, problem: str) -> None:
    with pytest.raises(Refused) as refused:
        plain(source, mode)
    assert refused.value.description == f"Bad Request: {problem}"
