"""The MCP server `exact serve mcp`: tools that solve tasks, read runs and search memories."""
