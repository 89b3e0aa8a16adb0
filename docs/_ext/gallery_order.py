"""The order of the gallery: from the first fit to what few need."""

from __future__ import annotations

FIRST = (
    "first_steps",
    "auto_detector",
    "digits",
    "why_flagged",
    "promise",
    "discoveries",
    "left_out_threshold",
    "width_and_nu",
    "choosing_without_labels",
    "made_up_outliers",
    "tuning",
    "few_negatives",
    "hidden_outliers",
    "mixed_types",
    "references_in_pictures",
    "centring_and_truncation",
    "two_traps",
    "ball_or_ellipsoid",
    "random_features",
    "own_references",
    "own_kernel",
    "monitor",
    "deployment_onnx",
)
"""Examples without the ``plot_`` before their names; those that are not listed come last, by name."""


def key(filename: str) -> tuple[int, str]:
    """Where an example stands."""
    name = filename.removeprefix("plot_").removesuffix(".py")
    return (FIRST.index(name) if name in FIRST else len(FIRST), name)
