"""The configuration: decoding, defaults, validation, merging of plugin lists, flags."""
