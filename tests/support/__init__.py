"""What all tests share: leak checks, real servers, a real terminal, measured numbers."""
