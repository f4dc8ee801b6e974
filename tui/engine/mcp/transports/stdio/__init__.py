"""Servers as processes: their pipes, their end, and the reapers that outlive gemdeck."""
