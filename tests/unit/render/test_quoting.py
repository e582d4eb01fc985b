from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llamarig.errors import RigError
from llamarig.render.quoting import command_line, path_value, quote, quote_argument
from tests.support.rendering.systemd_reader import UnreadableError, arguments, settings, words

TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=60)
NASTY = st.text(st.sampled_from(list(" \t\n\r\"'\\%$;#{}[]=-@:+!|&<>*?~`éß漢😀\u00a0\u2028\x1b\x7fnx0")), max_size=30)


def as_unit(value: str, key: str = "ExecStart") -> str:
    return f"[Service]\nType=oneshot\n{key}={value}\n# a comment\nUser=x\n"


@given(st.lists(TEXT | NASTY, max_size=12))
@example(
    ["", " ", "\\", "a\\", "\\\n", ";", "\\;", "#x", "%%n", "%", "$$", "$HOME", "${HOME}", '"', "'", "-", "--", "\r"]
)
def test_any_argument_survives_a_unit_file(values: list[str]) -> None:
    argv = ["/bin/program", *values]
    unit = settings(as_unit(command_line(argv)))
    assert [setting.key for setting in unit] == ["Type", "ExecStart", "User"]
    assert arguments(unit[1].value) == argv


@given(NASTY | TEXT)
def test_any_environment_value_survives_a_unit_file(value: str) -> None:
    unit = settings(as_unit(quote(f"NAME={value}"), "Environment"))
    assert words(unit[1].value) == [f"NAME={value}"]


@pytest.mark.parametrize(
    "plain", ["--ctx-size", "4096", "/opt/llamarig/current/bin/llama-server", "a=b,c:d@e+f", "-1.5"]
)
def test_plain_words_stay_readable(plain: str) -> None:
    assert quote_argument(plain) == plain


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", '""'),
        ("a b", '"a b"'),
        ('say "hi"', '"say \\"hi\\""'),
        ("100%", '"100%%"'),
        ("$HOME", '"$$HOME"'),
        ("back\\slash", '"back\\\\slash"'),
        (";", '";"'),
        ("tab\t", '"tab\\x09"'),
        ("é漢", '"é漢"'),
    ],
)
def test_what_is_quoted_and_how(text: str, quoted: str) -> None:
    assert quote_argument(text) == quoted


def test_a_dollar_is_doubled_in_command_lines_only() -> None:
    assert quote("A=$x") == '"A=$x"'


def test_a_flag_shares_its_line_with_its_value() -> None:
    assert command_line(["/bin/x", "--a", "1", "--b", "--c", "2", "3"]) == (
        "/bin/x \\\n    --a 1 \\\n    --b \\\n    --c 2 \\\n    3"
    )


def test_a_path_setting_escapes_specifiers_alone() -> None:
    assert path_value("/srv/100% mine") == "/srv/100%% mine"


@pytest.mark.parametrize("value", ["a\0b", "\ud800"])
def test_what_no_unit_file_can_hold_is_refused(value: str) -> None:
    with pytest.raises(RigError, match="cannot be written into a unit file"):
        quote(value)


def test_a_line_that_systemd_would_refuse_is_refused() -> None:
    with pytest.raises(RigError, match="too long") as caught:
        command_line(["/bin/x", "a" * (1 << 20)])
    assert "1 MiB" in caught.value.why


@pytest.mark.parametrize("value", ["%h", "%", '"open', "\\q", "a \\"])
def test_the_reader_itself_refuses_what_is_not_quoted(value: str) -> None:
    """The broken twin: unquoted text does not pass for quoted."""
    with pytest.raises(UnreadableError):
        words(value)
    with pytest.raises(UnreadableError):
        arguments("/bin/x $HOME")
    with pytest.raises(UnreadableError):
        arguments("/bin/x ; /bin/y")
