//! Models that earlier releases stored are still read, and predict what they did.

use std::path::Path;

use cohabit_policy::interference::{ColocationSet, GpuKind, SetMember, SoloMetrics};
use cohabit_predict::interference::{StoredModel, UsageSource, UsageSources};
use cohabit_types::ModelFamily;

fn member(model: &str, batch: u64, family: ModelFamily) -> SetMember {
    SetMember { model: model.to_owned(), batch: Some(batch), family: Some(family), ..SetMember::default() }
}

/// A low-rank model of format version 1: logarithms of slowdowns add up, and one factor calibrates all GPUs.
#[test]
fn a_low_rank_model_of_the_first_format_predicts_the_same() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/low-rank-1");
    let stored = StoredModel::load(&folder).unwrap();
    let members = vec![member("ResNet-50", 32, ModelFamily::Cnn), member("LM", 20, ModelFamily::Rnn)];
    let set = ColocationSet { gpu: GpuKind::named("v100"), sharing: None, members };
    let predicted = stored.model.predict(&[set]).remove(0);
    // Worked out in Python from the two files, without this program.
    for (predicted, slowdown) in predicted.iter().zip([1.276_167_602, 2.617_429_683]) {
        assert!((predicted.slowdown - slowdown).abs() < 1e-6, "{predicted:?}");
        assert!((predicted.uncertainty - 0.053_105_762).abs() < 1e-6, "{predicted:?}");
    }
}

/// A job of the synthetic table that the two networks were trained on.
fn busy_job(busy: u32) -> SetMember {
    let utilization = f64::from(busy) / 100.0;
    let others = [("sm", utilization * 0.9), ("memory", 0.2 + utilization * 0.5)];
    let solo = SoloMetrics {
        rate: Some(1_000.0 / f64::from(busy)),
        memory: Some(f64::from(busy) * 1e8),
        utilization: Some(utilization),
        others: others.map(|(name, value)| (name.to_owned(), value)).into(),
    };
    SetMember { solo, ..member(&format!("model-{busy}"), u64::from(busy), ModelFamily::Cnn) }
}

/// What a stored network predicts of three jobs: slowdown, memory in bytes, utilization.
#[track_caller]
fn assert_predicts(folder: &str, expected: [(f64, f64, f64); 3], usage: UsageSource) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(folder);
    let stored = StoredModel::load(&folder).expect("the golden model loads");
    let members = [57, 68, 90].map(busy_job).into();
    let set = ColocationSet { gpu: GpuKind::named("a100"), sharing: None, members };
    let predicted = stored.model.predict(&[set]).remove(0);
    for (predicted, (slowdown, memory, utilization)) in predicted.iter().zip(expected) {
        let values = [Some(predicted.slowdown), predicted.memory, predicted.utilization];
        for (value, expected) in values.into_iter().zip([slowdown, memory, utilization]) {
            // Processors differ in the last bits of single precision.
            let same = value.is_some_and(|value| (value / expected - 1.0).abs() < 1e-4);
            assert!(same, "{expected}: {predicted:?}");
        }
    }
    assert_eq!(stored.model.usage_sources(), UsageSources { memory: usage, utilization: usage });
}

/// A network without heads for memory and utilization, as stored before there were any.
#[test]
fn a_network_without_heads_scales_memory_and_utilization() {
    let expected = [
        (1.973_826_098, 5.7e9, 0.288_779_239),
        (2.200_387_728, 6.8e9, 0.309_036_444),
        (2.641_463_412, 9.0e9, 0.340_720_222),
    ];
    assert_predicts("e-ggat-plus-2", expected, UsageSource::NotMeasured);
}

/// A network with heads for both.
#[test]
fn a_network_with_heads_predicts_memory_and_utilization() {
    let expected = [
        (1.962_393_012, 4.900_665_601e9, 0.258_596_320),
        (2.198_954_689, 5.877_436_875e9, 0.309_032_655),
        (2.651_869_300, 8.187_835_467e9, 0.395_277_297),
    ];
    assert_predicts("e-ggat-plus-2-usage", expected, UsageSource::Learned);
}
