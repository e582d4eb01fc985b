"""converge."""
