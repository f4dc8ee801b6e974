"""What servers ask of us: forms, addresses to open, text to generate, roots."""
