import mailbox
import os
import re
from pathlib import Path

import exact

MAIL = os.environ.get("MAIL", Path.home() / "Maildir")


@exact.tool(effect="read")
def newest_code() -> str:
    """Read the newest one-time code from the mailbox. It may take a while to come: read again."""
    letters = sorted(mailbox.Maildir(MAIL), key=lambda letter: letter.get_date())
    found = re.search(r"\b\d{6}\b", letters[-1].get_payload()) if letters else None
    return found[0] if found else "no code has come yet"


if __name__ == "__main__":
    goal = "Log in as Ann, with the code that is sent by mail."
    site, model = os.environ.get("SITE", "http://127.0.0.1:8000"), os.environ.get("MODEL", "http://127.0.0.1:8080/v1")
    print(exact.solve_sync(goal, url=f"{site}/login", model=model, tools=[newest_code]))
