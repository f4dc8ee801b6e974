"""What was said between gemdeck and its servers, as data."""
