"""The image, the compose file and the chart with a container engine; `make containers` runs it."""
