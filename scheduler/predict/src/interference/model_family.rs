//! The names of model families in tables and in the inputs of networks.

use cohabit_types::ModelFamily;

/// Every family with its name. The names are stored in tables and models, so they must not change.
pub(super) const FAMILY_NAMES: [(&str, ModelFamily); 5] = [
    ("cnn", ModelFamily::Cnn),
    ("rnn", ModelFamily::Rnn),
    ("transformer", ModelFamily::Transformer),
    ("embedding", ModelFamily::Embedding),
    ("other", ModelFamily::Other),
];
