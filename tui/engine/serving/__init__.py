"""gemdeck's servers for other clients: what these get, and how it is served."""
