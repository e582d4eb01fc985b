"""One question-and-answer session with a machine that has an NVIDIA card: does what llamarig plans come true on it?"""
