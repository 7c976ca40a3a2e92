//! Policies that share GPUs: all first come, first served, and different only in which jobs they put
//! together.
//!
//! A job that does not fit lets others pass, as in the cluster managers for which these policies were made.

use super::parameters::Parameters;
use super::parse_error::PolicyParseError;
use super::placement::{parse_links, parse_placer};
use crate::clwp_nlwp::{
    ClwpNlwp, ClwpNlwpOptions, CostWeights, SimilarityMeasure, SlotNormalization, TrafficPattern,
};
use crate::interference::InterferenceContext;
use crate::isacpp::{GpuSelection, Isacpp, IsacppOptions};
use crate::mapping::{self, Toggle};
use crate::sharing::multi_stage::ContentionDegree;
use crate::sharing::{DeviceChooser, SharedPlacer, UtilThreshold};
use crate::{Discipline, Fifo, Policy, QueuePolicy};

/// Two jobs that keep a device busy for half of the time each fill it.
const UTIL_THRESHOLD: f64 = 1.0;

pub(super) fn shared_policy(
    choice: impl DeviceChooser + 'static,
    context: &InterferenceContext,
    parameters: &mut Parameters<'_>,
) -> Result<Box<dyn Policy>, PolicyParseError> {
    let whole = parse_placer(parameters, mapping::Selection::default())?;
    let place = SharedPlacer::new(choice, whole, context);
    Ok(Box::new(QueuePolicy::new(Fifo, place, Discipline::WorkConserving)))
}

pub(super) fn parse_util_threshold(
    context: &InterferenceContext,
    parameters: &mut Parameters<'_>,
) -> Result<Box<dyn Policy>, PolicyParseError> {
    let most = parameters.read("threshold", "a number from 0 to 10", |it: &f64| (0.0..=10.0).contains(it))?;
    shared_policy(UtilThreshold { most: most.unwrap_or(UTIL_THRESHOLD) }, context, parameters)
}

pub(super) fn parse_isacpp(
    context: &InterferenceContext,
    parameters: &mut Parameters<'_>,
) -> Result<Box<dyn Policy>, PolicyParseError> {
    let readings = [("mean", ContentionDegree::MeanMinusOne), ("sum", ContentionDegree::Sum)];
    let contention = parameters.choose("rcd", &readings)?.unwrap_or_default();
    let selection = match parameters.choose("as-released", &Toggle::NAMES)?.unwrap_or(Toggle::Off) {
        Toggle::On => GpuSelection::AsReleased,
        Toggle::Off => GpuSelection::LeastInterference,
    };
    let weight =
        parameters.read("speed-weight", "a number from 0 to 1000", |it: &f64| (0.0..=1e3).contains(it))?;
    let options = IsacppOptions { contention, selection, speed_weight: weight.unwrap_or_default() };
    shared_policy(Isacpp::new(options, context), context, parameters)
}

pub(super) fn parse_clwp_nlwp(
    context: &InterferenceContext,
    parameters: &mut Parameters<'_>,
) -> Result<Box<dyn Policy>, PolicyParseError> {
    let default = ClwpNlwpOptions::default();
    let measures = [("cosine", SimilarityMeasure::Cosine), ("load", SimilarityMeasure::Load)];
    let slots = [("busy", SlotNormalization::Busy), ("all", SlotNormalization::All)];
    let traffics = [("ring", TrafficPattern::Ring), ("parameter-server", TrafficPattern::ParameterServer)];
    let mut weight = |key, default| {
        let read = parameters.read(key, "a number from 0 to 1000", |it: &f64| (0.0..=1e3).contains(it))?;
        Ok(read.unwrap_or(default))
    };
    let mu = weight("mu", default.mu)?;
    let costs = CostWeights {
        own: weight("own", default.costs.own)?,
        hurt: weight("hurt", default.costs.hurt)?,
        communication: weight("communication", default.costs.communication)?,
    };
    let options = ClwpNlwpOptions {
        similarity: parameters.choose("similarity", &measures)?.unwrap_or(default.similarity),
        slots: parameters.choose("slots", &slots)?.unwrap_or(default.slots),
        traffic: parameters.choose("traffic", &traffics)?.unwrap_or(default.traffic),
        mu,
        costs,
    };
    let place = ClwpNlwp::new(options, parse_links(parameters)?, context);
    Ok(Box::new(QueuePolicy::new(Fifo, place, Discipline::WorkConserving)))
}
