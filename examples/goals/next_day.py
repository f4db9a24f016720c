import os

import exact

MODEL = os.environ.get("MODEL", "http://127.0.0.1:8080/v1")
SITE = os.environ.get("SITE", "http://127.0.0.1:8000")


async def approve(action, request):
    print(request.text)
    return True


goal = "Fill in the name Ann and 2 visitors, and click Book."
first = exact.solve_sync(goal, url=f"{SITE}/book", model=MODEL, out="monday")
again = exact.solve_sync(goal, url=f"{SITE}/book", model=MODEL, out="tuesday", replay="monday", variables={"Name": "Bob"}, approve=approve)
print(again.answer, again.result.followed, "actions followed,", again.result.calls, "calls", *again.result.healed)
