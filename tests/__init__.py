"""The tests of gemdeck."""
