"""A server's command as a shell takes it."""

from __future__ import annotations

import shlex

from llamarig.cli.plan_view.arguments import command_lines, unlearned_words
from llamarig.cli.plan_view.words import ram_words

ARGV = ["/opt/x/llama-server", "--model", "/m/a b.gguf", "--cache-ram", "-1", "--jinja", "--port", "8080"]


def test_the_lines_are_the_command_an_option_each() -> None:
    lines = list(command_lines({"A": "b c"}, ARGV))
    assert shlex.split("\n".join(lines).replace("\\\n", "")) == ["A=b c", *ARGV]
    assert [line.removesuffix(" \\") for line in lines] == [
        "A='b c'",
        "/opt/x/llama-server",
        "--model '/m/a b.gguf'",
        "--cache-ram -1",
        "--jinja",
        "--port 8080",
    ]
    assert not lines[-1].endswith("\\")


def test_a_card_without_a_known_uuid_is_said_in_words() -> None:
    words = unlearned_words({"CUDA_VISIBLE_DEVICES": "GPU-1,unlearned:main"})
    assert words.startswith("`apply` puts the UUID of card main where `unlearned:` stands")
    assert "cards a, b" in unlearned_words({"X": "unlearned:a,unlearned:b"})
    assert unlearned_words({"CUDA_VISIBLE_DEVICES": "GPU-1"}) == ""


def test_no_ram_is_no_effect() -> None:
    assert ram_words({"saves-ram-mib": 0.4}) == ""
    assert ram_words({"saves-ram-mib": -0.6}) == "1 MiB of RAM more"
