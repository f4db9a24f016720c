import asyncio
import os
from pathlib import Path

import exact

MODEL = os.environ.get("MODEL", "http://127.0.0.1:8080/v1")
SITE = os.environ.get("SITE", "http://127.0.0.1:8000")
VISIT = Path("visit")
HOW = {"resume": VISIT} if VISIT.exists() else {"url": SITE, "model": MODEL, "out": VISIT}


async def main():
    async with exact.session(**HOW) as session:
        for goal in ("Until when is it open?", "Open the page to book.", "Fill in the name Ann and 2 visitors, and click Book."):
            solution = await session.solve(goal)
            print(solution.answer)
        print(await session.page.get_by_role("heading").first.inner_text(), session.lost)


asyncio.run(main())
