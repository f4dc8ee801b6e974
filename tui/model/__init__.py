"""Frozen data shared by all layers. No I/O, no SDK, no widgets.

Every external string in it has passed `tui.text.sanitize`; the originals (the server's tool
names, schemas, URIs) stay in the engine, by id.
"""
