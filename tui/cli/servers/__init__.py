"""``gemdeck mcp``: look at servers, use them and write them to the settings."""
