"""The conversation: turn loop, model backends, history in Gemini's wire form."""
