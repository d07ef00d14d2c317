"""What objects count for in a ResourceQuota; admission and the quota controller both ask here."""
