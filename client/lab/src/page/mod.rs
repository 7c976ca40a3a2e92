//! Self-contained HTML pages with charts, legible on light and dark screens.

pub(crate) mod chart;
pub(crate) mod html;
pub(crate) mod palette;
