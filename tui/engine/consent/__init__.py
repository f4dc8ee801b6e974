"""Consent: folder trust, rules and grants, changed tools, and approval of calls."""
