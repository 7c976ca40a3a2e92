//! Pages that commands write: complete in themselves, legible on light and dark screens.

pub(crate) mod chart;
pub(crate) mod html;
pub(crate) mod palette;
