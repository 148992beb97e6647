"""Heads of words: dependency trees."""
