"""Experiments, which the library never imports: the article's, the study, and what experiments share (units, statistics, pages)."""
