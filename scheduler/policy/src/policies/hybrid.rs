//! The hybrid's name and parameters: its own, and all that A-SRPT and the mapped placer take.

use super::parameters::Parameters;
use super::parse_error::PolicyParseError;
use super::placement::{parse_a_srpt_options, parse_placer};
use crate::Policy;
use crate::a_srpt::ASrptOptions;
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
        sharing: parameters.choose("sharing", &Toggle::NAMES)?.unwrap_or(default.sharing),
        watchdog: parameters.choose("watchdog", &Toggle::NAMES)?.unwrap_or(default.watchdog),
    };
    // A live cluster never leaves a GPU idle for the sake of a turn that depends on estimates.
    let eager = ASrptOptions { eager_start: Toggle::On, ..ASrptOptions::default() };
    let order = parse_a_srpt_options(eager, parameters)?;
    let whole = parse_placer(parameters, Selection::default())?;
    Ok(Box::new(Hybrid::new(options, &order, whole, context)))
}
