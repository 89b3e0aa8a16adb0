"""What the library never imports: the article's experiments, the study, and the pages that show them."""
