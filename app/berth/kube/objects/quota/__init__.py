"""ResourceQuotas: what objects count for, and what is allowed.

Asked by the embedded cluster's admission and quota controller, and by what-if questions.
"""
