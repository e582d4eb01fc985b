"""Makes the code that runs on hosts importable."""

import tests.support.artifacts.onhost  # noqa: F401 - its import is its effect
