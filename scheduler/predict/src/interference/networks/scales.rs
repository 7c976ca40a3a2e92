//! Scales named numbers, in an order that is stored with the weights.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::columns::{Column, ColumnName};

/// How numbers are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Scaling {
    /// To a mean of 0 and a standard deviation of 1.
    Standard,
    /// To the range from 0 to 1.
    Range,
}

/// The input numbers of a network with their scales.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Scales {
    scales: Vec<Scale>,
}

/// The scale of one number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Scale {
    name: String,
    from: f64,
    width: f64,
    #[serde(rename = "lacking")]
    missing: Missingness,
}

/// Whether some members had no value during training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Missingness {
    Never,
    /// Some had none: a second number then says whether there is a value.
    Sometimes,
}

/// Scaled numbers are clipped to this absolute value: a value far from all training data is only known to be
/// far.
const MAX_SCALED: f64 = 4.0;
/// A number with a smaller width counts as constant.
const LEAST_WIDTH: f64 = 1e-9;

impl Scales {
    /// Learns the names and the scales of the numbers.
    pub(super) fn learn<'a>(rows: impl IntoIterator<Item = &'a [Column]>, scaling: Scaling) -> Scales {
        let mut known_values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        let mut count = 0;
        for row in rows {
            count += 1;
            let known = row.iter().filter_map(|(name, value)| Some((&**name, (*value)?)));
            known.filter(|(_, value)| value.is_finite()).for_each(|(name, value)| {
                known_values.entry(name).or_default().push(value);
            });
        }
        let scale = |(name, values): (&str, Vec<f64>)| {
            let (from, width) = scaling.fit(&values);
            let missing = if values.len() < count { Missingness::Sometimes } else { Missingness::Never };
            let varies = width > LEAST_WIDTH || missing == Missingness::Sometimes;
            let width = width.max(LEAST_WIDTH);
            varies.then(|| Scale { name: name.to_owned(), from, width, missing })
        };
        Scales { scales: known_values.into_iter().filter_map(scale).collect() }
    }

    /// The number of inputs of a member.
    pub(super) fn width(&self) -> usize {
        self.scales.iter().map(|scale| if scale.missing == Missingness::Sometimes { 2 } else { 1 }).sum()
    }

    /// The names of the numbers.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.scales.iter().map(|scale| scale.name.as_str())
    }

    /// Each scaled number, if it has a value.
    pub(super) fn scale(&self, columns: &[Column]) -> Vec<Option<f64>> {
        let mut places = ColumnPlaces::default();
        self.find(columns, &mut places);
        let scaled = |(scale, place): (&Scale, &Option<usize>)| scale.apply(columns[(*place)?].1);
        self.scales.iter().zip(&places.places).map(scaled).collect()
    }

    /// The inputs of a member; a missing value becomes 0, the middle of the scale.
    pub(super) fn row(&self, columns: &[Column]) -> Vec<f64> {
        let mut places = ColumnPlaces::default();
        self.find(columns, &mut places);
        let mut row = Vec::with_capacity(self.width());
        self.each(columns, &places, &mut |number| row.push(number));
        row
    }

    /// Gives the same inputs one after the other, with columns whose places are known.
    pub(super) fn each(&self, columns: &[Column], places: &ColumnPlaces, give: &mut impl FnMut(f64)) {
        for (scale, place) in self.scales.iter().zip(&places.places) {
            let known = place.and_then(|place| scale.apply(columns[place].1));
            give(known.unwrap_or(0.0));
            if scale.missing == Missingness::Sometimes {
                give(if known.is_some() { 1.0 } else { 0.0 });
            }
        }
    }

    /// Finds where each number is among these columns, unless the last ones had the same names.
    pub(super) fn find(&self, columns: &[Column], places: &mut ColumnPlaces) {
        let names = columns.iter().map(|(name, _)| name);
        if places.is_known && names.clone().eq(&places.names) {
            return;
        }
        let place = |scale: &Scale| columns.iter().position(|(name, _)| *name == scale.name);
        places.places = self.scales.iter().map(place).collect();
        places.names = names.cloned().collect();
        places.is_known = true;
    }
}

/// Where the numbers are among columns with certain names.
#[derive(Debug, Default)]
pub(super) struct ColumnPlaces {
    is_known: bool,
    names: Vec<ColumnName>,
    /// For each scale.
    places: Vec<Option<usize>>,
}

impl Scale {
    fn apply(&self, value: Option<f64>) -> Option<f64> {
        let value = value.filter(|value| value.is_finite())?;
        Some(((value - self.from) / self.width).clamp(-MAX_SCALED, MAX_SCALED))
    }
}

impl Scaling {
    fn fit(self, values: &[f64]) -> (f64, f64) {
        let count = values.len().max(1) as f64;
        match self {
            Scaling::Standard => {
                let mean = values.iter().sum::<f64>() / count;
                let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
                (mean, square.sqrt())
            }
            Scaling::Range => {
                let least = values.iter().copied().fold(f64::INFINITY, f64::min);
                let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                (least, most - least)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(values: &[(&str, Option<f64>)]) -> Vec<Column> {
        values.iter().map(|(name, value)| ((*name).to_owned().into(), *value)).collect()
    }

    #[test]
    fn numbers_are_scaled_and_constant_or_missing_ones_handled() {
        let rows = [
            columns(&[("batch", Some(1.0)), ("same", Some(7.0)), ("memory", Some(2.0))]),
            columns(&[("batch", Some(3.0)), ("same", Some(7.0)), ("memory", None)]),
        ];
        let rows: Vec<&[Column]> = rows.iter().map(Vec::as_slice).collect();
        let standard = Scales::learn(rows.iter().copied(), Scaling::Standard);
        assert_eq!(standard.names().collect::<Vec<_>>(), ["batch", "memory"]);
        assert_eq!(
            (standard.row(rows[0]), standard.row(rows[1])),
            (vec![-1.0, 0.0, 1.0], vec![1.0, 0.0, 0.0])
        );
        let range = Scales::learn(rows.iter().copied(), Scaling::Range);
        assert_eq!((range.row(rows[0]), range.row(rows[1])), (vec![0.0, 0.0, 1.0], vec![1.0, 0.0, 0.0]));
    }

    #[test]
    fn values_far_from_the_training_data_are_clipped() {
        let rows = [columns(&[("batch", Some(0.0))]), columns(&[("batch", Some(2.0))])];
        let scales = Scales::learn(rows.iter().map(Vec::as_slice), Scaling::Standard);
        assert_eq!(scales.row(&columns(&[("batch", Some(1e9))])), [MAX_SCALED]);
        assert_eq!(scales.row(&columns(&[("batch", Some(f64::NAN))])), [0.0]);
    }
}
