import os
import sqlite3

import exact

DATABASE = os.environ.get("DATABASE", "customers.sqlite")


@exact.tool(effect="read")
def find_customer(name: str, limit: int = 3) -> list[dict[str, str | int]]:
    """Find customers by a part of their name."""
    with sqlite3.connect(f"file:{DATABASE}?mode=ro", uri=True) as database:
        rows = database.execute("SELECT number, name FROM customers WHERE name LIKE ? LIMIT ?", (f"%{name}%", limit))
        return [{"number": number, "name": known} for number, known in rows]


@exact.tool
def close_account(number: int) -> str:
    """Close the account of a customer."""
    with sqlite3.connect(DATABASE) as database:
        if not database.execute("DELETE FROM customers WHERE number = ?", (number,)).rowcount:
            raise exact.ActionError(f"there is no customer {number}")
    return f"the account {number} is closed"


if __name__ == "__main__":
    goal = "Open a ticket for the customer Ann Lee."
    site, model = os.environ.get("SITE", "http://127.0.0.1:8000"), os.environ.get("MODEL", "http://127.0.0.1:8080/v1")
    print(exact.solve_sync(goal, url=f"{site}/ticket", model=model, tools=[find_customer, close_account]))
