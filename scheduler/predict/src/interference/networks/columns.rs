//! The inputs for a member as named numbers, each on a suitable scale.
//!
//! The names are stored with the weights of trained models, so they must not change.

use std::borrow::Cow;

use cohabit_policy::interference::{ColocationSet, SetMember};
use cohabit_types::{ModelFamily, SharingStrategy};

use crate::interference::model_family::FAMILY_NAMES;

/// A named number; `None` if it is unknown.
pub(super) type Column = (ColumnName, Option<f64>);

/// The name of a column; most are always the same.
pub(super) type ColumnName = Cow<'static, str>;

/// Numbers of the job itself: sizes as logarithms, fractions as they are.
pub(super) fn job_columns(set: &ColocationSet, member: &SetMember) -> Vec<Column> {
    let ln = |value: Option<f64>| value.filter(|it| *it > 0.0).map(f64::ln);
    let SetMember { features, solo, .. } = member;
    let batch = member.batch.map(|batch| batch as f64);
    let samples = batch.zip(solo.rate).map(|(batch, rate)| batch * rate);
    let operations = samples.zip(features.flops_per_sample).map(|(samples, each)| samples * each);
    let reached = operations.zip(set.gpu.model()).map(|(a_second, gpu)| a_second / gpu.peak);
    let sizes = [
        ("batch", ln(batch)),
        ("parameters", ln(features.parameters)),
        ("flops_per_sample", ln(features.flops_per_sample)),
        ("activation_bytes", ln(features.activation_bytes)),
        ("input_bytes", ln(features.input_bytes)),
        ("solo_rate", ln(solo.rate)),
        ("solo_samples", ln(samples)),
        ("solo_part_of_peak", ln(reached)),
    ];
    let named = sizes.into_iter().map(|(name, value)| (Cow::Borrowed(name), value));
    let operators = features.operators.iter();
    let operators =
        operators.map(|(name, count)| (Cow::Owned(format!("op_{name}")), Some(count.max(0.0).ln_1p())));
    named.chain(family_columns(member.family)).chain(operators).collect()
}

fn family_columns(family: Option<ModelFamily>) -> impl Iterator<Item = Column> {
    let column = move |(name, one): (&str, ModelFamily)| {
        let is = if family == Some(one) { 1.0 } else { 0.0 };
        (Cow::Owned(format!("family {name}")), family.map(|_| is))
    };
    FAMILY_NAMES.into_iter().map(column)
}

/// What was measured of the job alone: fractions of the GPU, and metrics of the performance monitor.
pub(super) fn measured(set: &ColocationSet, member: &SetMember) -> Vec<Column> {
    let capacity = set.gpu.memory().map(|memory| memory.0 as f64);
    let memory = member.solo.memory.zip(capacity).map(|(memory, capacity)| memory / capacity);
    // Every profile has these two, so their names have to sort before those of the others.
    let own = [("own_memory_part", memory), ("own_utilisation", member.solo.utilization)];
    let own = own.into_iter().map(|(name, value)| (Cow::Borrowed(name), value));
    let others =
        member.solo.others.iter().map(|(name, value)| (Cow::Owned(format!("solo_{name}")), Some(*value)));
    own.chain(others).collect()
}

/// The GPU and how it is shared.
pub(super) fn gpu_columns(set: &ColocationSet) -> Vec<Column> {
    let model = set.gpu.model();
    let gpu_value = |value: fn(&cohabit_policy::interference::GpuModel) -> f64| model.as_ref().map(value);
    let shared = |how| Some(if set.sharing == Some(how) { 1.0 } else { 0.0 });
    let place = [
        ("gpu_peak", gpu_value(|gpu| gpu.peak.ln())),
        ("gpu_bandwidth", gpu_value(|gpu| gpu.bandwidth.ln())),
        ("gpu_multiprocessors", gpu_value(|gpu| f64::from(gpu.multiprocessors).ln())),
        ("gpu_cuda_cores", gpu_value(|gpu| f64::from(gpu.cuda_cores).ln())),
        ("gpu_memory_clock", gpu_value(|gpu| f64::from(gpu.memory_clock).ln())),
        ("gpu_tensor_cores", gpu_value(|gpu| f64::from(gpu.tensor_cores).ln_1p())),
        ("shared by mps", shared(SharingStrategy::Mps)),
        ("shared by time-slicing", shared(SharingStrategy::TimeSliced)),
    ];
    place.into_iter().map(|(name, value)| (Cow::Borrowed(name), value)).collect()
}

/// The other members of the set: their number, and how much they use together.
pub(super) fn colocation_columns(set: &ColocationSet, place: usize) -> Vec<Column> {
    let wanted = |members: &mut dyn Iterator<Item = &SetMember>| -> Option<f64> {
        members.map(|member| member.solo.utilization).sum()
    };
    let others = set.members.iter().enumerate().filter(|(at, _)| *at != place).map(|(_, member)| member);
    let others: Vec<&SetMember> = others.collect();
    let most = others.iter().filter_map(|member| member.solo.utilization).reduce(f64::max);
    let columns = [
        ("members", Some(set.members.len() as f64)),
        ("memory_filled", set.memory_filled()),
        ("wanted by all", wanted(&mut set.members.iter())),
        ("wanted by others", wanted(&mut others.iter().copied())),
        ("most wanted by another", most),
    ];
    columns.into_iter().map(|(name, value)| (Cow::Borrowed(name), value)).collect()
}
