//! The hybrid's name and parameters: its own, and all that the order and the mapped placer take.

use super::parameters::Parameters;
use super::parse_error::PolicyParseError;
use super::placement::{parse_order_options, parse_placer};
use crate::Policy;
use crate::hybrid::{Hybrid, HybridOptions};
use crate::interference::InterferenceContext;
use crate::mapping::{Selection, Toggle};

pub(super) fn parse_hybrid(
    context: &InterferenceContext,
    parameters: &mut Parameters<'_>,
) -> Result<Box<dyn Policy>, PolicyParseError> {
    let default = HybridOptions::default();
    let mut number = |key, default| {
        let read = parameters.read(key, "a number from 0 to 1000", |it: &f64| (0.0..=1e3).contains(it))?;
        Ok(read.unwrap_or(default))
    };
    let options = HybridOptions {
        caution: number("caution", default.caution)?,
        harm_weight: number("harm-weight", default.harm_weight)?,
        idle_price: number("idle-price", default.idle_price)?,
        later: number("later", default.later)?,
        queue_weight: number("queue-weight", default.queue_weight)?,
        sharing: parameters.choose("sharing", &Toggle::NAMES)?.unwrap_or(default.sharing),
        watchdog: parameters.choose("watchdog", &Toggle::NAMES)?.unwrap_or(default.watchdog),
    };
    let order = parse_order_options(parameters)?;
    let whole = parse_placer(parameters, Selection::default())?;
    Ok(Box::new(Hybrid::new(options, order, whole, context)))
}
