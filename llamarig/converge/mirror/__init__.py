"""All that a set of specs needs, in one directory, so that a site without internet access applies from it."""
