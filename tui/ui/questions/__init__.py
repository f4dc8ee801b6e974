"""Questions to the user: modal screens whose answers count only when armed."""
