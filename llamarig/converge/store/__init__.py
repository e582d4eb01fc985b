"""Files by content on the controller, and where each of them comes from."""
