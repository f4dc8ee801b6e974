"""What the user asks of servers: typed messages, resources, completions, log levels."""
