"""Print the oldest versions that pyproject.toml promises, as pip constraints: every ``name>=version`` becomes ``name==version``."""

import re
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def oldest() -> list[str]:
    """Constraints from the dependencies and all extras."""
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    minima = (requirement.replace(">=", "==") for group in groups for requirement in group if ">=" in requirement)
    return sorted({re.sub(r"\[.*?\]", "", minimum) for minimum in minima})  # pip accepts no extras in constraints


if __name__ == "__main__":
    print("\n".join(oldest()))
