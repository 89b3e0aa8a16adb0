"""Why a row is flagged: what each feature adds to its score, and which values would make it normal."""

from .counterfactuals import Change, Counterfactuals, counterfactuals
from .explanation import Explanation, explain

__all__ = ["Change", "Counterfactuals", "Explanation", "counterfactuals", "explain"]
