"""The table of docs/lanes.md is made of the code's own: `python -m tests.support.lanes_table`."""

from pathlib import Path

from pillarbox_ingest.lanes import KINDS, UNKNOWN, Where, place

PAGE = Path(__file__).parents[2] / "docs" / "lanes.md"
HEAD = "| kind | its chat | its user | lane | with `LANE_BY=chat_user`, in a group |\n|---|---|---|---|---|\n"
GROUP, PERSON, NUMBER = -100, 7, 17


def table() -> str:
    rows = [_row(f"`{kind}`", kind, where) for kind, where in KINDS.items()]
    return HEAD + "".join([*rows, _row("a kind that is newer", "newer", UNKNOWN)])


def _row(name: str, kind: str, where: Where) -> str:
    ids = dict.fromkeys(where.chat, GROUP) | dict.fromkeys(where.user, PERSON)
    lanes = [place(kind, NUMBER, ids).lane, place(kind, NUMBER, ids, "chat_user").lane]
    chat, user = (
        ", else ".join(f"`{'.'.join(path[:-1])}`" for path in paths) for paths in (where.chat, where.user)
    )
    return f"| {name} | {chat} | {user} | {' | '.join(f'`{lane}`' for lane in lanes)} |\n"


def in_page(text: str) -> str:
    """The page's table, as it stands."""
    start = text.index(HEAD)
    return text[start : text.index("\n\n", start) + 1]


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text.replace(in_page(text), table()), encoding="utf-8")
