"""Detectors: what references leave of a sample, calibrated thresholds, made-up outliers, and explanations."""
