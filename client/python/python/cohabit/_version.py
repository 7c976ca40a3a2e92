"""The version of the package that is installed."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("cohabit")
except PackageNotFoundError:  # From the source tree.
    __version__ = "0"
