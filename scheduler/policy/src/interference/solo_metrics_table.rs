//! What was measured of configurations alone on a GPU, so that a new job of a known configuration needs no
//! measurement of its own.

use std::collections::BTreeMap;

use super::{Configuration, GpuKind, MeasuredSet, SoloMetrics};

/// Measurements of configurations alone, by kind of GPU.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct SoloMetricsTable {
    solos: BTreeMap<GpuKind, BTreeMap<Configuration, SoloMetrics>>,
}

impl SoloMetricsTable {
    /// The table of what these measurements tell of their members alone. Of a configuration that was
    /// measured more than once, the last measurement counts.
    #[must_use]
    pub fn of<'a>(measured: impl IntoIterator<Item = &'a MeasuredSet>) -> SoloMetricsTable {
        let mut table = SoloMetricsTable::default();
        for MeasuredSet { set, .. } in measured {
            for member in &set.members {
                table.insert(set.gpu.clone(), member.configuration(), member.solo.clone());
            }
        }
        table
    }

    /// Inserts a measurement; replaces an earlier one of the same configuration.
    pub fn insert(&mut self, gpu: GpuKind, configuration: Configuration, solo: SoloMetrics) {
        self.solos.entry(gpu).or_default().insert(configuration, solo);
    }

    /// All measurements.
    pub fn iter(&self) -> impl Iterator<Item = (&GpuKind, &Configuration, &SoloMetrics)> {
        let of_gpu = |(gpu, solos)| {
            let solos: &BTreeMap<Configuration, SoloMetrics> = solos;
            solos.iter().map(move |(configuration, solo)| (gpu, configuration, solo))
        };
        self.solos.iter().flat_map(of_gpu)
    }

    /// The measured configuration that the given one stands for, and its measurement. Jobs seldom state
    /// their precision: for those that do not, the first measured precision counts.
    #[must_use]
    pub fn find(&self, gpu: &GpuKind, asked: &Configuration) -> Option<(&Configuration, &SoloMetrics)> {
        let mut from_there = self.solos.get(gpu)?.range(asked..);
        from_there.next().filter(|(found, _)| {
            let matches_precision =
                |precision: &str| asked.precision.is_empty() || asked.precision == precision;
            found.model == asked.model && found.batch == asked.batch && matches_precision(&found.precision)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(model: &str, batch: u64, precision: &str) -> Configuration {
        Configuration { model: model.into(), batch: Some(batch), precision: precision.into() }
    }

    fn table() -> SoloMetricsTable {
        let mut table = SoloMetricsTable::default();
        for (precision, rate) in [("fp32", 2.0), ("bf16", 4.0)] {
            let solo = SoloMetrics { rate: Some(rate), ..SoloMetrics::default() };
            table.insert(GpuKind::named("V100"), configuration("resnet-50", 32, precision), solo);
        }
        table
    }

    #[test]
    fn a_configuration_is_found_on_its_gpu_only() {
        let rate = |gpu, batch, precision| {
            let asked = configuration("resnet-50", batch, precision);
            table().find(&GpuKind::named(gpu), &asked).map(|(_, solo)| solo.rate)
        };
        assert_eq!(rate("v100", 32, "fp32"), Some(Some(2.0)));
        assert_eq!(rate("v100", 32, "fp16"), None);
        assert_eq!(rate("v100", 64, "fp32"), None);
        assert_eq!(rate("k80", 32, "fp32"), None);
    }

    #[test]
    fn a_configuration_without_precision_has_the_first_measured_one() {
        let (v100, asked) = (GpuKind::named("v100"), configuration("resnet-50", 32, ""));
        let (found, solo) = table().find(&v100, &asked).map(|(a, b)| (a.clone(), b.clone())).unwrap();
        assert_eq!((found.precision.as_str(), solo.rate), ("bf16", Some(4.0)));
    }
}
