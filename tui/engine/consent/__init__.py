"""Who may run what: session grants, and the broker that asks."""
