"""What the model is told beside the conversation: instructions, and files of context."""
