"""Servers of other clients, as entries for our settings; nothing is started or written."""
