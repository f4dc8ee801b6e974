"""What terminals differ in: how they send keys, and where copies go."""
