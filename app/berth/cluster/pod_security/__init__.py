"""The Pod Security Standards: what pods of a level may not ask for.

As ``k8s.io/pod-security-admission`` evaluates them, in its latest version.
"""
