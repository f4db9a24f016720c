import asyncio
import os

import exact

MODEL = os.environ.get("MODEL", "http://127.0.0.1:8080/v1")
SITE = os.environ.get("SITE", "http://127.0.0.1:8000")


async def approve(action, request):
    print(action, "sends", request.method, request.url, request.fields)
    return await asyncio.to_thread(input, "Send it? [y/n] ") == "y"


goal = "Fill in the name Ann and 2 visitors, and click Book."
solution = exact.solve_sync(goal, url=f"{SITE}/book", model=MODEL, approve=approve)
print(solution)
