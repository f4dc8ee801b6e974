"""The screen. The only place that imports Textual; it reads snapshots and gives commands."""
