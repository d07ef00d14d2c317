"""Events about objects, written as client-go's event recorder does (spec §2.11, §12.2)."""
