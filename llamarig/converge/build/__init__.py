"""Releases that are made elsewhere than on the hosts that run them: on a builder host, or in a container."""
