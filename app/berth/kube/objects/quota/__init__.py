"""What objects count for in a ResourceQuota, and what it allows.

Asked by the embedded cluster's admission and quota controller, and by what-if questions.
"""
