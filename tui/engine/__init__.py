"""Does the work: servers, chat, consent, settings. Knows neither the screen nor the store.

Nothing here imports the MCP SDK or google-genai at module level outside `servers.connection`,
`chat.gemini` and their neighbours that the manager loads in a thread once it is needed.
"""
