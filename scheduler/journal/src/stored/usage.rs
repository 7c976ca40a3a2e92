//! What ranks did with their GPUs.

use cohabit_types::{self as types, Bytes, DeviceId, Span};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_with::{As, DeserializeAs, SerializeAs};

use crate::shape::shape_of;

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::DeviceUsage")]
pub(crate) struct StoredDeviceUsage {
    device: DeviceId,
    held: Span,
    measured: Span,
    busy: Span,
    idle: Span,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory: Option<Bytes>,
    capacity: Bytes,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    energy: Option<f64>,
    shared: bool,
    #[serde(with = "As::<StoredUsageCurve>")]
    curve: types::UsageCurve,
}

/// A curve has a hundred points: each row of percents is one text, such as `97,,0,`, with nothing where
/// nothing is known.
#[derive(Serialize, Deserialize)]
pub(crate) struct StoredUsageCurve {
    step: Span,
    utilization: String,
    memory: String,
}

impl SerializeAs<types::UsageCurve> for StoredUsageCurve {
    fn serialize_as<S: Serializer>(curve: &types::UsageCurve, serializer: S) -> Result<S::Ok, S::Error> {
        let points = || curve.points.iter();
        let stored = StoredUsageCurve {
            step: curve.step,
            utilization: row(points().map(|point| point.utilization)),
            memory: row(points().map(|point| point.memory)),
        };
        stored.serialize(serializer)
    }
}

impl<'de> DeserializeAs<'de, types::UsageCurve> for StoredUsageCurve {
    fn deserialize_as<D: Deserializer<'de>>(deserializer: D) -> Result<types::UsageCurve, D::Error> {
        let stored = <StoredUsageCurve as Deserialize>::deserialize(deserializer)?;
        let (utilization, memory) = (percents(&stored.utilization), percents(&stored.memory));
        let points = utilization.zip(memory);
        let points = points.map(|(utilization, memory)| types::UsagePoint { utilization, memory });
        Ok(types::UsageCurve { step: stored.step, points: points.collect() })
    }
}

/// Each percent ends with a comma, so that a row without points differs from one with an unknown point.
fn row(percents: impl Iterator<Item = Option<u8>>) -> String {
    percents.map(|percent| percent.map_or_else(|| ",".to_owned(), |percent| format!("{percent},"))).collect()
}

/// What is no percent is unknown.
fn percents(row: &str) -> impl Iterator<Item = Option<u8>> {
    row.split_terminator(',').map(|percent| percent.parse().ok())
}

shape_of! {
    StoredDeviceUsage => types::DeviceUsage,
}
