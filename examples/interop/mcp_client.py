"""Client that starts `exact serve mcp`, has it solve a task and reads the search. Needs `pip install 'exact-agent[mcp,miniwob]'`."""

import asyncio
import os
import sys
import tempfile

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main() -> None:
    with tempfile.TemporaryDirectory() as runs:
        command = ["-m", "exact.cli", "serve", "mcp", "--runs", runs, "--set", "search.iterations=2"]
        server = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
        async with Client(stdio_client(server)) as client:
            solved = await client.call_tool("solve", {"task": "miniwob/click-test?seed=1"}, progress_callback=progress)
            found = solved.structured_content or {}
            tree = await client.call_tool("show_tree", {"run": found["run"]})
    print((tree.structured_content or {})["tree"])
    print(f"score {found['score']}")


async def progress(events: float, total: float | None, message: str | None) -> None:
    print(message, file=sys.stderr)


asyncio.run(main())
