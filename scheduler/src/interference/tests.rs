//! What every predictor without learning keeps.
