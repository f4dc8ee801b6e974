"""What a server is: its definition, its fingerprint, and which files its command names."""
