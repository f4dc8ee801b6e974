"""Text: blocks, Markdown, folded and labelled text."""
