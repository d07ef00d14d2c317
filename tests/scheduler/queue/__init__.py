"""The scheduling queue, rule by rule, and all rules at once in any order."""
