"""Which reference strategy and classifier to use: one protocol compares all of them with the alternatives in scikit-learn."""
