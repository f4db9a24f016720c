import os
from dataclasses import dataclass

import exact

MODEL = os.environ.get("MODEL", "http://127.0.0.1:8080/v1")
SITE = os.environ.get("SITE", "http://127.0.0.1:8000")


@dataclass
class Hours:
    opens: int
    closes: int


solution = exact.solve_sync("When does the museum open and close?", url=SITE, model=MODEL, answer=Hours)
print(solution.data or solution)
