"""Pictures of fitted models, in scikit-learn's Display convention (extra ``plot``: matplotlib).

Each display holds the data of one picture, ``plot`` draws it, and ``from_estimator`` computes and draws it. The colours are
Okabe and Ito's; marks and lines differ in shape too. Legends are drawn beside the axes: figures of your own need
``layout="constrained"``.
"""

from .explanation import ExplanationDisplay
from .path import PathDisplay
from .regions import DecisionRegionDisplay
from .scores import ScoreDistributionDisplay
from .series import SeriesDisplay
from .spectrum import SpectrumDisplay

__all__ = ["DecisionRegionDisplay", "ExplanationDisplay", "PathDisplay", "ScoreDistributionDisplay", "SeriesDisplay", "SpectrumDisplay"]
__dir__ = __all__.copy
