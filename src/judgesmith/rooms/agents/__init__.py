"""Commands as tools of an agent that has no command line, by the Model Context Protocol (MCP)."""
