"""Exact solutions for explicit features, n ≫ r: passes over blocks of rows, each of them one sum."""
