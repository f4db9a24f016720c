"""Servers and adapters that let other people's tools use exact: MCP clients, inspect_ai, BrowserGym and AgentLab."""
