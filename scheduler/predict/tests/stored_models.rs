//! Models that earlier releases stored are still read, and predict what they did.

use std::path::Path;

use cohabit_policy::interference::{ColocationSet, GpuKind, SetMember};
use cohabit_predict::interference::StoredModel;
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
