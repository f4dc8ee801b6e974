"""Who may run what: folder trust, rules and grants, changed tools, and the broker that asks."""
