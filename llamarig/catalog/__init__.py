"""Facts about the world as YAML, with typed access. Imports nothing of llamarig but errors."""
