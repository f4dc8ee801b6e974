"""The parts of the chat: transcript, entries, composer."""
