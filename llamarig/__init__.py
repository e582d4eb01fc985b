"""llamarig: a host spec in, a proven inference box out."""

__version__ = "0.1.0"
