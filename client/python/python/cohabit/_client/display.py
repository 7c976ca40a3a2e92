"""Tables in notebooks that follow their job."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ..errors import CohabitError
from .html import jobs_table
from .records import JobRecord

if TYPE_CHECKING:
    from ..client import JobHandle


def show_until_end(job: JobHandle) -> None:
    """Shows a table of the job in the notebook, and keeps it up to date until the job has ended."""
    from IPython.display import display

    record = job.record()
    handle = display(_shown(record), raw=True, display_id=True)
    if handle is None or record.has_ended:
        return

    def follow() -> None:
        try:
            shown: JobRecord = record
            for latest in job.watch():
                if latest != shown:
                    handle.update(_shown(latest), raw=True)
                    shown = latest
        except CohabitError:
            return  # The table stays as it was last known.

    threading.Thread(target=follow, name=f"cohabit-display-{job.id}", daemon=True).start()


def _shown(record: JobRecord) -> dict[str, str]:
    """What a browser shows, and what a terminal does."""
    return {"text/html": jobs_table([record]), "text/plain": str(record)}
