"""Looking at a machine that no spec describes yet, and writing a first one."""
