"""Who may call a tool: the gate, rules and grants, changed tools."""
