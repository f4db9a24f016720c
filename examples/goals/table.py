import asyncio
import csv
import os
from pathlib import Path
from typing import TypedDict

import exact

MODEL = os.environ.get("MODEL", "http://127.0.0.1:8080/v1")
SITE = os.environ.get("SITE", "http://127.0.0.1:8000")


class Shoe(TypedDict):
    name: str
    euros: int


class Shoes(TypedDict):
    shoes: list[Shoe]


solution = asyncio.run(exact.extract(Shoes, "the name and price of each shoe", url=f"{SITE}/shoes", model=MODEL))
with Path("shoes.csv").open("w", newline="") as file:
    table = csv.DictWriter(file, Shoe.__annotations__)
    table.writeheader()
    table.writerows(solution.data["shoes"])
print(len(solution.data["shoes"]), "shoes", "(not all)" if solution.result.partial else "")
