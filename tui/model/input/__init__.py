"""What a user fills in: typed lines, arguments as text, URI templates."""
