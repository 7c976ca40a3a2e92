//! The field in which charts are drawn, in units of its own: the page scales it. Below and left of the curve
//! there are labels.

pub(crate) const FIELD: (u32, u32) = (340, 172);
pub(super) const LEFT: f64 = 62.0;
pub(super) const RIGHT: f64 = 332.0;
pub(super) const TOP: f64 = 12.0;
pub(super) const BOTTOM: f64 = 142.0;
