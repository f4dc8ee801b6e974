"""Attacks, one test for each row of the project's threat list; the id stands in the test's name."""
