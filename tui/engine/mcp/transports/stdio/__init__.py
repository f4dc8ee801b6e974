"""Servers as processes: their pipes, their end, and the reaper that outlives gemdeck."""
