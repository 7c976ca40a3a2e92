//! The parameters that several policies share: those of the mapped placer, of links, and of A-SRPT.

use cohabit_types::Bandwidth;

use super::parameters::Parameters;
use super::parse_error::PolicyParseError;
use crate::a_srpt::ASrptOptions;
use crate::gittins::OrderOptions;
use crate::mapping::{IterationModel, MapperOptions, NicShare, Selection, Toggle};
use crate::{LinkDefaults, MappedPlacer};

/// The mapped placer, with the parameters that it has in all policies.
pub(super) fn parse_placer(
    parameters: &mut Parameters<'_>,
    selection: Selection,
) -> Result<MappedPlacer, PolicyParseError> {
    let default = MapperOptions::default();
    let nic_shares = [("device", NicShare::Device), ("job", NicShare::Job)];
    let micro_batches =
        parameters.read("micro-batches", "a whole number of at least 1", |it: &u32| *it >= 1)?;
    let options = MapperOptions {
        selection: parse_selection(parameters, selection)?,
        iteration: micro_batches
            .map_or(default.iteration, |micro_batches| IterationModel::Synchronous { micro_batches }),
        nic_share: parameters.choose("nic-share", &nic_shares)?.unwrap_or(default.nic_share),
        multi_start: parameters.choose("multi-start", &Toggle::NAMES)?.unwrap_or(default.multi_start),
        swaps: parameters.choose("swaps", &Toggle::NAMES)?.unwrap_or(default.swaps),
    };
    Ok(MappedPlacer::new(options, parse_links(parameters)?))
}

/// The selection, `default` if none is given.
fn parse_selection(
    parameters: &mut Parameters<'_>,
    default: Selection,
) -> Result<Selection, PolicyParseError> {
    let seed = parameters.read("map-seed", "a whole number", |_: &u64| true)?;
    let random = Selection::Random(seed.unwrap_or(1));
    let default = if seed.is_some() { random.clone() } else { default };
    let selections =
        [("consolidate", Selection::Consolidate), ("fragments", Selection::Fragments), ("random", random)];
    Ok(parameters.choose("selection", &selections)?.unwrap_or(default))
}

pub(super) fn parse_links(parameters: &mut Parameters<'_>) -> Result<LinkDefaults, PolicyParseError> {
    let default = LinkDefaults::default();
    let mut speed =
        |key| parameters.read(key, "a bandwidth like 25g or 300GB", |bandwidth: &Bandwidth| bandwidth.0 > 0);
    Ok(LinkDefaults {
        network: speed("network")?.unwrap_or(default.network),
        interconnect: speed("interconnect")?.unwrap_or(default.interconnect),
    })
}

/// The options of the order by Gittins indices.
pub(super) fn parse_order_options(parameters: &mut Parameters<'_>) -> Result<OrderOptions, PolicyParseError> {
    let mut options = OrderOptions::default();
    for key in OrderOptions::KEYS {
        if let Some(value) = parameters.take(key) {
            options.set(key, value).map_err(|why| parameters.refuse(why))?;
        }
    }
    Ok(options)
}

/// The options of A-SRPT, `options` where none is given.
pub(super) fn parse_a_srpt_options(
    mut options: ASrptOptions,
    parameters: &mut Parameters<'_>,
) -> Result<ASrptOptions, PolicyParseError> {
    for key in ASrptOptions::KEYS {
        if let Some(value) = parameters.take(key) {
            options.set(key, value).map_err(|why| parameters.refuse(why))?;
        }
    }
    Ok(options)
}
