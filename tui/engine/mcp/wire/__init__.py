"""What was said between gemdeck and its servers: noted, shown, kept and played again."""
