//! Properties that must hold for measurements and models from untrusted input, for `integration/fuzz`.
//!
//! Every function takes any bytes and panics if a property is violated.

use std::path::Path;

use cohabit_policy::interference::{ColocationSet, GpuKind, SetMember, SetOutcome, SoloMetrics};

use super::measurements::{MeasurementFormat, ReadError, read};
use super::stored_model::{ModelCard, StoredModel};

/// Read sets are complete and have finite numbers; an error names its line. The first byte chooses the
/// format, or that the first line determines it.
pub fn measurements(bytes: &[u8]) {
    let Some((choice, text)) = bytes.split_first() else { return };
    let format = match choice % 3 {
        0 => Some(MeasurementFormat::ColocationSet),
        1 => Some(MeasurementFormat::GavelPairs),
        _ => None,
    };
    match read(text, format) {
        Ok(table) => {
            for measured in &table.sets {
                assert!(!measured.set.members.is_empty());
                if let SetOutcome::Ran(observed) = &measured.outcome {
                    assert_eq!(observed.len(), measured.set.members.len());
                    assert!(observed.iter().all(|it| it.slowdown.is_finite() && it.slowdown > 0.0));
                }
            }
        }
        Err(ReadError::Cell { line, .. } | ReadError::Set { line, .. }) => assert!(line > 0),
        Err(
            error @ (ReadError::Csv(_)
            | ReadError::Unreadable(_)
            | ReadError::UnknownFormat(_)
            | ReadError::MissingColumns(_)
            | ReadError::Empty),
        ) => assert!(!error.to_string().is_empty()),
    }
}

/// A stored model: its card and, after a NUL byte, its weights. Every restored model can predict.
pub fn models(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let (card, weights) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let Ok(card) = ModelCard::of(card, Path::new("card.json")) else { return };
    match StoredModel::of(card, weights, Path::new("weights.safetensors")) {
        Ok(stored) => {
            let solo = SoloMetrics {
                rate: Some(10.0),
                memory: Some(1e9),
                utilization: Some(0.5),
                ..SoloMetrics::default()
            };
            let member =
                SetMember { model: "resnet50".into(), batch: Some(64), solo, ..SetMember::default() };
            let members = vec![member.clone(), member];
            let set = ColocationSet { gpu: GpuKind::named("V100"), sharing: None, members };
            assert_eq!(stored.model.predict(&[set]).remove(0).len(), 2);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
