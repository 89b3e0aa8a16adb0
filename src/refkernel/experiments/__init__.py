"""Experiments, which the library never imports: the article's, the study, the benchmark, and what they share."""
