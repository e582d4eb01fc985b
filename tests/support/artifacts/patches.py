"""A small tree and patches for it, in git's form (composed)."""

from __future__ import annotations

from pathlib import Path

MAIN = "".join(f"// line {number}\n" for number in range(1, 9)) + "int main() {\n  return 0;\n}\n// end\n"

EXACT = """\
diff --git a/src/main.cpp b/src/main.cpp
--- a/src/main.cpp
+++ b/src/main.cpp
@@ -7,6 +7,6 @@
 // line 7
 // line 8
 int main() {
-  return 0;
+  return 7;
 }
 // end
"""
SECOND = EXACT.replace("return 7", "return 8").replace("return 0", "return 7")
FUZZY = EXACT.replace(" // line 7", " // line seven")
HALF = EXACT + "@@ -1,3 +1,3 @@\n // not\n-// there\n+// is\n // at all\n"
NEW_FILE = """\
diff --git a/src/new.cpp b/src/new.cpp
new file mode 100644
--- /dev/null
+++ b/src/new.cpp
@@ -0,0 +1 @@
+int one = 1;
"""
BUILD = """\
diff --git a/CMakeLists.txt b/CMakeLists.txt
--- a/CMakeLists.txt
+++ b/CMakeLists.txt
@@ -1 +1 @@
-project(engine)
+project(other)
"""
LINK = """\
diff --git a/src/l b/src/l
new file mode 120000
--- /dev/null
+++ b/src/l
@@ -0,0 +1 @@
+/etc/passwd
\\ No newline at end of file
"""
BINARY = """\
diff --git a/src/blob b/src/blob
new file mode 100644
GIT binary patch
literal 1
IcmZPo000310RR91
"""


def _hidden() -> dict[str, str]:
    """Diffs of CMakeLists.txt that `patch` finds behind a plain hunk, and git would never write (composed)."""
    plain = BUILD.partition("\n")[2]
    indented = {
        name: EXACT + "".join(f"{prefix}{line}\n" for line in plain.splitlines())
        for name, prefix in (("spaces", "  "), ("tab", "\t"), ("X", "X"))
    }
    normal = "1c1\n< project(engine)\n---\n> project(other)\n"
    old, new = "-project(engine)", "+project(other)"
    return {
        **indented,
        "index": f"{EXACT}Index: a/CMakeLists.txt\n{normal}",
        "normal": EXACT + normal,
        "ed": f"{EXACT}Index: a/CMakeLists.txt\n1c\nproject(other)\n.\n",
        "context": f"{EXACT}*** a/CMakeLists.txt\n--- a/CMakeLists.txt\n{'*' * 15}\n*** 1 ****\n! x\n--- 1 ----\n! y\n",
        "first": f"  {plain.replace(chr(10), chr(10) + '  ').rstrip()}\n{EXACT}",
        "in the head": EXACT.replace("--- a/src", f"Index: CMakeLists.txt\n{normal}--- a/src", 1),
        "carriage return": EXACT + plain.replace("\n", "\r\n"),
        "names apart": f"{EXACT}--- a/CMakeLists.txt\nX\n+++ b/CMakeLists.txt\n@@ -1 +1 @@\n{old}\n{new}\n",
    }


HIDDEN = _hidden()


def new_file_at(path: str) -> str:
    return NEW_FILE.replace("src/new.cpp", path)


def plain_at(path: str) -> str:
    """Without git's own header line, as plain diff writes it."""
    return f"--- a/{path}\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"


def tree(folder: Path) -> Path:
    root = folder / "tree"
    (root / "src").mkdir(parents=True)
    (root / "src/main.cpp").write_text(MAIN)
    (root / "CMakeLists.txt").write_text("project(engine)\n")
    return root
