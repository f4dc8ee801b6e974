"""Lists and logs that draw only the visible rows."""
