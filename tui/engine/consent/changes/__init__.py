"""Tools that their servers changed: known by their definitions, withheld until accepted."""
