"""The article's 14 one-class tasks: embedded data with our own splits, or the authors' splits, downloaded once.

Examples
--------
>>> from refkernel.datasets import load_task
>>> task = load_task("Seed2", split=0)
>>> task.X_train.shape, task.X_test.shape
((147, 7), (63, 7))
"""

from ..exceptions import DataError, DownloadError
from .tasks import N_SPLITS, Split, Task, list_tasks, load_task

__all__ = ["N_SPLITS", "DataError", "DownloadError", "Split", "Task", "list_tasks", "load_task"]
__dir__ = __all__.copy
