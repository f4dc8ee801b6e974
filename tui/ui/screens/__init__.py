"""Full screens and modals."""
