"""Tools: functions of the user's, and those of MCP servers, as actions of an agent beside those of its environment."""
