"""Which detector to use if only normal rows are known: ours and the usual ones, compared by one protocol on real tables."""
