"""Frozen data that every layer speaks. No I/O, no SDK, no widgets.

Every string in here that came from outside has passed `tui.text.sanitize`; the raw originals
(tool names as the server spells them, schemas, URIs) stay in the engine, reachable by id.
"""
