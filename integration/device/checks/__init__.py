"""What is claimed of GPU sharing, and how each claim is looked at on this machine."""
