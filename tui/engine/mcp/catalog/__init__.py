"""What servers offer, under which names, and the results of calls."""
