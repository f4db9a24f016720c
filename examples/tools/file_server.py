"""An MCP server of the text files in one folder, over standard input and output: python file_server.py FOLDER"""

import sys
from pathlib import Path

from mcp.server import MCPServer
from mcp_types import ToolAnnotations

FOLDER = Path(sys.argv[1]).resolve()
READS = ToolAnnotations(read_only_hint=True)
server = MCPServer("files", log_level="WARNING")


def place(name: str) -> Path:
    """Return the path of a file in the folder."""
    path = (FOLDER / name).resolve()
    if path.parent != FOLDER:
        raise ValueError(f"{name} is not in the folder")
    return path


@server.tool(annotations=READS)
def list_files() -> str:
    """List the files."""
    return "\n".join(sorted(each.name for each in FOLDER.iterdir() if each.is_file()))


@server.tool(annotations=READS)
def read_file(name: str) -> str:
    """Read a file."""
    return place(name).read_text("utf-8")


@server.tool()
def write_file(name: str, text: str) -> str:
    """Write a file."""
    place(name).write_text(text, "utf-8")
    return f"{name} has {len(text)} characters"


if __name__ == "__main__":
    server.run("stdio")
