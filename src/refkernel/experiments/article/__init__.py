"""The article's experiments: protocol, runner, tables."""
