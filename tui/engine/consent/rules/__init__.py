"""Rules on tools: what is denied, what is asked about and what runs unasked."""
