import os
import sys
from pathlib import Path

import exact

SERVER, FOLDER = str(Path(__file__).with_name("file_server.py")), os.environ.get("FOLDER", ".")

files = exact.ToolConfig(command=(sys.executable, SERVER, FOLDER), reads=("list_files", "read_file"))

if __name__ == "__main__":
    goal = "Open a ticket for the customer whose number stands in order.txt, and save what the page says as receipt.txt."
    site, model = os.environ.get("SITE", "http://127.0.0.1:8000"), os.environ.get("MODEL", "http://127.0.0.1:8080/v1")
    print(exact.solve_sync(goal, url=f"{site}/ticket", model=model, tools=[files]))
