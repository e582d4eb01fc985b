"""One file a verb; typer finds them, rich prints."""
