"""Finding out what a spec leaves ``unlocked``: the only part of llamarig that looks things up on the internet."""
