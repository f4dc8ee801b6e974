"""The state of the app as frozen snapshots, how it changes, and the commands to the engine."""
