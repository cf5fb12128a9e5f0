"""What a request is served with. Built once by `app`; routes ask for it as `Given`."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from pillarbox.inbox import Storage
from pillarbox_admin.acts import Acts
from pillarbox_admin.drawing import Drawing
from pillarbox_admin.holders import Holders
from pillarbox_admin.inbox_reader import InboxReader
from pillarbox_admin.jobs import Jobs
from pillarbox_admin.outbound import Outbound
from pillarbox_admin.reader import Reader
from pillarbox_admin.sessions import Sessions


@dataclass(frozen=True, slots=True)
class Parts:
    holders: Holders
    sessions: Sessions
    storage: Storage
    reader: Reader | InboxReader
    acts: Acts
    jobs: Jobs
    outbound: Outbound
    drawing: Drawing


def parts(request: Request) -> Parts:
    given: Parts = request.app.state.parts
    return given


Given = Annotated[Parts, Depends(parts)]
