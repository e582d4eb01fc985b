"""The engine's compute buffers, by simulation of its graph, its scheduler and its allocator."""
