//! Tables that are read, and what is said of those that cannot be.
