"""Tables read as they were written: pandas before version 3 reads some numbers a unit of their last place off unless it is asked not to."""

from functools import partial

import pandas as pd

read_csv = pd.read_csv if int(pd.__version__.split(".")[0]) >= 3 else partial(pd.read_csv, float_precision="round_trip")
