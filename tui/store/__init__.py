"""The application state as frozen snapshots, its reducer, and the commands to the engine."""
