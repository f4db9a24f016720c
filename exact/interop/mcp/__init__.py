"""The MCP server `exact mcp`: tools that solve tasks, read runs and search memories."""
